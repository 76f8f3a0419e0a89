import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { type FakeModel, modelPrompts, recital, startFakeModel } from '../fakes/agents/fake-model.ts'
import { pidsOfSleep, pidsWithCommandLine } from '../harness/live-processes.ts'
import { replyText } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { agentContract } from './agent-contract.ts'
import { type AgentHarness, openAgentHarness } from './agent-harness.ts'
import { findCli } from './clis.ts'

agentContract('AG-14 openclaw', {
  cli: 'openclaw',
  runtime: 'openclaw',
  // Without a gateway both modes start a program for each message.
  oneShot: null,
  streams: false,
  takesMcpServers: false,
  delegatesIn: [],
  asks: false,
  capsProcesses: false,
})

const STEP_MS_MAX = 300_000
/** openclaw's default port; nothing else listens in the network namespace. */
const GATEWAY = 'http://127.0.0.1:18789'
const GATEWAY_START_MS_MAX = 180_000
const TOOL_START_MS_MAX = 90_000
const ONE_SHOT = { mode: 'oneshot' }

describe('AG-14 AG-6 openclaw with its gateway', () => {
  let model: FakeModel
  let harness: AgentHarness
  let gateway: ChildProcess
  let warm: string
  const step = (name: string, body: () => Promise<void>) => test(name, { timeout: STEP_MS_MAX }, body)
  const ask = async (workspace: string, text: string, context: string) => {
    const task = await harness.ask(workspace, text, context)
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(task.status))
    return replyText(task)
  }

  before(async () => {
    model = await startFakeModel()
    harness = await openAgentHarness({ cli: findCli('openclaw'), runtime: 'openclaw', model })
    gateway = startGateway(harness)
    await waitUntil(isGatewayUp, 'the gateway answers', GATEWAY_START_MS_MAX)
    warm = await harness.workspace()
  })
  after(async () => {
    gateway?.kill('SIGKILL')
    await harness?.dispose()
    await model?.stop()
  })

  step('gateway: over HTTP', async () => {
    for (const [n, known] of ['I know 1', 'I know 1 2'].entries()) {
      assert.equal(await ask(warm, modelPrompts.number(n + 1), 'main'), known)
    }
    // A turn over HTTP starts no program.
    assert.deepEqual(harness.processes(), [])
    const texts = await harness.stream(warm, modelPrompts.recite)
    assert.equal(texts.at(-1), recital)
    assert.ok(texts.length > 2, `only ${texts.length} pieces of text arrived`)
  })
  step('gateway: by the program', async () => {
    const oneShot = await harness.workspace(ONE_SHOT)
    assert.equal(await ask(oneShot, modelPrompts.number(1), 'main'), 'I know 1')
    assert.equal(await ask(oneShot, modelPrompts.number(2), 'main'), 'I know 1 2')
  })
  step('gateway: cancel', async () => {
    const seconds = 100_000 + Math.floor(Math.random() * 100_000)
    const sleeps = () => pidsOfSleep(String(seconds))
    const shells = () => pidsWithCommandLine(`sleep ${seconds}`).filter((pid) => !sleeps().includes(pid))
    const taskId = await harness.begin(warm, modelPrompts.linger(seconds), 'canceled')
    await waitUntil(() => shells().length > 0, "the agent's shell runs", TOOL_START_MS_MAX)
    const { body } = await harness.platform.rpc(warm, 'CancelTask', { id: taskId })
    assert.equal(body.result.status.state, 'TASK_STATE_CANCELED')
    await waitUntil(() => shells().length === 0, "the agent's shell has ended", TOOL_START_MS_MAX)
    // Its child in another process session belongs to the gateway, which leaves it alone.
    for (const pid of sleeps()) process.kill(pid, 'SIGKILL')
    assert.equal(await ask(warm, modelPrompts.number(2), 'canceled'), 'I know 2')
  })
  step('gateway: gone', async () => {
    const ended = once(gateway, 'exit')
    // Not SIGTERM: on a busy machine the gateway took minutes to end its work.
    gateway.kill('SIGKILL')
    await ended
    assert.equal(await ask(warm, modelPrompts.number(3), 'main'), 'I know 1 2 3')
  })
})

function startGateway({ bin, home }: AgentHarness): ChildProcess {
  const env = { PATH: process.env['PATH'], ...home.env }
  return spawn(bin, ['gateway', 'run'], { env, cwd: home.folder, stdio: 'ignore' })
}

const isGatewayUp = () =>
  fetch(`${GATEWAY}/healthz`).then(
    (answer) => answer.ok,
    () => false,
  )
