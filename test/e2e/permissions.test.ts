/** A permission, end to end: an agent asks, the pending list shows the ask, and the owner's decision reaches the agent. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { Task } from '../../src/protocol/a2a.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { MOLECULE } from '../harness/command.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const run = promisify(execFile)
const { path: bin, dir } = createFakeProgram('claude')
/** Fake agents, a message that makes each ask for a tool, and the tool and subject as the agent's own settings name them. */
const ASKING = {
  'claude-code': [createFakeProgram('claude'), '!ask make test', 'Bash(make test)'],
  codex: [createFakeProgram('codex'), "!ask-command /bin/bash -lc 'make test'", 'shell(make test)'],
  gemini: [createFakeProgram('gemini', 'tool'), 'ping', 'mcp_lab_ping_tool({"text":"pong?"})'],
  opencode: [createFakeProgram('opencode', 'tool'), 'touch', 'bash(touch "$HOME/done")'],
} as const

describe('permissions', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform({ env: CLAUDE_LOGGED_IN })
  })
  after(() => platform.dispose())

  const make = async (workspace: object) => {
    const { status, body } = await platform.request('POST', '/workspaces', { name: 'Ada', ...workspace })
    assert.equal(status, 201, JSON.stringify(body))
    return body
  }
  const ask = async (id: string, command: string) => {
    const task = await platform.send(id, `!ask ${command}`)
    assert.equal(task.status.state, 'TASK_STATE_AUTH_REQUIRED')
    const [pending] = (await platform.request('GET', `/pending?workspace_id=${id}`)).body.pending
    return { task, pending }
  }
  const reply = async (id: string, { id: taskId }: Task): Promise<string> => {
    let task: Task | undefined
    await waitUntil(async () => {
      task = (await platform.rpc(id, 'GetTask', { id: taskId })).body.result
      return task?.status.state === 'TASK_STATE_COMPLETED'
    })
    return task?.artifacts?.[0]?.parts[0]?.text ?? ''
  }

  test('AG-16 the pending list shows what an agent asks, and the agent acts on the decision', async () => {
    const { id } = await make({ runtime: 'claude-code', runtime_config: { bin } })
    const { task, pending } = await ask(id, 'rm -rf build')
    assert.deepEqual([pending.tool, pending.subject], ['Bash', 'rm -rf build'])
    assert.equal(task.status.message?.parts[0]?.text, 'waiting for permission to use Bash')
    const status = async () => (await platform.request('GET', `/workspaces/${id}`)).body
    const asking = await status()
    const reason = 'a turn waits for your permission: see "molecule pending"'
    assert.deepEqual([asking.status, asking.status_reason], ['online', reason])
    const answer = await platform.request('POST', `/pending/${pending.id}`, { decision: 'allow' })
    assert.deepEqual([answer.status, answer.body.decision], [200, 'allow'])
    assert.match(await reply(id, task), /^ran .*rm -rf build/)
    assert.equal((await status()).status_reason, undefined)
    const { stdout } = await run(MOLECULE, ['explain', task.id], {
      env: { ...process.env, MOLECULE_API_URL: platform.url, MOLECULE_HOME: platform.dataDir },
    })
    assert.match(stdout, /"admin" \(people\) allowed the use of Bash through http/)
    const late = await platform.request('POST', `/pending/${pending.id}`, { decision: 'deny' })
    assert.equal(late.status, 400, JSON.stringify(late.body))
  })

  test('AG-19 AG-16 the log shows the tool and the subject of the ask, and allowed_tools takes exactly them', async () => {
    for (const [runtime, [program, text, use]] of Object.entries(ASKING)) {
      const tool = use.slice(0, use.indexOf('('))
      const settings = (allowedTools?: string) => ({
        runtime,
        runtime_config: { bin: program.path, ...(allowedTools !== undefined && { allowed_tools: allowedTools }) },
      })
      const { id } = await make(settings(`${tool}(another use)`))
      const task = await platform.send(id, text)
      assert.equal(task.status.state, 'TASK_STATE_AUTH_REQUIRED', runtime)
      const [pending] = (await platform.request('GET', `/pending?workspace_id=${id}`)).body.pending
      assert.equal(`${pending.tool}(${pending.subject})`, use)
      await platform.request('POST', `/pending/${pending.id}`, { decision: 'allow' })
      await reply(id, task)
      const { activity } = (await platform.request('GET', `/workspaces/${id}/activity?type=tool`)).body
      const shown = activity.map((entry: { name: string; subject: string }) => `${entry.name}(${entry.subject})`)
      assert.deepEqual([...new Set(shown)], [use])
      for (const allowed of [use, tool]) {
        const { id: other } = await make(settings(allowed))
        assert.equal((await platform.send(other, text)).status.state, 'TASK_STATE_COMPLETED', `${runtime} ${allowed}`)
      }
    }
  })

  test("AG-16 RT-9 the agent gets the workspace's permission mode and the token file of its home", async () => {
    const { id } = await make({ runtime: 'claude-code', permission: 'allowed_tools', runtime_config: { bin } })
    await writeFile(join(platform.dataDir, 'workspaces', id.replace('ws_', 'ws-'), '.auth-token'), 'token-of-ada\n')
    assert.equal((await platform.send(id, 'hello')).status.state, 'TASK_STATE_COMPLETED')
    const starts = (await readFile(join(dir, 'starts.jsonl'), 'utf8')).trim().split('\n')
    const { argv, env } = JSON.parse(starts.at(-1) ?? '{}')
    assert.equal(argv[argv.indexOf('--permission-mode') + 1], 'dontAsk')
    assert.equal(env.CLAUDE_CODE_OAUTH_TOKEN, 'token-of-ada')
    assert.match(env.MOLECULE_WORKSPACE_TOKEN, /^mol_conversation_/)
  })

  test('AG-16 CN-2 CL-1 molecule pending lists and denies the ask of an agent behind a bridge', async () => {
    const { id, auth_token: token } = await make({ runtime: 'external' })
    const env = {
      ...process.env,
      ...CLAUDE_LOGGED_IN,
      MOLECULE_API_URL: platform.url,
      MOLECULE_HOME: platform.dataDir,
    }
    const args = ['connect', id, '--dir', dir, '--backend', 'claude', '--backend-opt', `bin=${bin}`]
    const bridge = spawn(MOLECULE, args, { env: { ...env, MOLECULE_WORKSPACE_TOKEN: token }, stdio: 'ignore' })
    try {
      await waitUntil(async () => (await platform.request('GET', `/workspaces/${id}`)).body.status === 'online')
      const { task, pending } = await ask(id, 'rm -rf /')
      const listed = await run(MOLECULE, ['pending'], { env })
      assert.match(listed.stdout, /permission .* wants to use Bash: rm -rf \//)
      assert.match((await run(MOLECULE, ['pending', 'deny', pending.id], { env })).stdout, /denied/)
      assert.match(await reply(id, task), /^was told Permission denied/)
      assert.match((await run(MOLECULE, ['pending'], { env })).stdout, /Nothing needs you/)
    } finally {
      bridge.kill()
      await once(bridge, 'exit')
    }
  })
})
