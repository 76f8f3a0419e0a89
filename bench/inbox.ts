/**
 * Messages per second of the inbox. On SQLite: against the same transactions with one commit for each operation (admit,
 * or lease and then settle), which shows the value of shared commits. On PostgreSQL: against pg-boss with the same job
 * on the same server. Alternating slices in one process; medians. Also the delay of the event loop under that load, and
 * the CPU use when idle afterwards.
 *
 * A shared commit saves the cost of a commit. On a disk that syncs in a fraction of a millisecond there is little to
 * save, so that ratio is reported without a bound. SQLite is therefore measured again with slower commits on both
 * sides.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '../src/clock.ts'
import { silentLog } from '../src/log.ts'
import { openPostgres } from '../src/store/postgres/postgres.ts'
import { openSqlite } from '../src/store/sqlite/sqlite.ts'
import type { Store } from '../src/store/store.ts'
import { startPostgres } from '../test/harness/stores/postgres.ts'
import { CALLERS, type InboxBenchmark, openInboxBenchmark } from './inbox/inbox-benchmark.ts'
import { oneCommitEach, openPgBoss, settleOneByOne } from './inbox/peers.ts'
import { alternate, median } from './measure.ts'

const ROUNDS = 10
/** Per slice. One sender may fill half of the queue of a workspace, which holds 1,000 messages. */
const SQLITE_MESSAGES = 480
const POSTGRES_MESSAGES = 960
const IDLE_MS = 5000

const GROUP_RATIO_MIN = 10
/** The bound applies to commits that take at least this long. */
const BOUNDED_COMMIT_MS_MIN = 0.6
/** Added to each commit in the second measurement, for about a millisecond in all, as on most disks. */
const ADDED_COMMIT_MS = 0.8
const BOSS_RATIO_MIN = 2
const LOOP_DELAY_MS_MAX = 50
const IDLE_PERCENT_MAX = 1

interface Result {
  readonly line: string
  readonly met: boolean
}

const results: Result[] = []
const report = (line: string, met = true) => {
  console.log(line)
  results.push({ line, met })
}
const perSecond = (count: number, tookMs: readonly number[]) =>
  `${Math.round((count / median(tookMs)) * 1000).toLocaleString('en')}/s`.padStart(8)

interface CompareOptions {
  readonly name: string
  readonly count: number
  readonly ours: readonly [string, readonly number[]]
  readonly theirs: readonly [string, readonly number[]]
  /** Undefined = no bound. */
  readonly ratioMin: number | undefined
}

function compare({ name, count, ours, theirs, ratioMin }: CompareOptions): string {
  const ratio = median(theirs[1]) / median(ours[1])
  const sides = [ours, theirs].map(([side, times]) => `${side} ${perSecond(count, times)}`).join('   ')
  const bound = ratioMin === undefined ? '' : ` (at least ${ratioMin}x)`
  report(`  ${name.padEnd(16)} ${sides}   ${ratio.toFixed(1)}x${bound}`, ratioMin === undefined || ratio >= ratioMin)
  return `${name} ${ratio.toFixed(1)}x`
}

/** Measures the event-loop delay while the work runs; adds its 99th percentile to `p99sMs`. */
async function measureLoopDelay(p99sMs: number[], work: () => Promise<unknown>): Promise<void> {
  // A new monitor each time: a disabled one counts the time until it is enabled again as a delay.
  const loop = monitorEventLoopDelay({ resolution: 1 })
  loop.enable()
  await work()
  loop.disable()
  p99sMs.push(loop.percentile(99) / 1e6)
}

function reportLoopDelay(p99sMs: readonly number[]): void {
  const worstMs = Math.max(...p99sMs)
  const line = `  event-loop delay p99 ${median(p99sMs).toFixed(1)} ms, worst slice ${worstMs.toFixed(1)} ms (under ${LOOP_DELAY_MS_MAX} ms)`
  report(line, worstMs < LOOP_DELAY_MS_MAX)
}

async function benchSqlite(
  group: InboxBenchmark,
  store: Store,
  { isBounded: alwaysBounded }: { isBounded: boolean },
): Promise<string[]> {
  const alone = await openBenchmark(store, { workspaces: 1, slots: CALLERS })
  const shape = `one workspace of ${CALLERS} slots`
  console.log(`SQLite, synchronous = FULL, ${CALLERS} callers, ${shape}, slices of ${SQLITE_MESSAGES} messages`)
  const p99sMs: number[] = []
  const times = {
    groupAdmit: [] as number[],
    groupSettle: [] as number[],
    aloneAdmit: [] as number[],
    aloneSettle: [] as number[],
  }
  const grouped = async (admits: number[], settles: number[]) => {
    admits.push(await group.admit(SQLITE_MESSAGES))
    settles.push(await group.settle(SQLITE_MESSAGES))
  }
  const separate = async (admits: number[], settles: number[]) => {
    admits.push(await alone.admit(SQLITE_MESSAGES))
    settles.push(await settleOneByOne(store, alone.workspaceId, SQLITE_MESSAGES))
  }
  await grouped([], [])
  await separate([], [])
  await alternate({
    rounds: ROUNDS,
    contenders: {
      group: () => measureLoopDelay(p99sMs, () => grouped(times.groupAdmit, times.groupSettle)),
      alone: () => separate(times.aloneAdmit, times.aloneSettle),
    },
  })
  const commitMs = (median(times.aloneAdmit) - median(times.groupAdmit)) / SQLITE_MESSAGES
  const isBounded = alwaysBounded || commitMs >= BOUNDED_COMMIT_MS_MIN
  const shared = { count: SQLITE_MESSAGES, ratioMin: isBounded ? GROUP_RATIO_MIN : undefined }
  const ratios = [
    compare({
      ...shared,
      name: 'admit',
      ours: ['group commit', times.groupAdmit],
      theirs: ['one commit each', times.aloneAdmit],
    }),
    compare({
      ...shared,
      name: 'lease + settle',
      ours: ['group commit', times.groupSettle],
      theirs: ['one commit each', times.aloneSettle],
    }),
  ]
  const note = isBounded ? '' : `: the bound of ${GROUP_RATIO_MIN}x applies from ${BOUNDED_COMMIT_MS_MIN} ms`
  console.log(`  a commit of its own costs ${commitMs.toFixed(2)} ms${note}`)
  reportLoopDelay(p99sMs)
  return ratios
}

