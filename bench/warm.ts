/**
 * What a warm agent saves, and what Molecule adds to it. For each real CLI on the fake model, it measures a follow-up
 * message through the platform warm, through the platform one-shot, and directly to the CLI in the same warm protocol.
 * Alternating in the same run; medians. `npm run bench -- warm claude` measures one CLI.
 *
 * Both sides have the same program, model and environment, the same number of processes, conversations of the same
 * length, and an open connection. The platform has handled about ten thousand messages before, so that its code is
 * compiled. Only Molecule's side has its own instructions in the prompt and two synced commits.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type AgentHarness, openAgentHarness } from '../test/agents/agent-harness.ts'
import { type Cli, findCli } from '../test/agents/clis.ts'
import { ensureInstalled } from '../test/agents/install-cli.ts'
import { runIsolated } from '../test/agents/run-isolated.ts'
import { modelPrompts } from '../test/fakes/agents/fake-model.ts'
import { type LoadTarget, load, openConnections } from './load.ts'
import { alternate, median, timeMs } from './measure.ts'
import { directAgents, type StartDirectAgent } from './warm/direct-agents.ts'

const ONE_SHOT_ROUNDS = 2
/** Measured: of six equal processes of one CLI, one answers a fifth faster than another for as long as it runs. */
const PAIRS = 5
const WARM_ROUNDS = 20
const WARM_UP_ROUNDS = 5
const ADDED_PERCENT_MAX = 10
/**
 * Measured: opencode is busy for 80 ms after its answer, claude for 5 ms, and the next contender pays for it, more so
 * the side with more processes. With a pause both start on an idle machine, like the next message of a person.
 */
const PAUSE_MS = 50
/** Enough for about ten thousand messages. */
const RUN_IN_MS = 2000
const RUN_IN_CONNECTIONS = 32
const ANSWER = 'Here you are.'

interface WarmBenchmark {
  readonly runtime: string
  readonly oneShot: Readonly<Record<string, string>>
  readonly startDirect: StartDirectAgent
  /** A one-shot message takes at least this many times as long as a warm one. */
  readonly timesMin: number
}

const WARM_BENCHMARKS: Readonly<Partial<Record<Cli['name'], WarmBenchmark>>> = {
  claude: { runtime: 'claude-code', oneShot: { mode: 'oneshot' }, startDirect: directAgents.claude, timesMin: 5 },
  codex: { runtime: 'codex', oneShot: { mode: 'oneshot' }, startDirect: directAgents.codex, timesMin: 2 },
  gemini: { runtime: 'gemini', oneShot: { mode: 'oneshot' }, startDirect: directAgents.gemini, timesMin: 20 },
  opencode: { runtime: 'opencode', oneShot: { mode: 'oneshot' }, startDirect: directAgents.opencode, timesMin: 8 },
}

const flag = { type: 'boolean', default: false } as const
const { values, positionals } = parseArgs({ options: { 'allow-network': flag, inside: flag }, allowPositionals: true })
const names = positionals.length > 0 ? positionals : Object.keys(WARM_BENCHMARKS)
if (values.inside) for (const name of names) await runBenchmark(findCli(name))
else {
  for (const name of names) await ensureInstalled(findCli(name))
  const again = [process.execPath, fileURLToPath(import.meta.url), '--inside', ...names]
  process.exitCode = await runIsolated(again, values['allow-network'])
}

async function runBenchmark(cli: Cli): Promise<void> {
  const benchmark = WARM_BENCHMARKS[cli.name]
  if (benchmark === undefined) throw new Error(`there is no warm benchmark for ${cli.name}`)
  const harness = await openAgentHarness({ cli, runtime: benchmark.runtime })
  try {
    await warmUpPlatform(harness)
    const workspace = await harness.workspace({ warm_max: '1' })
    const oneShot = await openConversation(harness, await harness.workspace(benchmark.oneShot))
    await oneShot()
    const pairs: PairTimes[] = []
    while (pairs.length < PAIRS)
      pairs.push(await measurePair(harness, { startDirect: benchmark.startDirect, workspace, oneShot }))
    const all = (times: (pair: PairTimes) => readonly number[] | undefined) =>
      median(pairs.flatMap((pair) => times(pair) ?? []))
    report(cli, benchmark, {
      firstMs: all(({ firstMs }) => [firstMs]),
      oneShotMs: all(({ cold }) => cold['oneShot']),
      besideOneShotMs: all(({ cold }) => cold['warm']),
      warmMs: all(({ added }) => added['warm']),
      directMs: all(({ added }) => added['direct']),
    })
  } finally {
    await harness.dispose()
  }
}

