/**
 * What a warm agent saves, and what Molecule adds to it: for each real CLI on the fake model, a message that follows
 * another in a conversation, through the platform warm, through the platform one-shot, and to the CLI by hand in the
 * same warm protocol. Same run, by turns; medians. `npm run bench -- warm claude` runs one of them.
 *
 * Either side has what the other has: the same program, model and inherited environment, as many processes one after the
 * other, conversations of the same length, a line that is open already (a pipe, a connection), and a client that does no
 * more than it must. The platform has been running for a while: a fresh one interprets code that it will have compiled a
 * thousand messages later. What is Molecule's own stays on its side: the words it adds to the instructions, and two
 * commits that are synced.
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
/** Measured: of six processes of one CLI, started alike, one answers by a fifth sooner than another, for all its life. */
const PAIRS = 5
const WARM_ROUNDS = 20
const WARM_UP_ROUNDS = 5
const ADDED_PERCENT_MAX = 10
/**
 * Measured: opencode is busy for 80 ms after it has answered, claude for 5, and whoever comes next pays for it, the side
 * with more processes more. With a pause both begin on a machine at rest, as a person's next message does.
 */
const PAUSE_MS = 50
/** About ten thousand messages. */
const RUN_IN_MS = 2000
const RUN_IN_CONNECTIONS = 32
const ANSWER = 'Here you are.'

interface WarmBenchmark {
  readonly runtime: string
  readonly oneShot: Readonly<Record<string, string>>
  readonly drive: StartDirectAgent
  /** How many times a one-shot takes as long as a warm message, at least. */
  readonly timesMin: number
}

const WARM_BENCHMARKS: Readonly<Partial<Record<Cli['name'], WarmBenchmark>>> = {
  claude: { runtime: 'claude-code', oneShot: { mode: 'oneshot' }, drive: directAgents.claude, timesMin: 5 },
  codex: { runtime: 'codex', oneShot: { mode: 'oneshot' }, drive: directAgents.codex, timesMin: 2 },
  gemini: { runtime: 'gemini', oneShot: { mode: 'oneshot' }, drive: directAgents.gemini, timesMin: 20 },
  opencode: { runtime: 'opencode', oneShot: { mode: 'oneshot' }, drive: directAgents.opencode, timesMin: 8 },
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
  const rules = WARM_BENCHMARKS[cli.name]
  if (rules === undefined) throw new Error(`There is no warm form of ${cli.name} to measure.`)
  const harness = await openAgentHarness({ cli, runtime: rules.runtime })
  try {
    await warmUpPlatform(harness)
    const workspace = await harness.workspace({ warm_max: '1' })
    const oneShot = await conversation(harness, await harness.workspace(rules.oneShot))
    await oneShot()
    const pairs: Measured[] = []
    while (pairs.length < PAIRS) pairs.push(await measurePair(harness, { drive: rules.drive, workspace, oneShot }))
    const all = (times: (pair: Measured) => readonly number[] | undefined) =>
      median(pairs.flatMap((pair) => times(pair) ?? []))
    report(cli, rules, {
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

interface Sides {
  readonly drive: StartDirectAgent
  /** Whose agent is kept warm. */
  readonly workspace: string
  readonly oneShot: () => Promise<void>
}

interface Measured {
  readonly firstMs: number
  readonly cold: Readonly<Record<string, number[]>>
  readonly added: Readonly<Record<string, number[]>>
}

/** A new process on either side, each with a conversation that begins with it. */
async function measurePair(harness: AgentHarness, { drive, workspace, oneShot }: Sides): Promise<Measured> {
  const { bin, home } = harness
  const cwd = await mkdtemp(join(tmpdir(), 'molecule-warm-'))
  const hand = await drive({ bin, model: home.model, cwd, env: home.env })
  try {
    const warm = await conversation(harness, workspace)
    const contenders = { warm, direct: () => hand.ask(modelPrompts.answer).then(expectAnswer) }
    const firstMs = await timeMs(warm)
    await contenders.direct()
    await alternate({ rounds: WARM_UP_ROUNDS, contenders })
    const cold = await alternate({ rounds: ONE_SHOT_ROUNDS, contenders: { warm, oneShot } })
    return { firstMs, cold, added: await alternate({ rounds: WARM_ROUNDS, contenders, pauseMs: PAUSE_MS }) }
  } finally {
    await hand.close()
    await rm(cwd, { recursive: true, force: true })
  }
}

/** What any platform has behind it that has been up for a day. */
async function warmUpPlatform({ platform }: AgentHarness): Promise<void> {
  const slots = { max_concurrent_tasks: RUN_IN_CONNECTIONS }
  const { body: workspace } = await platform.request('POST', '/workspaces', {
    name: 'run-in',
    runtime: 'mock',
    ...slots,
  })
  const message = () => ({ messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: modelPrompts.answer }] })
  const lines = await openConnections(
    targetOf(platform, workspace.id, { message, expected: 'COMPLETED' }),
    RUN_IN_CONNECTIONS,
  )
  await load(lines, RUN_IN_MS)
  for (const line of lines) line.close()
}

/** Sends one message more in a conversation of its own, each time that it is called. */
async function conversation({ platform }: AgentHarness, id: string) {
  const contextId = crypto.randomUUID()
  const message = () => ({
    ...{ messageId: crypto.randomUUID(), contextId, role: 'ROLE_USER' },
    parts: [{ text: modelPrompts.answer }],
  })
  const [line] = await openConnections(targetOf(platform, id, { message, expected: `"text":"${ANSWER}"` }), 1)
  return () => line?.ask() ?? Promise.reject(new Error('no line'))
}

interface Sending {
  readonly message: () => object
  readonly expected: string
}

function targetOf(
  { url, token }: AgentHarness['platform'],
  workspaceId: string,
  { message, expected }: Sending,
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
  if (text !== ANSWER) throw new Error(`not the answer expected: ${text.slice(0, 1000)}`)
}

interface Medians {
  /** One message, with the start of the agent. */
  readonly firstMs: number
  readonly oneShotMs: number
  readonly besideOneShotMs: number
  readonly warmMs: number
  readonly directMs: number
}

function report({ name, version }: Cli, { timesMin }: WarmBenchmark, medians: Medians): void {
  const { firstMs, oneShotMs, besideOneShotMs, warmMs, directMs } = medians
  const times = oneShotMs / besideOneShotMs
  const addedPercent = (warmMs / directMs - 1) * 100
  console.log(`${name} ${version}`)
  console.log(`  first message of a conversation    ${firstMs.toFixed(1)} ms`)
  console.log(`  one-shot through the platform  p50 ${oneShotMs.toFixed(1)} ms`)
  console.log(`  warm through the platform      p50 ${besideOneShotMs.toFixed(1)} ms`)
  console.log(`  ratio ${times.toFixed(1)} (at least ${timesMin})`)
  console.log(`  warm through the platform      p50 ${warmMs.toFixed(1)} ms`)
  console.log(`  warm by hand                   p50 ${directMs.toFixed(1)} ms`)
  console.log(
    `  added by Molecule ${(warmMs - directMs).toFixed(1)} ms, ${addedPercent.toFixed(0)} % (at most ${ADDED_PERCENT_MAX} %)`,
  )
  if (times < timesMin || addedPercent > ADDED_PERCENT_MAX) process.exitCode = 1
}
