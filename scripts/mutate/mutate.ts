/**
 * `npm run test:mutate` breaks the source in one place at a time and runs the tests of that room. A mutant that no test
 * notices survives: a test is missing, or the change makes no difference and is accepted in `test/accepted-mutants.ts`.
 *
 *   npm run test:mutate -- --sample 60 --seed 1 --room inbox
 *   npm run test:mutate -- --at src/inbox/commands/claim.ts:71
 *   npm run test:mutate -- --at src/inbox/commands/claim.ts --test test/contracts/sqlite.test.ts
 *
 * It first leaves out what does not compile (`mutate-types.ts`) and measures which tests run which part of the source
 * (`mutate-coverage.ts`): some ten minutes for the first time. A kill is kept for the next run (`mutate-verdicts.ts`).
 *
 * Invariant: it changes only copies of the repository in a temporary folder.
 */
import { spawn } from 'node:child_process'
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { parseSync } from 'oxc-parser'
import { ACCEPTED } from '../../test/accepted-mutants.ts'
import { createRandom } from '../../test/crash/random.ts'
import { findDescendants } from '../test-watch.mjs'
import { type AcceptedRule, findRule, unusedEdits } from './accepted.ts'
import { applyMutant, findMutants, type Mutant } from './mutants.ts'
import { copyRepository } from './mutate-copy.ts'
import {
  measureCoverage,
  readCoverage,
  type TestCoverage,
  testFiles,
  testsOf,
  writeCoverage,
} from './mutate-coverage.ts'
import { withoutTypeErrors } from './mutate-types.ts'
import { readKill, writeKill } from './mutate-verdicts.ts'

export interface Verdict {
  readonly mutant: Mutant
  /** The tests that failed or did not end; undefined = the mutant survived. */
  readonly killedBy: string | undefined
  readonly ms: number
}

interface MutationOptions {
  readonly root: string
  readonly mutants: readonly Mutant[]
  readonly workers: number
  readonly signal: AbortSignal
  /** Only these test files judge, and no kept kill counts; undefined = all that run the mutant. */
  readonly tests?: readonly string[]
  /** Added to the limit of each test run. */
  readonly extraMs?: number
  readonly onVerdict?: (verdict: Verdict) => void
  readonly report?: (line: string) => void
}

const ROOMS = ['inbox', 'views', 'workspaces', 'doors/http', 'runtime', 'client']
const SCORE_MIN = 0.85
/** About one mutant in four does not compile and is left out. */
const DRAWN_SHARE = 1.6
/** A mutant may be this much slower than the unchanged source, on a machine that does other work, before it counts as hung. */
const SLOWER = 4
const EXTRA_MS = 20_000
/** How long the rest of the output may take after the exit. */
const PIPE_MS = 1000
/** A test file must pass on the unchanged source within this time. */
const BASELINE_MS = 300_000
/** A test file that fails once on a busy machine would be left out, and all that it alone proves would survive. */
const BASELINE_TRIES = 2
/** After this time of passed tests only the contract suites below still run: a mutant that they miss too survives. */
const TESTS_MS_MAX = 60_000
/** They prove the seams. Their files are long, so the short end-to-end tests come before them and use up the time. */
const CONTRACTS = /^test\/contracts\/(?:backends\/(?:a2a|mcp)|sqlite|inbox-model-sqlite)\.test\.ts$/

