/**
 * The steps that every real agent CLI must pass behind its backend, against the fake model. `npm run test:agents` prints
 * the steps in this order, by their titles.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Json, Task } from '../../src/protocol/a2a.ts'
import { delivery, type FakeModel, modelPrompts, recital, startFakeModel } from '../fakes/agents/fake-model.ts'
import { type LiveProcess, pidsWithCommandLine } from '../harness/live-processes.ts'
import { replyText, waitForFinalTask } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { type AgentHarness, openAgentHarness } from './agent-harness.ts'
import { findCli } from './clis.ts'
import { firstTry, isFailingCli, runFailures } from './failure-steps.ts'

export interface AgentSubject {
  readonly cli: string
  /** Which of the tested versions; the newest by default. */
  readonly version?: 'newest' | 'oldest'
  /** The backend's name. */
  readonly runtime: string
  /** Options that start a program for each message; null when the backend has no warm mode. */
  readonly oneShot: Readonly<Record<string, string>> | null
  /** Whether the reply arrives in pieces. */
  readonly streams: boolean
  /** Whether a workspace can configure MCP servers for the agent. */
  readonly takesMcpServers: boolean
  /** The modes in which the agent gets the MCP server of its workspace. */
  readonly delegatesIn: readonly string[]
  /** Whether the agent can ask for a permission. */
  readonly asks: boolean
  /** The modes in which a conversation that has begun follows a changed role and model, as measured with the real program. */
  readonly followsSettingsIn?: readonly string[]
  /** Whether it reports what a turn costs. */
  readonly reportsCost?: boolean
  /** Whether each conversation has its own process, so that warm_max limits their number. */
  readonly capsProcesses: boolean
}

/** openclaw tries a refused call nine times before it gives up. A step that takes longer fails. */
const STEP_MS_MAX = 300_000
const TOOL_START_MS_MAX = 90_000
const IDLE_MS_MAX = 60_000
/** A cancelled tool must have ended by then. */
const CANCEL_MS_MAX = 5_000
const CONVERSATIONS = 20
/** The default of a workspace. When several opencodes start at once, one fails because their shared database is locked. */
const ATTEMPTS = 4
const WARM_MAX = 4
const WARM_IDLE = '2s'
const WATCH_MS = 10
const LUCKY = '4711'
const MCP_SERVER = fileURLToPath(new URL('../fakes/agents/mcp-server.ts', import.meta.url))

