/**
 * `npm run test:mutate` breaks the source in one place at a time and runs the tests of that room. A mutant that no test
 * notices survives: a test is missing, or the change makes no difference and is accepted in `test/accepted-mutants.json`.
 *
 *   npm run test:mutate -- --sample 60 --seed 1 --room inbox
 *   npm run test:mutate -- --at src/inbox/lease/claim.ts:71
 *
 * `--quick` leaves out the slow tests: a survivor then costs about a minute, and a few survivors are none.
 *
 * Invariant: it changes only copies of the repository in a temporary folder.
 */
import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { parseSync } from 'oxc-parser'
import { createRandom } from '../test/crash/random.ts'
import { applyMutant, findMutants, type Mutant } from './mutants.ts'
import { ROOMS, roomOf, sourcesOf, stepsOf, type TestStep } from './mutate-rooms.ts'
import { findDescendants } from './test-watch.mjs'

export interface Verdict {
  readonly mutant: Mutant
  /** The tests that failed or did not end; undefined = the mutant survived. */
  readonly killedBy: string | undefined
  readonly ms: number
}

export interface AcceptedMutant {
  readonly file: string
  readonly source: string
  readonly change: string
  readonly reason: string
}

interface MutationOptions {
  readonly root: string
  readonly mutants: readonly Mutant[]
  readonly stepsFor: (mutant: Mutant) => readonly TestStep[]
  readonly workers: number
  readonly signal: AbortSignal
  /** Added to the limit of each step. */
  readonly extraMs?: number
  readonly onVerdict?: (verdict: Verdict) => void
}

const SCORE_MIN = 0.85
const NOT_COPIED = ['node_modules', '.git']
/** A mutant may be this much slower than the unchanged source, on a machine that does other work, before it counts as hung. */
const SLOWER = 4
const EXTRA_MS = 20_000
/** The unchanged source must pass within this time. */
const BASELINE_MS = 300_000