/** Runs the tests on each mutant. A test file that fails on the unchanged source is no proof: it is named and left out. */
export async function runMutants(options: MutationOptions): Promise<Verdict[]> {
  const { root, workers, signal, onVerdict } = options
  const copies = Array.from({ length: workers }, () => copyRepository(root))
  try {
    const verdicts: Verdict[] = []
    const say = (verdict: Verdict) => {
      verdicts.push(verdict)
      onVerdict?.(verdict)
    }
    const keptKill = (mutant: Mutant) => (options.tests === undefined ? readKill(root, mutant) : undefined)
    const known = new Map(options.mutants.map((mutant) => [mutant, keptKill(mutant)]))
    for (const [mutant, killedBy] of known)
      if (killedBy !== undefined && !signal.aborted) say({ mutant, killedBy, ms: 0 })
    const rest = options.mutants.filter((mutant) => known.get(mutant) === undefined)
    const coverage = rest.length > 0 ? await measureTests(copies, options) : []
    await forEach(rest, { copies, signal }, async (mutant, copy) => {
      const tests = testsOf(coverage, mutant.file, mutant.start)
      const { killers, ...verdict } = await judge({ mutant, copy, tests, signal, extraMs: options.extraMs ?? EXTRA_MS })
      if (signal.aborted) return
      if (verdict.killedBy !== undefined && killers.length > 0)
        writeKill(root, mutant, { killedBy: verdict.killedBy, tests: killers })
      say(verdict)
    })
    return verdicts
  } finally {
    for (const copy of copies) rmSync(copy, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** The coverage of all test files: what is known from an earlier run, and what is measured now in the copies. */
async function measureTests(copies: readonly string[], options: MutationOptions): Promise<TestCoverage[]> {
  const { root, signal, report = () => undefined, tests = testFiles(root) } = options
  const coverage = tests.flatMap((test) => readCoverage(root, test) ?? [])
  const missing = tests.filter((test) => !coverage.some((known) => known.test === test))
  report(`Measuring what ${missing.length} test files run`)
  await forEach(missing, { copies, signal }, async (test, copy) => {
    const failures: string[] = []
    while (failures.length < BASELINE_TRIES) {
      const failedBefore = failures.length
      const measured = await measureCoverage(copy, test, async (env) => {
        const { passed, ms, output } = await runStep({ tests: [test], copy, limitMs: BASELINE_MS, signal, env })
        if (!passed) failures.push(output)
        return { ms }
      })
      if (signal.aborted) return
      if (failures.length > failedBefore) continue
      coverage.push(measured)
      writeCoverage(root, measured)
      return
    }
    report(`${test} fails on the unchanged source and is left out:\n${failures.at(-1)}`)
  })
  return coverage
}

/** Handles each item in the next free copy of the repository, until the signal aborts. */
async function forEach<T>(
  items: readonly T[],
  { copies, signal }: { readonly copies: readonly string[]; readonly signal: AbortSignal },
  handle: (item: T, copy: string) => Promise<void>,
): Promise<void> {
  const rest = [...items]
  const lane = async (copy: string) => {
    for (let item = rest.shift(); item !== undefined && !signal.aborted; item = rest.shift()) await handle(item, copy)
  }
  const lanes = await Promise.allSettled(copies.map(lane))
  for (const each of lanes) if (each.status === 'rejected') throw each.reason
}

interface JudgeOptions {
  readonly mutant: Mutant
  readonly tests: readonly TestCoverage[]
  readonly copy: string
  readonly extraMs: number
  readonly signal: AbortSignal
}

/** `killers` are the test files of the run with the failed test; none if it did not end, which a busy machine does too. */
async function judge(options: JudgeOptions): Promise<Verdict & { readonly killers: readonly string[] }> {
  const { mutant, copy, tests, extraMs, signal } = options
  const path = join(copy, mutant.file)
  const source = readFileSync(path, 'utf8')
  let spentMs = 0
  for (const run of runsOf(tests)) {
    const baselineMs = run.reduce((sum, each) => sum + each.ms, 0)
    if (spentMs > TESTS_MS_MAX && !run.some(({ test }) => CONTRACTS.test(test))) continue
    writeFileSync(path, applyMutant(source, mutant))
    const step = { tests: run.map(({ test }) => test), copy, limitMs: baselineMs * SLOWER + extraMs, signal }
    const { passed, ms, failed } = await runStep(step).finally(() => writeFileSync(path, source))
    spentMs += ms
    const killedBy = `${step.tests[0] ?? ''}: ${failed ?? 'it did not end'}`
    if (!passed) return { mutant, killedBy, ms: spentMs, killers: failed === undefined ? [] : step.tests }
  }
  return { mutant, killedBy: undefined, ms: spentMs, killers: [] }
}

/** The unit tests run in one process, each other file in its own. */
function runsOf(tests: readonly TestCoverage[]): TestCoverage[][] {
  const units = tests.filter(({ test }) => test.startsWith('src/'))
  const others = tests.filter(({ test }) => !test.startsWith('src/')).map((each) => [each])
  return units.length > 0 ? [units, ...others] : others
}

interface StepOptions {
  readonly tests: readonly string[]
  readonly copy: string
  readonly limitMs: number
  readonly signal: AbortSignal
  readonly env?: Readonly<Record<string, string>>
}

/** Runs tests in one process until the first failure, the limit or the abort, and leaves no process. */
async function runStep({ tests, copy, limitMs, signal, env: added }: StepOptions) {
  const startMs = performance.now()
  // A run inside a test process would report to that process: Node sees this variable.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const argv = [
    '--test-reporter=tap',
    join(import.meta.dirname, '..', 'unit-tests.mjs'),
    ...tests.map((test) => join(copy, test)),
  ]
  const child = spawn(process.execPath, argv, {
    cwd: copy,
    env: { ...env, ...added },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = Promise.withResolvers<number | null>()
  let output = ''
  let failed: string | undefined
  const stop = () => {
    for (const pid of child.pid === undefined ? [] : [child.pid, ...findDescendants(child.pid)]) killProcess(pid)
    ended.resolve(null)
  }
  const timer = setTimeout(stop, limitMs)
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      const all = output + text
      failed ??= /^ *not ok \d+ (?:- )?((?!.*# (?:TODO|SKIP)).*)\n/m.exec(all)?.[1]
      output = all.slice(-4000)
      if (failed !== undefined) stop()
    })
  }
  child.on('error', ended.reject)
  // The name of the failed test may arrive after the exit; a process that a test left behind may keep the pipe open.
  child.on('close', ended.resolve)
  child.on('exit', (code) => setTimeout(ended.resolve, PIPE_MS, code).unref())
  try {
    const passed = (await ended.promise) === 0
    return { passed, ms: performance.now() - startMs, output, failed }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** So many of the items, the same ones for the same seed. */
export function sample<T>(items: readonly T[], size: number, seed: number): T[] {
  const random = createRandom(seed)
  const rest = [...items]
  const chosen: T[] = []
  while (chosen.length < size && rest.length > 0) chosen.push(...rest.splice(random.whole(rest.length), 1))
  return chosen
}

/** Survivors that nobody accepted, and the share of the other mutants that tests noticed. */
export function scoreOf(verdicts: readonly Verdict[], rules: readonly AcceptedRule[]) {
  const isAccepted = ({ mutant }: Verdict) => findRule(rules, mutant) !== undefined
  const survivors = verdicts.filter((verdict) => verdict.killedBy === undefined)
  const counted = survivors.filter((verdict) => !isAccepted(verdict))
  const killed = verdicts.length - survivors.length
  const judged = killed + counted.length
  return {
    killed,
    survivors: counted,
    accepted: survivors.length - counted.length,
    score: judged ? killed / judged : 1,
  }
}

/** The source files of a room, without its tests. */
function sourcesOf(root: string, room: string): string[] {
  const files = globSync(`src/${room}/**/*.ts`, { cwd: root })
  return files.filter((file) => !file.endsWith('.test.ts')).sort()
}

const formatMutant = ({ file, line, source, change }: Mutant) => `${file}:${line}\n  - ${source}\n  + ${change}`

async function main(): Promise<void> {
  const root = resolve(import.meta.dirname, '..', '..')
  const options = {
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    room: { type: 'string', multiple: true },
    at: { type: 'string', multiple: true },
    test: { type: 'string', multiple: true },
    workers: { type: 'string', default: String(availableParallelism()) },
  } as const
  const { values } = parseArgs({ options })
  const rooms = values.room ?? ROOMS
  const unknown = rooms.find((room) => !ROOMS.includes(room))
  if (unknown !== undefined) throw new Error(`No room ${unknown}; there are ${ROOMS.join(', ')}.`)
  const read = (file: string) => readFileSync(join(root, file), 'utf8')
  const all = rooms.flatMap((room) => sourcesOf(root, room)).flatMap((file) => findMutants(file, read(file)))
  const parses = (mutant: Mutant) => parseSync(mutant.file, applyMutant(read(mutant.file), mutant)).errors.length === 0
  const chosen = all.filter(
    ({ file, line }) => values.at?.some((at) => at === file || at === `${file}:${line}`) ?? true,
  )
  const size = Number(values.sample ?? chosen.length)
  const drawn = sample(chosen, Math.ceil(size * DRAWN_SHARE), Number(values.seed)).filter(parses)
  const mutants = withoutTypeErrors(root, drawn).slice(0, size)
  if (mutants.length === 0) throw new Error('No mutant that compiles matches --sample, --room and --at.')
  const workers = Number(values.workers)
  if (!Number.isInteger(workers) || workers < 1) throw new Error('--workers must be a whole number from 1.')
  if (values.room === undefined) for (const edit of unusedEdits(ACCEPTED, all)) console.log(`Accepts nothing: ${edit}`)
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort())
  console.log(`${mutants.length} of ${all.length} mutants`)
  const verdicts = await runMutants({
    root,
    mutants,
    workers: Math.min(workers, mutants.length),
    signal: stop.signal,
    ...(values.test && { tests: values.test }),
    report: console.log,
    onVerdict: ({ mutant, killedBy, ms }) =>
      console.log(
        `${(ms / 1000).toFixed(1)} s ${killedBy ? `killed by ${killedBy}` : 'SURVIVED'} ${formatMutant(mutant)}`,
      ),
  })
  if (stop.signal.aborted) console.log(`Stopped after ${verdicts.length} of ${mutants.length} mutants.`)
  const result = scoreOf(verdicts, ACCEPTED)
  console.log(`\nSurvivors\n\n${result.survivors.map(({ mutant }) => formatMutant(mutant)).join('\n')}\n`)
  const seconds = verdicts.reduce((sum, { ms }) => sum + ms, 0) / 1000
  console.log(`killed ${result.killed}, survived ${result.survivors.length}, accepted ${result.accepted}`)
  console.log(
    `score ${(result.score * 100).toFixed(1)} %, ${(seconds / Math.max(1, verdicts.length)).toFixed(1)} s for each mutant`,
  )
  process.exitCode = stop.signal.aborted || result.score < SCORE_MIN ? 1 : 0
}

if (import.meta.main) await main()