export function agentContract(title: string, subject: AgentSubject): void {
  const cli = findCli(subject.cli, subject.version)
  const { runtime, oneShot, streams, takesMcpServers, delegatesIn, asks, capsProcesses } = subject
  let model: FakeModel
  let harness: AgentHarness
  let workspace: string
  const step = (name: string, body: () => Promise<void>) => test(name, { timeout: STEP_MS_MAX }, body)

  describe(title, () => {
    before(async () => {
      model = await startFakeModel()
      harness = await openAgentHarness({ cli, runtime, model })
      workspace = await harness.workspace()
    })
    after(async () => {
      await harness?.dispose()
      await model?.stop()
    })

    step('first turn', async () => {
      assert.equal(reply(await harness.ask(workspace, modelPrompts.number(1), 'main')), 'I know 1')
    })
    step('resumed', async () => {
      assert.equal(reply(await harness.ask(workspace, modelPrompts.number(2), 'main')), 'I know 1 2')
      await harness.restart()
      assert.equal(reply(await harness.ask(workspace, modelPrompts.number(3), 'main')), 'I know 1 2 3')
    })
    if (subject.followsSettingsIn !== undefined) {
      const modes = subject.followsSettingsIn.map((mode) => ({ mode }))
      step('RT-18 resumed with another prompt', () => changePrompt(harness, modes))
      step('default model', () => leaveModel(harness, modes))
    }
    if (subject.reportsCost) step('RT-13 cost of a turn', () => compareCosts(harness))
    if (oneShot !== null) {
      step('one-shot', async () => {
        const other = await harness.workspace(oneShot)
        const warm = harness.agentProcesses()
        assert.equal(reply(await harness.ask(other, modelPrompts.number(1), 'main')), 'I know 1')
        assert.equal(reply(await harness.ask(other, modelPrompts.number(2), 'main')), 'I know 1 2')
        assert.ok(harness.agentProcesses().length <= warm.length, 'a program outlives the message that it answered')
      })
    }
    step('streamed', async () => {
      const texts = await harness.stream(workspace, modelPrompts.recite)
      assert.equal(texts.at(-1), recital)
      const partial = texts.filter((text) => text !== '' && text.length < recital.length && recital.startsWith(text))
      if (streams) assert.ok(partial.length > 1, `only ${partial.length} partial texts arrived before the whole`)
    })
    if (takesMcpServers) step('tool call', () => callTool(harness))
    if (delegatesIn.length > 0) step('TW-1 delegation', () => delegateTask(harness, delegatesIn))
    if (asks) step('one name for a tool', () => compareToolNames(harness))
    step('artifact', () => deliver(harness, workspace))
    step('rate limit', async () => {
      const message = { workspace, failure: 'rate limit', context: 'limited', text: modelPrompts.tooOften } as const
      assert.equal((await firstTry(harness, message)).category, 'rate_limited')
    })
    step('bad key', async () => {
      const locked = await openAgentHarness({ cli, runtime, model, key: 'sk-not-the-key' })
      try {
        const task = await locked.ask(await locked.workspace(), modelPrompts.number(1), 'main')
        assert.equal(failureCode(task), 'auth_failed')
      } finally {
        await locked.dispose()
      }
    })
    if (isFailingCli(cli)) {
      test('AG-19 failures', { timeout: STEP_MS_MAX }, async (t) => {
        for (const row of await runFailures(cli, runtime, model)) t.diagnostic(JSON.stringify(row))
      })
    }
    step('cancel', () => cancel(harness, workspace))
    step('two at once', () => twoAtOnce(harness, workspace))
    if (capsProcesses)
      step(`${CONVERSATIONS} conversations in ${WARM_MAX}`, async () => {
        const ownHarness = await openAgentHarness({ cli, runtime, model })
        try {
          await limitProcesses(ownHarness)
        } finally {
          await ownHarness.dispose()
        }
      })
    step('no process left', async () => {
      await harness.stop()
      assert.deepEqual(harness.processes(), [])
    })
  })
}

type Modes = readonly Readonly<Record<string, Json>>[]

/** A changed role reaches a conversation that has begun, in a warm process and in a resumed one. */
async function changePrompt(harness: AgentHarness, modes: Modes): Promise<void> {
  for (const mode of modes) {
    const workspace = await harness.workspace(mode)
    const say = async (word: string) => {
      await harness.platform.request('PATCH', `/workspaces/${workspace}`, { role: `The password is ${word}.` })
      return reply(await harness.ask(workspace, modelPrompts.password, 'prompt'))
    }
    assert.equal(await say('apple'), 'The password is apple.')
    assert.equal(await say('pear'), 'The password is pear.')
    await harness.restart()
    assert.equal(await say('plum'), 'The password is plum.')
    assert.equal(await limitsOf(harness, workspace), undefined)
    // Later workspaces read the roles of their colleagues.
    await harness.platform.request('PATCH', `/workspaces/${workspace}`, { role: '' })
  }
}

const limitsOf = async ({ platform }: AgentHarness, workspace: string): Promise<unknown> =>
  (await platform.request('GET', `/workspaces/${workspace}`)).body.limits

/** A conversation whose workspace loses its model gets the model that a new conversation gets. */
async function leaveModel(harness: AgentHarness, modes: Modes): Promise<void> {
  for (const mode of modes) {
    const workspace = await harness.workspace(mode)
    const ask = async (context: string) => reply(await harness.ask(workspace, modelPrompts.model, context))
    const setModel = (model: string | null) => harness.platform.request('PATCH', `/workspaces/${workspace}`, { model })
    await setModel(null)
    const usual = await ask('new')
    await setModel(harness.home.otherModel)
    const other = await ask('switched')
    assert.notEqual(other, usual)
    await setModel(null)
    for (const _ of [1, 2]) assert.equal(await ask('switched'), usual)
    await setModel(harness.home.otherModel)
    assert.equal(await ask('switched'), other)
    await harness.restart()
    await setModel(null)
    assert.equal(await ask('switched'), usual)
  }
}

