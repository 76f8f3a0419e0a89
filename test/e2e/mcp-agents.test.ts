/** Every agent that can take an MCP server gets that of its workspace, from a running platform and without a setting. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { startsOf } from '../fakes/agents/claude-harness.ts'
import {
  CLAUDE_LOGGED_IN,
  createFakeProgram,
  type FakeAgentName,
  type FakeProgram,
} from '../fakes/agents/fake-program.ts'
import { connect } from '../fakes/mcp/team-client.ts'
import { createExternalWorkspace, startBridge, temporaryHome } from '../harness/bridge.ts'
import { type LiveProcess, linuxOnly, liveProcesses } from '../harness/live-processes.ts'
import { type PlatformUnderTest, replyText, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const VARIABLE = 'MOLECULE_WORKSPACE_TOKEN'
/** Every process of an agent has it in its environment. */
const MARK = 'MOLECULE_TURN='

/** A workspace on its own fake agent, after one message. */
async function runAgent(
  platform: PlatformUnderTest,
  given: { agent: FakeAgentName; runtime?: string; scenario?: string; config?: object },
) {
  const { agent, runtime = agent, scenario = 'echo', config = {} } = given
  const program = createFakeProgram(agent, scenario)
  const runtimeConfig = runtime === 'acp' ? { cmd: program.path, ...config } : { bin: program.path, ...config }
  const body = { name: `${runtime}-${scenario}`, runtime, runtime_config: runtimeConfig }
  const { body: workspace } = await platform.request('POST', '/workspaces', body)
  const task = await platform.send(workspace.id, 'hello')
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(task.status))
  return { id: workspace.id as string, program, reply: replyText(task) ?? '', url: mcpUrl(platform, workspace.id) }
}

const mcpUrl = ({ url }: PlatformUnderTest, id: string): string => `${url}/workspaces/${id}/mcp`

/** The token that the process of the agent has is good for the server. */
async function requireTools({ url }: PlatformUnderTest, id: string, token: string | undefined): Promise<void> {
  const client = await connect('http', { MOLECULE_API_URL: url, MOLECULE_WORKSPACE_ID: id, [VARIABLE]: token }, true)
  const { tools } = await client.listTools()
  assert.ok(tools.some(({ name }) => name === 'delegate_task'))
  await client.close()
}

const recorded = ({ dir }: FakeProgram, file: string) =>
  readFileSync(join(dir, file), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

test('TW-1 claude gets the server in its config, with the token in its environment and no time limit', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  for (const mode of ['session', 'oneshot']) {
    const { id, program, url } = await runAgent(platform, { agent: 'claude', runtime: 'claude-code', config: { mode } })
    const [start] = startsOf(program)
    const { molecule } = JSON.parse(start?.files.mcp ?? '{}').mcpServers
    const headers = { Authorization: `Bearer \${${VARIABLE}}` }
    assert.deepEqual(molecule, { type: 'http', url, headers, alwaysLoad: true })
    assert.ok(start?.argv.join(' ').includes('--allowedTools mcp__molecule'))
    assert.deepEqual(
      [start?.env['MCP_TOOL_TIMEOUT'], start?.env['CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT']],
      ['86400000', '86400000'],
    )
    assert.match(start?.files.systemPrompt ?? '', /- mcp__molecule__list_peers: .*mcp__molecule__delegate_task: /s)
    await requireTools(platform, id, start?.env[VARIABLE])
  }
})

test('TW-1 codex gets the server with the name of the variable; no token is on its command line', async (t) => {
  const platform = await startPlatformFor(t)
  const warm = await runAgent(platform, { agent: 'codex' })
  const { params } = recorded(warm.program, 'threads.jsonl')[0]
  assert.deepEqual(params.config.mcp_servers.molecule, {
    url: warm.url,
    bearer_token_env_var: VARIABLE,
    tool_timeout_sec: 86_400,
    required: true,
    default_tools_approval_mode: 'approve',
  })
  assert.match(params.developerInstructions, /mcp__molecule__delegate_task/)
  const oneShot = await runAgent(platform, { agent: 'codex', config: { mode: 'oneshot' } })
  const { argv, env } = recorded(oneShot.program, 'starts.jsonl').at(-1)
  const fields = `url="${oneShot.url}",bearer_token_env_var="${VARIABLE}",tool_timeout_sec=86400,required=true`
  assert.ok(argv.includes(`mcp_servers.molecule={${fields},default_tools_approval_mode="approve"}`), argv.join(' '))
  assert.ok(!argv.join(' ').includes(env[VARIABLE]))
  await requireTools(platform, oneShot.id, env[VARIABLE])
})

test('TW-1 agents that speak ACP get the server with their session', async (t) => {
  const platform = await startPlatformFor(t)
  for (const agent of ['gemini', 'opencode'] as const) {
    const { reply, url } = await runAgent(platform, { agent, scenario: 'environment' })
    const [{ headers, ...server }] = JSON.parse(reply).mcp
    assert.deepEqual(server, { type: 'http', name: 'molecule', url })
    assert.match(headers[0].value, /^Bearer \S+$/)
  }
})

test(
  'TW-1 an agent of runtime acp gets the server with a token file, so no command line below it has the token',
  linuxOnly,
  async (t) => {
    const platform = await startPlatformFor(t)
    // This agent starts a program with the servers of its session as an argument, as claude-agent-acp does.
    const { reply } = await runAgent(platform, { agent: 'acp', runtime: 'acp', scenario: 'mcp-argv' })
    const [{ name, command, args, env }] = JSON.parse(reply).mcp
    assert.match(name, /^molecule-[0-9a-f]{8}$/)
    const own = Object.fromEntries(env.map((one: { name: string; value: string }) => [one.name, one.value]))
    const file = own[`${VARIABLE}_FILE`]
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const token = readFileSync(file, 'utf8')
    const below = () => liveProcesses().filter(({ environment }) => environment.includes(`\0${MARK}`))
    const hasFile = ({ commandLine }: LiveProcess) => /--mcp-config/.test(commandLine) && commandLine.includes(file)
    await waitUntil(() => below().some(hasFile), 'the program has the file on its command line')
    assert.deepEqual(
      below().filter(({ commandLine }) => commandLine.includes(token)),
      [],
    )
    const client = new Client({ name: 'agent', version: '1' })
    await client.connect(new StdioClientTransport({ command, args, env: own, stderr: 'inherit' }))
    const { tools } = await client.listTools()
    assert.ok(tools.some((tool) => tool.name === 'delegate_task'))
    await client.close()
    await platform.stop()
    assert.equal(existsSync(file), false, 'the file is removed with the agent')
  },
)

test('TW-1 CN-1 an agent on a bridge gets the server of the platform, with the token of its turn', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform)
  const program = createFakeProgram('claude')
  const args = ['--backend', 'claude-code', '--backend-opt', `bin=${program.path}`]
  await startBridge(t, { url: platform.url, workspace, home: temporaryHome(t), args, env: CLAUDE_LOGGED_IN })
  assert.equal(replyText(await platform.send(workspace.id, 'hello')), 'hello')
  const [start] = startsOf(program)
  assert.equal(JSON.parse(start?.files.mcp ?? '{}').mcpServers.molecule.url, mcpUrl(platform, workspace.id))
  assert.notEqual(start?.env[VARIABLE], workspace.auth_token)
  await requireTools(platform, workspace.id, start?.env[VARIABLE])
})