/** Runs the tests on each mutant. Throws when they fail on the unchanged source. */
export async function runMutants(options: MutationOptions): Promise<Verdict[]> {
  const { root, mutants, stepsFor, workers, signal, extraMs = EXTRA_MS, onVerdict } = options
  const copies = Array.from({ length: workers }, () => copyRepository(root))
  // Before the first mutant changes a file: the tests of the copies are those of this moment.
  const work = mutants.map((mutant) => ({ mutant, steps: stepsFor(mutant) }))
  const limits = new Map<string, Promise<number>>()
  const limitOf = (step: TestStep, copy: string) => {
    const limit = limits.get(step.name) ?? measureLimit({ step, copy, limitMs: BASELINE_MS, signal }, extraMs)
    limits.set(step.name, limit)
    return limit
  }
  const verdicts: Verdict[] = []
  const lane = async (copy: string) => {
    for (let next = work.shift(); next !== undefined && !signal.aborted; next = work.shift()) {
      const verdict = await judge({ ...next, copy, limitOf, signal })
      if (signal.aborted) return
      verdicts.push(verdict)
      onVerdict?.(verdict)
    }
  }
  try {
    const lanes = await Promise.allSettled(copies.map(lane))
    for (const each of lanes) if (each.status === 'rejected') throw each.reason
    return verdicts
  } finally {
    for (const copy of copies) rmSync(copy, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Runs the step on the unchanged source, where it must pass; how long it may take on a mutant. */
async function measureLimit(options: StepOptions, extraMs: number): Promise<number> {
  const { passed, ms, output } = await runStep(options)
  if (!passed && !options.signal.aborted)
    throw new Error(`${options.step.name} fails on the unchanged source:\n${output}`)
  return ms * SLOWER + extraMs
}

function copyRepository(root: string): string {
  const copy = mkdtempSync(join(tmpdir(), `molecule-mutate-${process.pid}-`))
  cpSync(root, copy, { recursive: true, filter: (path) => !NOT_COPIED.includes(basename(path)) })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction')
  return copy
}

interface JudgeOptions {
  readonly mutant: Mutant
  readonly steps: readonly TestStep[]
  readonly copy: string
  /** Needs the unchanged source in the copy when it is called for a step for the first time. */
  readonly limitOf: (step: TestStep, copy: string) => Promise<number>
  readonly signal: AbortSignal
}

async function judge({ mutant, copy, steps, limitOf, signal }: JudgeOptions): Promise<Verdict> {
  const path = join(copy, mutant.file)
  const source = readFileSync(path, 'utf8')
  let spentMs = 0
  for (const step of steps) {
    const limitMs = await limitOf(step, copy)
    writeFileSync(path, applyMutant(source, mutant))
    const { passed, ms } = await runStep({ step, copy, limitMs, signal })
    writeFileSync(path, source)
    spentMs += ms
    if (!passed) return { mutant, killedBy: step.name, ms: spentMs }
  }
  return { mutant, killedBy: undefined, ms: spentMs }
}

interface StepOptions {
  readonly step: TestStep
  readonly copy: string
  readonly limitMs: number
  readonly signal: AbortSignal
}

/** Runs the tests of one step until the first failure, the limit or the abort, and leaves no process. */
async function runStep({ step, copy, limitMs, signal }: StepOptions) {
  const startMs = performance.now()
  // A run inside a test process would report to that process: Node sees this variable.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const argv = ['--test-reporter=tap', ...step.argv.map((part) => resolve(copy, part))]
  const child = spawn(process.execPath, argv, { cwd: copy, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = Promise.withResolvers<number | null>()
  let output = ''
  const stop = () => {
    for (const pid of child.pid === undefined ? [] : [child.pid, ...findDescendants(child.pid)]) killProcess(pid)
    ended.resolve(null)
  }
  const timer = setTimeout(stop, limitMs)
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-4000)
      if (/^ *not ok \d+ (?!.*# (?:TODO|SKIP))/m.test(output)) stop()
    })
  }
  child.on('error', ended.reject)
  child.on('exit', ended.resolve)
  try {
    const passed = (await ended.promise) === 0
    return { passed, ms: performance.now() - startMs, output }
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
export function scoreOf(verdicts: readonly Verdict[], accepted: readonly AcceptedMutant[]) {
  const isAccepted = ({ mutant }: Verdict) => accepted.some((each) => isSame(each, mutant))
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

function isSame(accepted: AcceptedMutant, mutant: Mutant): boolean {
  return accepted.file === mutant.file && accepted.source === mutant.source && accepted.change === mutant.change
}

const formatMutant = ({ file, line, source, change }: Mutant) => `${file}:${line}\n  - ${source}\n  + ${change}`

async function main(): Promise<void> {
  const root = resolve(import.meta.dirname, '..')
  const options = {
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    room: { type: 'string', multiple: true },
    at: { type: 'string', multiple: true },
    quick: { type: 'boolean', default: false },
  } as const
  const { values } = parseArgs({ options })
  const rooms = values.room ?? Object.keys(ROOMS)
  const unknown = rooms.find((room) => ROOMS[room] === undefined)
  if (unknown !== undefined) throw new Error(`No room ${unknown}; there are ${Object.keys(ROOMS).join(', ')}.`)
  const read = (file: string) => readFileSync(join(root, file), 'utf8')
  const accepted = JSON.parse(read('test/accepted-mutants.json')) as AcceptedMutant[]
  const all = rooms.flatMap((room) => sourcesOf(root, room)).flatMap((file) => findMutants(file, read(file)))
  const parses = (mutant: Mutant) => parseSync(mutant.file, applyMutant(read(mutant.file), mutant)).errors.length === 0
  const chosen = all.filter(({ file, line }) => values.at?.includes(`${file}:${line}`) ?? true)
  const mutants = sample(chosen, Number(values.sample ?? chosen.length), Number(values.seed)).filter(parses)
  for (const each of accepted.filter(({ file }) => rooms.includes(roomOf(file))))
    if (!all.some((mutant) => isSame(each, mutant)))
      console.log(`Accepted, but no longer in the source: ${each.file} ${each.change}`)
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort())
  console.log(`${mutants.length} of ${all.length} mutants`)
  const verdicts = await runMutants({
    ...{ root, mutants, workers: Math.min(availableParallelism(), Math.max(1, mutants.length)), signal: stop.signal },
    stepsFor: ({ file }) => stepsOf(root, file, values.quick),
    onVerdict: ({ mutant, killedBy, ms }) =>
      console.log(
        `${(ms / 1000).toFixed(1)} s ${killedBy ? `killed by ${killedBy}` : 'SURVIVED'} ${formatMutant(mutant)}`,
      ),
  })
  if (stop.signal.aborted) console.log(`Stopped after ${verdicts.length} of ${mutants.length} mutants.`)
  const result = scoreOf(verdicts, accepted)
  console.log(`\nSurvivors\n\n${result.survivors.map(({ mutant }) => formatMutant(mutant)).join('\n')}\n`)
  const seconds = verdicts.reduce((sum, { ms }) => sum + ms, 0) / 1000
  console.log(`killed ${result.killed}, survived ${result.survivors.length}, accepted ${result.accepted}`)
  console.log(
    `score ${(result.score * 100).toFixed(1)} %, ${(seconds / Math.max(1, verdicts.length)).toFixed(1)} s for each mutant`,
  )
  process.exitCode = stop.signal.aborted || result.score < SCORE_MIN ? 1 : 0
}

if (import.meta.main) await main()
