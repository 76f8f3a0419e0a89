/**
 * `npm test` runs the unit tests in one process, then contracts and end-to-end tests in one process per file. Arguments
 * after `--` choose files by a part of their path; `--test-name-pattern=...` chooses tests by title.
 *
 * Invariant: it ends, and its exit code is 0 only if tests ran and all passed. A test that leaves a timer or a socket
 * open would keep the unit tests running forever; it is reported as a failure with the open resources.
 */
import { globSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'

const TEST_TIMEOUT_MS = 120_000
/** When the process is still alive this long after the last test, it fails with the open resources. */
const LEAK_GRACE_MS = 10_000
/** These install hundreds of megabytes; `npm run test:agents` runs them. */
const REAL_AGENTS = 'test/agents/**'
const PATTERN_FLAG = '--test-name-pattern='

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))))
const args = process.argv.slice(2)
const pathParts = args.filter((arg) => !arg.startsWith('-'))
const patterns = args.filter((arg) => arg.startsWith(PATTERN_FLAG)).map((arg) => arg.slice(PATTERN_FLAG.length))

const unitFiles = find(['src/**/*.test.ts', 'scripts/**/*.test.ts', 'test/*.test.ts'])
const isolatedFiles = find(['test/*/**/*.test.ts'])
if (unitFiles.length + isolatedFiles.length === 0) {
  console.error(`No test file matches ${pathParts.join(', ') || 'any pattern'}.`)
  process.exitCode = 1
}
await runTests('Unit tests', { files: unitFiles, isolation: 'none' })
await runTests('Contracts and end to end', { files: isolatedFiles, isolation: 'process', concurrency: 2 })

/**
 * The test files that match these patterns and the path parts of the command line.
 *
 * @param {string[]} globs
 */
function find(globs) {
  const paths = globSync(globs, { exclude: [REAL_AGENTS] }).sort()
  const parts = pathParts.map((part) => part.replace(/^\.\//, ''))
  return paths.filter((path) => parts.length === 0 || parts.some((part) => path.includes(part)))
}

/**
 * Runs the files and prints the runner's report and summary. A failure sets the exit code.
 *
 * @param {string} title
 * @param {{ files: string[], isolation: 'none' | 'process', concurrency?: number }} options
 */
async function runTests(title, options) {
  if (options.files.length === 0) return
  console.log(`\n${title}\n`)
  const files = options.files.map((file) => resolve(file))
  // Node runs no test when the list of patterns is empty.
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
 * Node reports a file without tests as one passing test with the name of the file. This makes it a failure.
 *
 * @param {{ name: string, file?: string }} test
 */
function failIfEmpty({ name, file }) {
  if (file === undefined || resolve(name) !== file || patterns.length > 0) return
  console.error(`${name} contains no test.`)
  process.exitCode = 1
}

/**
 * Ends the process when all tests have ended but the run has not.
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