interface PairTimes {
  readonly firstMs: number
  readonly cold: Readonly<Record<string, number[]>>
  readonly added: Readonly<Record<string, number[]>>
}

/** Starts a new process on both sides, each with a new conversation. The agent of `workspace` is kept warm. */
async function measurePair(
  harness: AgentHarness,
  {
    startDirect,
    workspace,
    oneShot,
  }: { startDirect: StartDirectAgent; workspace: string; oneShot: () => Promise<void> },
): Promise<PairTimes> {
  const { bin, home } = harness
  const cwd = await mkdtemp(join(tmpdir(), 'molecule-warm-'))
  const direct = await startDirect({ bin, model: home.model, cwd, env: home.env })
  try {
    const warm = await openConversation(harness, workspace)
    const contenders = { warm, direct: () => direct.ask(modelPrompts.answer).then(expectAnswer) }
    const firstMs = await timeMs(warm)
    await contenders.direct()
    await alternate({ rounds: WARM_UP_ROUNDS, contenders })
    const cold = await alternate({ rounds: ONE_SHOT_ROUNDS, contenders: { warm, oneShot } })
    return { firstMs, cold, added: await alternate({ rounds: WARM_ROUNDS, contenders, pauseMs: PAUSE_MS }) }
  } finally {
    await direct.close()
    await rm(cwd, { recursive: true, force: true })
  }
}

/** Compiles the code of the platform, as on one that has been up for a day. */
async function warmUpPlatform({ platform }: AgentHarness): Promise<void> {
  const slots = { max_concurrent_tasks: RUN_IN_CONNECTIONS }
  const { body: workspace } = await platform.request('POST', '/workspaces', {
    name: 'run-in',
    runtime: 'mock',
    ...slots,
  })
  const message = () => ({ messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: modelPrompts.answer }] })
  const connections = await openConnections(
    targetOf(platform, workspace.id, { message, expected: 'COMPLETED' }),
    RUN_IN_CONNECTIONS,
  )
  await load(connections, RUN_IN_MS)
  for (const connection of connections) connection.close()
}

/** Returns a function that sends the next message of a new conversation. */
async function openConversation({ platform }: AgentHarness, id: string) {
  const contextId = crypto.randomUUID()
  const message = () => ({
    messageId: crypto.randomUUID(),
    contextId,
    role: 'ROLE_USER',
    parts: [{ text: modelPrompts.answer }],
  })
  const [connection] = await openConnections(targetOf(platform, id, { message, expected: `"text":"${ANSWER}"` }), 1)
  return () => connection?.send() ?? Promise.reject(new Error('no connection'))
}

function targetOf(
  { url, token }: AgentHarness['platform'],
  workspaceId: string,
  { message, expected }: { message: () => object; expected: string },
): LoadTarget {
  return {
    port: Number(new URL(url).port),
    path: `/workspaces/${workspaceId}/a2a`,
    headers: { Authorization: `Bearer ${token}` },
    body: () => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: message() } }),
    expected,
  }
}

/** A fast refusal must not look like speed. */
function expectAnswer(text: string): void {
  if (text !== ANSWER) throw new Error(`unexpected answer: ${text.slice(0, 1000)}`)
}

interface WarmMedians {
  /** A message that includes the start of the agent. */
  readonly firstMs: number
  readonly oneShotMs: number
  /** A warm message that alternates with one-shot messages. */
  readonly besideOneShotMs: number
  /** A warm message that alternates with direct messages. */
  readonly warmMs: number
  readonly directMs: number
}

function report({ name, version }: Cli, { timesMin }: WarmBenchmark, medians: WarmMedians): void {
  const { firstMs, oneShotMs, besideOneShotMs, warmMs, directMs } = medians
  const times = oneShotMs / besideOneShotMs
  const addedPercent = (warmMs / directMs - 1) * 100
  console.log(`${name} ${version}`)
  console.log(`  first message of a conversation    ${firstMs.toFixed(1)} ms`)
  console.log(`  one-shot through the platform  p50 ${oneShotMs.toFixed(1)} ms`)
  console.log(`  warm through the platform      p50 ${besideOneShotMs.toFixed(1)} ms`)
  console.log(`  ratio ${times.toFixed(1)} (at least ${timesMin})`)
  console.log(`  warm through the platform      p50 ${warmMs.toFixed(1)} ms`)
  console.log(`  warm, directly to the CLI      p50 ${directMs.toFixed(1)} ms`)
  console.log(
    `  added by Molecule ${(warmMs - directMs).toFixed(1)} ms, ${addedPercent.toFixed(0)} % (at most ${ADDED_PERCENT_MAX} %)`,
  )
  if (times < timesMin || addedPercent > ADDED_PERCENT_MAX) process.exitCode = 1
}
