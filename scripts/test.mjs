/**
 * `npm test`: first everything that is quick, in one process, then what crosses rooms, a process for each file. Words
 * after `--` choose files by a part of their path; `--test-name-pattern=...` chooses tests by title.
 *
 * Invariant: it ends, and it ends well only if tests ran and all passed. A test that leaves a timer or a socket open
 * would hold the first run for ever; it is reported as a failure with what was left.
 */
import { globSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'

const TEST_TIMEOUT_MS = 120_000
/** How long the process may stay alive after the last test has ended. */
const LEAK_GRACE_MS = 10_000
/** Those install hundreds of megabytes: `npm run test:agents` runs them. */
const REAL_AGENTS = 'test/agents/**'
const PATTERN_FLAG = '--test-name-pattern='

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))))
const args = process.argv.slice(2)
const words = args.filter((arg) => !arg.startsWith('-'))
const patterns = args.filter((arg) => arg.startsWith(PATTERN_FLAG)).map((arg) => arg.slice(PATTERN_FLAG.length))

const quick = find(['src/**/*.test.ts', 'scripts/**/*.test.ts', 'test/*.test.ts'])
const crossing = find(['test/*/**/*.test.ts'])
if (quick.length + crossing.length === 0) {
  console.error(`No test file matches ${words.join(', ') || 'anything'}.`)
  process.exitCode = 1
}
await runTests('Unit tests', { files: quick, isolation: 'none' })
await runTests('Contracts and end to end', { files: crossing, isolation: 'process', concurrency: 2 })

/**
 * The test files under these patterns that the words of the command line choose; all when there are none.
 *
 * @param {string[]} globs
 */
function find(globs) {
  const paths = globSync(globs, { exclude: [REAL_AGENTS] }).sort()
  const chosen = words.map((word) => word.replace(/^\.\//, ''))
  return paths.filter((path) => chosen.length === 0 || chosen.some((word) => path.includes(word)))
}

/**
 * Runs the files and prints the runner's report with its closing summary; a failure becomes the exit code.
 *
 * @param {string} title
 * @param {{ files: string[], isolation: 'none' | 'process', concurrency?: number }} options
 */
async function runTests(title, options) {
  if (options.files.length === 0) return
  console.log(`\n${title}\n`)
  const files = options.files.map((file) => resolve(file))
  // An empty list of patterns would choose nothing.
  const chosen = patterns.length > 0 ? { testNamePatterns: patterns } : {}
  const stream = run({ ...options, ...chosen, files, timeout: TEST_TIMEOUT_MS })
  const stopWatching = watchForLeaks(stream)
  stream.on('test:pass', failIfEmpty)
  stream.on('test:summary', ({ file, success, counts }) => {
    if (file !== undefined) return
    stopWatching()
    if (!success || counts.tests === counts.skipped + counts.todo) process.exitCode = 1
  })
  for await (const text of stream.compose(new spec())) process.stdout.write(text)
}

/**
 * A file without a test passes as one test that bears the file's name, and nobody would notice that it tests nothing.
 *
 * @param {{ name: string, file?: string }} test
 */
function failIfEmpty({ name, file }) {
  if (file === undefined || resolve(name) !== file || patterns.length > 0) return
  console.error(`${name} contains no test.`)
  process.exitCode = 1
}

/**
 * Ends the process when every test has ended and the run has not.
 *
 * @param {ReturnType<typeof run>} stream
 * @returns {() => void} stops watching
 */
function watchForLeaks(stream) {
  let open = 0
  const timer = setTimeout(() => {
    if (open > 0) return
    const left = process.getActiveResourcesInfo().join(', ')
    console.error(`All tests have ended, but a test left something open that keeps the process alive: ${left}.`)
    process.exit(1)
  }, LEAK_GRACE_MS).unref()
  stream.on('test:enqueue', () => {
    open += 1
    timer.refresh()
  })
  stream.on('test:complete', () => {
    open -= 1
    timer.refresh()
  })
  return () => clearTimeout(timer)
}