/** Turns of the same size cost the same: warm, resumed and one-shot. */
async function compareCosts(harness: AgentHarness): Promise<void> {
  for (const mode of ['session', 'oneshot']) {
    const workspace = await harness.workspace({ mode })
    const total = async () => (await harness.platform.request('GET', `/workspaces/${workspace}`)).body.today
    const costs: number[] = []
    for (const n of [1, 2, 3]) {
      if (n === 3) await harness.restart()
      const spent = (await total())?.cost_usd ?? 0
      assert.ok(reply(await harness.ask(workspace, modelPrompts.number(n), 'cost')) !== '')
      costs.push((await total()).cost_usd - spent)
    }
    const [first = 0] = costs
    assert.ok(first > 0, `mode ${mode} reports no cost`)
    for (const cost of costs) assert.ok(Math.abs(cost - first) < first / 100, `${mode}: ${costs.join(' ')}`)
    assert.equal((await total()).unknown_turns, 0)
  }
}

/** The agent calls a tool of an MCP server that its workspace configures. */
async function callTool(harness: AgentHarness): Promise<void> {
  const lucky = { command: process.execPath, args: [MCP_SERVER], env: { LUCKY_NUMBER: LUCKY } }
  const workspace = await harness.workspace({ mcp_servers: { lucky } })
  const text = reply(await harness.ask(workspace, modelPrompts.useTool, 'tool'))
  assert.match(text, new RegExp(`The tool said: .*${LUCKY} for seven`, 's'))
}

/** The agent calls delegate_task of the server that it gets without a setting; its answer has that of its peer. */
async function delegateTask(harness: AgentHarness, modes: readonly string[]): Promise<void> {
  await harness.platform.exec('printf "colleague knows: "; cat', { name: 'colleague' })
  for (const mode of modes) {
    // No person is asked for the tools of this server.
    const workspace = await harness.workspace({ mode, permission: mode === 'session' ? 'ask' : 'allowed_tools' })
    const text = reply(await harness.ask(workspace, modelPrompts.delegate, 'team'))
    assert.match(text, /The tool said: .*colleague knows: the weather/s)
  }
}

/** A permission ask and the log show the same tool and subject, and `allowed_tools` takes them (AG-19). */
async function compareToolNames(harness: AgentHarness): Promise<void> {
  const { platform } = harness
  const asking = await harness.workspace({ permission: 'ask' })
  const taskId = await harness.begin(asking, modelPrompts.deliver, 'named')
  let pending: { id: string; tool: string; subject: string }[] = []
  await waitUntil(async () => {
    pending = (await platform.request('GET', `/pending?workspace_id=${asking}`)).body.pending
    return pending.length > 0
  }, 'the agent asks')
  const [{ id = '', tool = '', subject = '' } = {}] = pending
  await platform.request('POST', `/pending/${id}`, { decision: 'allow' })
  assert.equal((await waitForFinalTask(platform, asking, taskId)).status.state, 'TASK_STATE_COMPLETED')
  const { activity } = (await platform.request('GET', `/workspaces/${asking}/activity?type=tool`)).body
  const shown = activity.map((entry: { name: string; subject?: string }) => `${entry.name}(${entry.subject})`)
  assert.deepEqual([...new Set(shown)], [`${tool}(${subject})`])
  const allowing = await harness.workspace({ permission: 'ask', allowed_tools: shown[0] })
  assert.equal(reply(await harness.ask(allowing, modelPrompts.deliver, 'allowed')), 'It is delivered.')
}

/** A file that the agent writes into its outbox arrives with the task, byte for byte, and only once. */
async function deliver(harness: AgentHarness, workspace: string): Promise<void> {
  const task = await harness.ask(workspace, modelPrompts.deliver, 'delivered')
  assert.equal(reply(task), 'It is delivered.')
  const raw = delivery.content.toString('base64')
  const file = { raw, filename: delivery.name, mediaType: 'application/octet-stream' }
  assert.deepEqual(filesOf(task), [{ name: delivery.name, parts: [file] }])
  const next = await harness.ask(workspace, modelPrompts.answer, 'delivered')
  assert.equal(reply(next), 'Here you are.')
  assert.deepEqual(filesOf(next), [])
}