/** Slows down every commit while the work runs, like a disk that takes longer to sync. */
async function withSlowerCommits<T>(work: () => Promise<T>): Promise<T> {
  const { exec } = DatabaseSync.prototype
  const neverNotified = new Int32Array(new SharedArrayBuffer(4))
  DatabaseSync.prototype.exec = function (text) {
    exec.call(this, text)
    if (text === 'commit') Atomics.wait(neverNotified, 0, 0, ADDED_COMMIT_MS)
  }
  try {
    return await work()
  } finally {
    DatabaseSync.prototype.exec = exec
  }
}

async function benchPostgres(benchmark: InboxBenchmark, url: string): Promise<string> {
  console.log(
    `PostgreSQL, fsync on, ${CALLERS} callers, ${CALLERS} workspaces of one slot, slices of ${POSTGRES_MESSAGES} messages`,
  )
  const p99sMs: number[] = []
  const boss = await openPgBoss(url)
  try {
    const times = { ours: [] as number[], boss: [] as number[] }
    await benchmark.serve(POSTGRES_MESSAGES)
    await boss.serve(POSTGRES_MESSAGES)
    await alternate({
      rounds: ROUNDS,
      contenders: {
        ours: () => measureLoopDelay(p99sMs, async () => times.ours.push(await benchmark.serve(POSTGRES_MESSAGES))),
        boss: async () => times.boss.push(await boss.serve(POSTGRES_MESSAGES)),
      },
    })
    const ratio = compare({
      name: 'a whole message',
      count: POSTGRES_MESSAGES,
      ours: ['admit, lease, settle', times.ours],
      theirs: ['pg-boss send, fetch, complete', times.boss],
      ratioMin: BOSS_RATIO_MIN,
    })
    reportLoopDelay(p99sMs)
    return ratio
  } finally {
    await boss.close()
  }
}

async function benchIdle(): Promise<void> {
  const before = process.cpuUsage()
  await delay(IDLE_MS)
  const { user, system } = process.cpuUsage(before)
  const percent = ((user + system) / 1000 / IDLE_MS) * 100
  report(
    `idle CPU over ${IDLE_MS / 1000} s with both open: ${percent.toFixed(2)} % (at most ${IDLE_PERCENT_MAX} %)`,
    percent <= IDLE_PERCENT_MAX,
  )
}

const folder = await mkdtemp(join(tmpdir(), 'molecule-bench-'))
const sqlite = (name: string) => openSqlite({ path: join(folder, name), clock: systemClock })
const server = await startPostgres()
const benchmarks: InboxBenchmark[] = []
const openBenchmark = async (...args: Parameters<typeof openInboxBenchmark>) => {
  const benchmark = await openInboxBenchmark(...args)
  benchmarks.push(benchmark)
  return benchmark
}
try {
  const shape = { workspaces: 1, slots: CALLERS }
  const alone = oneCommitEach(sqlite('alone.db'))
  const ratios = await benchSqlite(await openBenchmark(sqlite('group.db'), shape), alone, { isBounded: false })
  console.log(`The same with ${ADDED_COMMIT_MS} ms added to every commit`)
  const slower = await withSlowerCommits(async () => {
    const slowAlone = oneCommitEach(sqlite('slow-alone.db'))
    return benchSqlite(await openBenchmark(sqlite('slow-group.db'), shape), slowAlone, { isBounded: true })
  })
  const store = await openPostgres({ url: await server.url(), clock: systemClock, log: silentLog })
  const against = await benchPostgres(await openBenchmark(store, { workspaces: CALLERS, slots: 1 }), await server.url())
  await benchIdle()
  console.log(`ratio: ${ratios.join(', ')}; with slower commits ${slower.join(', ')}; against pg-boss ${against}`)
  for (const { line, met } of results) if (!met) console.log(`missed: ${line.trim()}`)
  if (results.some(({ met }) => !met)) process.exitCode = 1
} finally {
  for (const benchmark of benchmarks) await benchmark.close()
  await server.stop()
  await rm(folder, { recursive: true })
}
