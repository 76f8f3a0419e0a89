/** Runs test files, some at a time, and prints one report: each test, then what failed, then the counts. */
import { resolve } from 'node:path'
import { spec } from 'node:test/reporters'
import { LIMITS, runFile } from './test-watch.mjs'

/**
 * @typedef {import('./test-watch.mjs').TestEvent} TestEvent
 *
 * @typedef {object} RunOptions
 * @property {string} title
 * @property {{ file: string, argv?: string[] }[]} files
 * @property {number} lanes how many files run at once
 * @property {string[]} [patterns] of test titles
 * @property {import('./test-watch.mjs').Limits} [limits]
 */

/** Files that are named with their time after a long run. */
const SLOWEST = 20

/**
 * Runs the files and prints the report. True = tests ran and all passed.
 *
 * @param {RunOptions} options
 */
export async function runTests({ title, files, lanes, patterns = [], limits = LIMITS }) {
  if (files.length === 0) return true
  console.log(`\n${title}\n`)
  const startMs = performance.now()
  const report = createReport()
  /** @type {string[]} */
  const problems = []
  const waiting = [...files]
  /** @type {{ file: string, ms: number }[]} */
  const times = []
  const lane = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      /** @type {TestEvent[]} */
      const events = []
      // Two files at once would mix their lines, so a file is printed when it has ended.
      const onEvent = lanes === 1 ? report.add : (/** @type {TestEvent} */ event) => void events.push(event)
      const fileStartMs = performance.now()
      const problem = await runFile({ ...next, limits, patterns, onEvent })
      times.push({ file: next.file, ms: performance.now() - fileStartMs })
      for (const event of events) report.add(event)
      if (problem !== undefined) problems.push(problem)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  await report.end()
  const empty = patterns.length > 0 ? [] : report.empty
  for (const file of empty) problems.push(`${file} contains no test.`)
  const { counts } = report
  printSummary(counts, performance.now() - startMs)
  if (times.length > SLOWEST) printSlowest(times)
  for (const problem of problems) console.error(`\n${problem}`)
  const ran = counts.tests > counts.skipped + counts.todo
  return ran && counts.failed + counts.cancelled === 0 && problems.length === 0 && report.success
}

function createReport() {
  const reporter = new spec()
  const printed = printAll(reporter)
  const counts = { tests: 0, suites: 0, passed: 0, failed: 0, cancelled: 0, skipped: 0, todo: 0 }
  const report = {
    counts,
    success: true,
    /** @type {string[]} files without a test */
    empty: [],
    /** @param {TestEvent} event */
    add(event) {
      const { type, data } = event
      // Each file has its own summary; the report has one for all.
      if (type === 'test:diagnostic' && data.nesting === 0 && data.file === undefined) return
      if (type === 'test:summary') {
        if (data.file !== undefined) return
        report.success &&= data.success
        for (const name of /** @type {(keyof typeof counts)[]} */ (Object.keys(counts)))
          counts[name] += data.counts[name]
        return
      }
      // Node reports a file without tests as one passing test with the name of the file.
      if (type === 'test:pass' && data.file !== undefined && resolve(data.name) === data.file)
        report.empty.push(data.name)
      reporter.write(event)
    },
    async end() {
      reporter.end()
      await printed
    },
  }
  return report
}

/**
 * In the words of Node's own report, which programs that read test output know.
 *
 * @param {ReturnType<typeof createReport>['counts']} counts
 * @param {number} durationMs
 */
function printSummary({ tests, suites, passed, failed, cancelled, skipped, todo }, durationMs) {
  const lines = { tests, suites, pass: passed, fail: failed, cancelled, skipped, todo, duration_ms: durationMs }
  for (const [name, count] of Object.entries(lines)) console.log(`ℹ ${name} ${count}`)
}

/**
 * The files for which everybody waits the longest.
 *
 * @param {{ file: string, ms: number }[]} times
 */
function printSlowest(times) {
  const slowest = times.toSorted((one, other) => other.ms - one.ms).slice(0, SLOWEST)
  console.log(`ℹ slowest files: ${slowest.map(({ file, ms }) => `${file} ${Math.round(ms / 1000)} s`).join(', ')}`)
}

/** @param {InstanceType<typeof spec>} reporter */
async function printAll(reporter) {
  for await (const chunk of reporter) process.stdout.write(chunk)
}
