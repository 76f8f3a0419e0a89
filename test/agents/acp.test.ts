import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { Task } from '../../src/protocol/a2a.ts'
import { type FakeModel, modelPrompts, startFakeModel } from '../fakes/agents/fake-model.ts'
import { type LiveProcess, liveProcesses, pidsWithCommandLine } from '../harness/live-processes.ts'
import { replyText, waitForFinalTask } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { ACP_AGENTS, type AcpSubject, acpBin, makeAcpHome } from './acp-agents.ts'
import { type AgentHarness, openAgentHarness } from './agent-harness.ts'
import { findCli } from './clis.ts'

const STEP_MS_MAX = 180_000
const TOOL_START_MS_MAX = 90_000
const CANCEL_MS_MAX = 5_000

for (const agent of ACP_AGENTS) {
  describe(`AG-14 AG-7 ${agent.name} over ACP`, () => {
    let model: FakeModel
    let harness: AgentHarness
    let workspace: string
    const cmd = `${acpBin(agent)}${agent.args}`
    const step = (name: string, body: () => Promise<void>) =>
      test(`${agent.name}: ${name}`, { timeout: STEP_MS_MAX }, body)

    before(async () => {
      model = await startFakeModel()
      harness = await open(agent, model)
      workspace = await harness.workspace({ cmd })
    })
    after(async () => {
      await harness?.dispose()
      await model?.stop()
    })

    step('first turn', async () => {
      assert.equal(reply(await harness.ask(workspace, modelPrompts.number(1), 'main')), 'I know 1')
    })
    step('second turn', async () => {
      assert.equal(reply(await harness.ask(workspace, modelPrompts.number(2), 'main')), 'I know 1 2')
    })
    if (agent.asks) step('permission', () => askPermission(harness, cmd))
    if (agent.hidesTools !== true)
      step('TW-1 delegation, no token on a command line', () => delegate(harness, workspace))
    step('cancel', () => cancel(harness, workspace))
    step('wrong key', async () => {
      const locked = await open(agent, model, 'sk-not-the-key')
      try {
        // With the attempts of a workspace: a wrong key is tried once.
        const id = await locked.workspace({ cmd }, { attempts: 4 })
        const task = await locked.ask(id, modelPrompts.number(1), 'main')
        assert.equal(task.status.state, 'TASK_STATE_FAILED', JSON.stringify(task.status))
        assert.equal(task.status.message?.metadata?.['category'], 'auth_failed', JSON.stringify(task.status))
        const { dead_letters: dead } = (await locked.platform.request('GET', `/workspaces/${id}/dead-letters`)).body
        assert.equal(dead[0].failures, 1, JSON.stringify(dead[0]))
        // An agent need not end when its platform is killed.
        await locked.stop()
      } finally {
        await locked.dispose()
      }
    })
    step('no process left', async () => {
      await harness.stop()
      assert.deepEqual(harness.processes(), [])
    })
  })
}

/** Without a model of the workspace: each agent has that of its settings. */
const open = (agent: AcpSubject, model: FakeModel, key?: string): Promise<AgentHarness> =>
  openAgentHarness({
    cli: findCli(agent.cli),
    runtime: 'acp',
    model,
    ...(key !== undefined && { key }),
    own: { bin: acpBin(agent), makeHome: (ofModel, withKey) => makeAcpHome(agent, ofModel, withKey) },
  })

/** A person sees the command, allows it, and the agent goes on. */
async function askPermission(harness: AgentHarness, cmd: string): Promise<void> {
  const { platform } = harness
  const asking = await harness.workspace({ cmd, permission: 'ask' })
  const taskId = await harness.begin(asking, modelPrompts.linger(1), 'asked')
  let pending: { id: string; subject: string }[] = []
  await waitUntil(
    async () => {
      pending = (await platform.request('GET', `/pending?workspace_id=${asking}`)).body.pending
      return pending.length > 0
    },
    'the agent asks',
    TOOL_START_MS_MAX,
  )
  assert.match(pending[0]?.subject ?? '', /setsid sleep 1/)
  await platform.request('POST', `/pending/${pending[0]?.id}`, { decision: 'allow' })
  const task = await waitForFinalTask(platform, asking, taskId)
  assert.equal(reply(task as Task), 'The shell came back.')
}

/** The agent delegates with the MCP server of its workspace; none of its processes shows the token of the conversation. */
async function delegate(harness: AgentHarness, workspace: string): Promise<void> {
  await harness.platform.exec('printf "colleague knows: "; cat', { name: 'colleague' })
  const text = reply(await harness.ask(workspace, modelPrompts.delegate, 'team'))
  assert.match(text, /The tool said: .*colleague knows: the weather/s)
  // codex gives an MCP server a small environment, without the mark of the turn.
  const processes = withDescendants(harness.processes())
  const files = processes.flatMap(({ environment, commandLine }) => [
    ...`${environment}\n${commandLine}`.matchAll(/molecule-agent-[\w-]+\/[\w-]+\.token/g),
  ])
  const tokens = new Set(files.map(([name]) => readFileSync(`${process.env['TMPDIR'] ?? '/tmp'}/${name}`, 'utf8')))
  assert.ok(tokens.size > 0, 'the agent has a token file')
  for (const token of tokens) {
    assert.deepEqual(
      processes.filter(({ commandLine }) => commandLine.includes(token)),
      [],
    )
  }
}

function withDescendants(processes: readonly LiveProcess[]): readonly LiveProcess[] {
  const found = new Map(processes.map((one) => [one.pid, one]))
  const all = liveProcesses()
  for (let size = 0; size < found.size; ) {
    size = found.size
    for (const one of all) if (found.has(one.parentPid)) found.set(one.pid, one)
  }
  return [...found.values()]
}

/** Cancels while a child of the agent's shell runs in a process session of its own; the conversation goes on. */
async function cancel(harness: AgentHarness, workspace: string): Promise<void> {
  const seconds = 100_000 + Math.floor(Math.random() * 100_000)
  const taskId = await harness.begin(workspace, modelPrompts.linger(seconds), 'canceled')
  const isToolRunning = () => harness.processes().some(({ commandLine }) => commandLine === `sleep ${seconds}`)
  await waitUntil(isToolRunning, "the agent's tool runs", TOOL_START_MS_MAX)
  const { body } = await harness.platform.rpc(workspace, 'CancelTask', { id: taskId })
  assert.equal(body.result.status.state, 'TASK_STATE_CANCELED')
  await waitUntil(() => pidsWithCommandLine(`sleep ${seconds}`).length === 0, 'the tool has ended', CANCEL_MS_MAX)
  assert.equal(reply(await harness.ask(workspace, modelPrompts.answer, 'canceled')), 'Here you are.')
}

function reply(task: Task): string {
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(task.status))
  // codex-acp puts its warnings before the answer.
  return (replyText(task) ?? '').replace(/^Warning: .*\n+/, '').trim()
}
