/**
 * A durable `SendMessage` that waits for its completed task, against the in-memory `@a2a-js/sdk` with express: 32
 * connections, a workspace of 64 slots, SQLite FULL, each server in its own process, alternating slices. Then the time
 * to the first event of a stream. Three pairs of processes are measured, because two processes that were started alike
 * differ by several percent for as long as they run.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { startPlatform } from '../test/harness/platform.ts'
import { firstEventMs, type LoadTarget, load, openConnections } from './load.ts'
import { alternate, median } from './measure.ts'

const CONNECTIONS = 32
const SLOTS = 64
const PAIRS = 3
const ROUNDS = 6
const SLICE_MS = 1500
const STREAM_ROUNDS = 40
const RATIO_MIN = 1.5
const FIRST_EVENT_RATIO_MAX = 2
/** The unit of CPU time in /proc. */
const TICK_US = 10_000

interface Contender {
  readonly pid: number
  readonly target: Omit<LoadTarget, 'body' | 'expected'>
}

let messages = 0

/** A new message in its own conversation each time. */
const bodyOf = (method: string) => () => {
  const message = { messageId: `bench-${process.pid}-${++messages}`, role: 'ROLE_USER', parts: [{ text: 'hello' }] }
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { message } })
}

function cpuUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_US
}

interface Slice {
  readonly perSecond: number
  readonly cpuUs: number
}

async function throughput(contenders: Readonly<Record<string, Contender>>): Promise<Record<string, Slice[]>> {
  const slices: Record<string, Slice[]> = {}
  const runs: Record<string, () => Promise<void>> = {}
  for (const [name, { pid, target: address }] of Object.entries(contenders)) {
    const target = { ...address, body: bodyOf('SendMessage'), expected: 'TASK_STATE_COMPLETED' }
    const connections = await openConnections(target, CONNECTIONS)
    const measured: Slice[] = []
    slices[name] = measured
    runs[name] = async () => {
      const [startMs, startUs] = [performance.now(), cpuUs(pid)]
      const answered = await load(connections, SLICE_MS)
      const perSecond = (answered * 1000) / (performance.now() - startMs)
      measured.push({ perSecond, cpuUs: (cpuUs(pid) - startUs) / answered })
    }
  }
  await alternate({ rounds: 2, contenders: runs })
  for (const warmUp of Object.values(slices)) warmUp.length = 0
  await alternate({ rounds: ROUNDS, contenders: runs })
  return slices
}

async function firstEvents(contenders: Readonly<Record<string, Contender>>): Promise<Record<string, number[]>> {
  const times: Record<string, number[]> = {}
  const runs = Object.entries(contenders).map(([name, { target: address }]) => {
    const measured: number[] = []
    times[name] = measured
    const target = { ...address, body: bodyOf('SendStreamingMessage'), expected: '"task"' }
    return [name, async () => void measured.push(await firstEventMs(target))] as const
  })
  await alternate({ rounds: STREAM_ROUNDS, contenders: Object.fromEntries(runs) })
  return times
}

interface PairResult {
  readonly slices: Readonly<Record<string, Slice[]>>
  readonly firstMs: Readonly<Record<string, number[]>>
}

/** Starts a platform and a peer and measures both. */
async function measurePair(): Promise<PairResult> {
  const platform = await startPlatform()
  const peer = spawn(process.execPath, [fileURLToPath(new URL('./peers/sdk-server.ts', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [announced] = await once(peer.stdout, 'data')
    const { body } = await platform.request('POST', '/workspaces', {
      name: 'bench',
      runtime: 'mock',
      max_concurrent_tasks: SLOTS,
    })
    const version = { 'A2A-Version': '1.0' }
    const contenders = {
      molecule: {
        pid: platform.pid,
        target: {
          port: Number(new URL(platform.url).port),
          path: `/workspaces/${body.id}/a2a`,
          headers: { ...version, Authorization: `Bearer ${platform.token}` },
        },
      },
      sdk: {
        pid: peer.pid as number,
        target: { port: Number(/\d+/.exec(String(announced))?.[0]), path: '/', headers: version },
      },
    }
    return { slices: await throughput(contenders), firstMs: await firstEvents(contenders) }
  } finally {
    peer.kill('SIGKILL')
    await platform.dispose()
  }
}

const pairs: PairResult[] = []
for (let pair = 0; pair < PAIRS; pair++) pairs.push(await measurePair())

const slicesOf = (name: string) => pairs.flatMap(({ slices }) => slices[name] ?? [])
const [molecule, sdk] = [slicesOf('molecule'), slicesOf('sdk')]
const describeSlices = (slices: readonly Slice[]) => {
  const [rate, cost] = [median(slices.map(({ perSecond }) => perSecond)), median(slices.map((slice) => slice.cpuUs))]
  return `${rate.toFixed(0)} requests/s, ${cost.toFixed(0)} us CPU each`
}
const ratio = median(molecule.map(({ perSecond }, round) => perSecond / (sdk[round]?.perSecond ?? Number.NaN)))
console.log(`molecule, durable   ${describeSlices(molecule)}`)
console.log(`sdk and express     ${describeSlices(sdk)}`)
console.log(`ratio, pair by pair ${ratio.toFixed(2)} (at least ${RATIO_MIN})`)
const firstOf = (name: string) => median(pairs.flatMap(({ firstMs }) => firstMs[name] ?? []))
const [ours, theirs] = [firstOf('molecule'), firstOf('sdk')]
const firstRatio = ours / theirs
console.log(
  `first stream event  ${ours.toFixed(2)} ms and ${theirs.toFixed(2)} ms, ratio ${firstRatio.toFixed(2)} (at most ${FIRST_EVENT_RATIO_MAX})`,
)
if (!(ratio >= RATIO_MIN && firstRatio <= FIRST_EVENT_RATIO_MAX)) process.exitCode = 1
