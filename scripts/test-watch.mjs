/**
 * Runs one test file in a process of its own and ends that process when it hangs.
 *
 * Node's limit of a test ends neither the process nor a test that holds the event loop. Measured with Node 24.21: after
 * "test timed out" a test that left a timer, a socket or a child keeps its file running for ever; a busy loop, and a
 * module that never finishes to load, are not noticed at all.
 *
 * Invariant: `runFile` ends, and a file that hung is a problem that names the file and the test.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { run } from 'node:test'

/**
 * @typedef {object} Limits
 * @property {number} testMs a test, a hook, and how long a test may hold the event loop
 * @property {number} quietMs a file reports nothing; longer than the longest limit that a test sets itself
 * @property {number} fileMs a whole file
 * @property {number} leakMs a process lives on after its last test
 * @property {number} killMs an ended process still has not closed its output
 *
 * @typedef {{ type: string, data: any }} TestEvent
 *
 * @typedef {object} FileOptions
 * @property {string} file
 * @property {Limits} limits
 * @property {string[]} [argv]
 * @property {string[]} [patterns]
 * @property {(event: TestEvent) => void} onEvent
 *
 * @typedef {object} Watched
 * @property {string} file
 * @property {string} record
 * @property {Set<string>} open tests and suites that were announced and have not ended, as `nesting name`
 * @property {Set<string>} begun tests of `open` that run
 * @property {boolean} seen a test has been announced
 * @property {number} startMs
 * @property {number} eventMs
 */

/**
 * A test may set a longer limit for itself; today the longest is 10 minutes.
 *
 * @type {Limits}
 */
export const LIMITS = { testMs: 120_000, quietMs: 660_000, fileMs: 1_800_000, leakMs: 15_000, killMs: 5_000 }
const LOOK_MS = 250

/**
 * Runs the file; why it had to be killed, or undefined.
 *
 * @param {FileOptions} options
 * @returns {Promise<string | undefined>}
 */
export async function runFile({ file, limits, argv = [], patterns = [], onEvent }) {
  const path = resolve(file)
  const folder = mkdtempSync(join(tmpdir(), 'molecule-record-'))
  const now = performance.now()
  /** @type {Watched} */
  const watched = {
    file: path,
    record: join(folder, basename(path)),
    seen: false,
    startMs: now,
    eventMs: now,
    open: new Set(),
    begun: new Set(),
  }
  const preload = new URL('./test-record.mjs', import.meta.url)
  preload.search = String(new URLSearchParams({ file: path, record: watched.record }))
  // Node runs no test when the list of patterns is empty.
  const chosen = patterns.length > 0 ? { testNamePatterns: patterns } : {}
  const stream = run({
    files: [path],
    argv,
    ...chosen,
    isolation: 'process',
    timeout: limits.testMs,
    execArgv: ['--import', preload.href],
  })
  const ended = Promise.withResolvers()
  stream.on('data', (event) => {
    note(watched, event)
    onEvent(event)
  })
  stream.on('end', ended.resolve)
  stream.on('error', ended.reject)
  try {
    return await watch(watched, limits, ended.promise)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Waits for the end of the file, or kills it; why it was killed.
 *
 * @param {Watched} watched
 * @param {Limits} limits
 * @param {Promise<unknown>} ended
 */
async function watch(watched, limits, ended) {
  while (!(await endsWithin(ended, LOOK_MS))) {
    const problem = findProblem(watched, limits)
    if (problem === undefined) continue
    const killed = await kill(watched, ended, limits.killMs)
    return killed ? problem : `${problem} A process that it started still holds its output.`
  }
  return undefined
}

/**
 * @param {Promise<unknown>} ended
 * @param {number} ms
 * @returns {Promise<boolean>}
 */
async function endsWithin(ended, ms) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const late = new Promise((done) => {
    timer = setTimeout(done, ms, false)
  })
  try {
    return await Promise.race([ended.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * @param {Watched} watched
 * @param {TestEvent} event
 */
function note(watched, { type, data }) {
  if (type !== 'test:enqueue' && type !== 'test:dequeue' && type !== 'test:complete') return
  if (data.nesting === 0 && data.name === watched.file) return
  watched.eventMs = performance.now()
  watched.seen = true
  const key = `${data.nesting} ${data.name}`
  if (type === 'test:enqueue') watched.open.add(key)
  if (type === 'test:dequeue') watched.begun.add(key)
  if (type !== 'test:complete') return
  watched.open.delete(key)
  watched.begun.delete(key)
}

/**
 * The reason to kill the file, if there is one.
 *
 * @param {Watched} watched
 * @param {Limits} limits
 * @returns {string | undefined}
 */
function findProblem(watched, limits) {
  const now = performance.now()
  const seconds = (/** @type {number} */ ms) => `${ms / 1000} s`
  const begun = [...watched.begun].map((key) => key.slice(key.indexOf(' ') + 1))
  const recorded = readRecord(watched)?.test ?? ''
  const test = recorded || begun.join(', ')
  const name = `${watched.file}: `
  if (silentMs(watched) > limits.testMs) return `${name}"${test}" held the event loop for ${seconds(limits.testMs)}.`
  const quietMs = now - watched.eventMs
  if (!watched.seen && recorded === '' && quietMs > limits.testMs)
    return `${name}no test was defined within ${seconds(limits.testMs)}.`
  if (watched.seen && watched.open.size === 0 && quietMs > limits.leakMs) {
    return `${name}all tests have ended, but a test left something open that keeps the process alive (see "open:" above).`
  }
  if (quietMs > limits.quietMs) return `${name}"${test}" hung: nothing was reported for ${seconds(limits.quietMs)}.`
  if (now - watched.startMs > limits.fileMs) return `${name}ran longer than ${seconds(limits.fileMs)}, in "${test}".`
  return undefined
}

/**
 * How long the event loop of the process has not run.
 *
 * @param {Watched} watched
 */
function silentMs({ record }) {
  const modifiedMs = statSync(record, { throwIfNoEntry: false })?.mtimeMs
  return modifiedMs === undefined ? 0 : Date.now() - modifiedMs
}

/**
 * @param {Watched} watched
 * @returns {{ pid: number, test: string } | undefined}
 */
function readRecord({ record }) {
  try {
    return JSON.parse(readFileSync(record, 'utf8'))
  } catch {
    // The process has not begun, or is writing.
    return undefined
  }
}

/**
 * Kills the test process and all that it started. False = its output is still open.
 *
 * @param {Watched} watched
 * @param {Promise<unknown>} ended
 * @param {number} killMs
 */
async function kill(watched, ended, killMs) {
  const pid = readRecord(watched)?.pid
  const descendants = pid === undefined ? [] : findDescendants(pid)
  // The process prints what is open, and ends, if its event loop still runs. Not SIGUSR2: it may write a Node report.
  if (pid !== undefined && process.platform !== 'win32') signal(pid, 'SIGHUP')
  await endsWithin(ended, 1000)
  for (const one of pid === undefined ? [] : [pid, ...descendants]) signal(one, 'SIGKILL')
  return endsWithin(ended, killMs)
}

/**
 * @param {number} pid
 * @returns {number[]}
 */
export function findDescendants(pid) {
  /** @type {[number, number][]} */
  let pairs
  try {
    const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
    pairs = lines.map((line) => /** @type {[number, number]} */ (line.trim().split(/\s+/).map(Number)))
  } catch {
    // There is no `ps`.
    return []
  }
  const found = [pid]
  for (const parent of found) for (const [child, ppid] of pairs) if (ppid === parent) found.push(child)
  return found.slice(1)
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} name
 */
function signal(pid, name) {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended.
  }
}