/** Cancels while a child of the agent's shell runs in its own process session; the conversation continues afterwards. */
async function cancel(harness: AgentHarness, workspace: string): Promise<void> {
  assert.equal(reply(await harness.ask(workspace, modelPrompts.number(1), 'canceled')), 'I know 1')
  const seconds = 100_000 + Math.floor(Math.random() * 100_000)
  const toolPids = () => pidsWithCommandLine(`sleep ${seconds}`)
  const taskId = await harness.begin(workspace, modelPrompts.linger(seconds), 'canceled')
  // The command line of the shell contains this text too; that of the tool is exactly this text.
  const isToolRunning = () => harness.processes().some(({ commandLine }) => commandLine === `sleep ${seconds}`)
  await waitUntil(isToolRunning, "the agent's tool runs", TOOL_START_MS_MAX)
  const { body } = await harness.platform.rpc(workspace, 'CancelTask', { id: taskId })
  assert.equal(body.result.status.state, 'TASK_STATE_CANCELED')
  await waitUntil(() => toolPids().length === 0, "the agent's tool has ended", CANCEL_MS_MAX)
  assert.equal(reply(await harness.ask(workspace, modelPrompts.number(2), 'canceled')), 'I know 1 2')
}

/** More conversations than warm_max allows processes: each is answered twice with its memory, within the limit. */
async function limitProcesses(harness: AgentHarness): Promise<void> {
  const shape = { slots: CONVERSATIONS, attempts: ATTEMPTS }
  const workspace = await harness.workspace({ warm_max: WARM_MAX, warm_idle: WARM_IDLE }, shape)
  // The first codex in a new home creates a database. When several start there at once, some of them fail.
  assert.equal(reply(await harness.ask(workspace, modelPrompts.answer, 'first')), 'Here you are.')
  let most: readonly LiveProcess[] = []
  const watching = new AbortController()
  const watch = async () => {
    while (!watching.signal.aborted) {
      const now = harness.agentProcesses()
      if (now.length > most.length) most = now
      // The look at /proc is synchronous; without a pause the fake model, in this process, could not answer.
      await delay(WATCH_MS)
    }
  }
  const watched = watch()
  const contexts = Array.from({ length: CONVERSATIONS }, (_, n) => `capped-${n}`)
  try {
    for (const n of [1, 2]) {
      const tasks = await Promise.all(
        contexts.map((context) => harness.ask(workspace, modelPrompts.number(n), context)),
      )
      for (const task of tasks) assert.equal(reply(task), n === 1 ? 'I know 1' : 'I know 1 2')
    }
    await waitUntil(() => harness.agentProcesses().length === 0, 'idle processes are closed', IDLE_MS_MAX)
  } finally {
    watching.abort()
    await watched
  }
  assert.ok(most.length > 1 && most.length <= WARM_MAX, JSON.stringify(most))
}

/** Two messages at once run one after the other, in either order, and the second knows of the first. */
async function twoAtOnce(harness: AgentHarness, workspace: string): Promise<void> {
  const both = await Promise.all([1, 2].map((n) => harness.ask(workspace, modelPrompts.number(n), 'two')))
  const known = both.map(reply).sort((a, b) => a.length - b.length)
  assert.match(known.join(', '), /^I know (1, I know 1 2|2, I know 2 1)$/)
  assert.equal(reply(await harness.ask(workspace, modelPrompts.number(3), 'two')), `${known[1]} 3`)
}

/** The reply of a task, which must have completed. */
function reply(task: Task): string {
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(task.status))
  return replyText(task) ?? ''
}

/** All artifacts except the reply, which has no name. */
const filesOf = ({ artifacts = [] }: Task) =>
  artifacts.flatMap(({ name, parts }) => (name === undefined ? [] : [{ name, parts }]))

function failureCode(task: Task): unknown {
  assert.equal(task.status.state, 'TASK_STATE_FAILED', JSON.stringify(task.status))
  return task.status.message?.metadata?.['code']
}
