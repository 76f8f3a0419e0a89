/**
 * `npm test` runs the unit tests in a few processes, then contracts and end-to-end tests in one process per file. `--long` runs
 * the suites that take the longest instead: backends, chat channels, tests that wait for clocks, the page in a browser, crashes,
 * attacks (`npm run test:long`). Arguments after `--` choose files of all suites by a part of their path;
 * `--test-name-pattern=...` chooses tests by title.
 *
 * Invariant: it ends, and its exit code is 0 only if tests ran and all passed. A file that hangs is killed and named
 * (`test-watch.mjs`).
 */
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runTests } from './run-tests.mjs'

/** These install hundreds of megabytes; `npm run test:agents` and `npm run test:clients` run them. */
const INSTALLING = ['test/agents/**', 'test/clients/**']
/** Nobody should wait for these before each push; continuous integration does. */
const WAITING = ['test/contracts/backends/*.test.ts', 'test/contracts/*-channel.test.ts', 'test/e2e/slow/*.test.ts']
/** These compute, or measure how long others are held up. */
const COMPUTING = ['test/canvas/**/*.test.ts', 'test/crash/**/*.test.ts', 'test/hostile/**/*.test.ts']
/** Files that run at once. Most tests wait for processes more than they compute; a browser computes. */
const CORES = Math.min(availableParallelism(), 8)
const LANES = 2 * CORES
const PATTERN_FLAG = '--test-name-pattern='

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))))
const args = process.argv.slice(2)
const pathParts = args.filter((arg) => !arg.startsWith('-'))
const patterns = args.filter((arg) => arg.startsWith(PATTERN_FLAG)).map((arg) => arg.slice(PATTERN_FLAG.length))

const isLong = args.includes('--long')
const unit = find(['src/**/*.test.ts', 'scripts/**/*.test.ts', 'web/src/**/*.test.ts', 'test/*.test.ts'])
const [waiting, computing] = [find(WAITING), find(COMPUTING)]
const isolated = find(['test/*/**/*.test.ts']).filter(
  (file) => pathParts.length > 0 || !(waiting.includes(file) || computing.includes(file)),
)
const suites = isLong
  ? [
      { title: 'Backends, channels and clocks', files: inOwnProcesses(waiting), lanes: LANES },
      { title: 'The page, crashes and attacks', files: inOwnProcesses(computing), lanes: CORES },
    ]
  : [
      { title: 'Unit tests', files: inProcesses(unit), lanes: LANES },
      { title: 'Contracts and end to end', files: inOwnProcesses(isolated), lanes: LANES },
    ]
if (suites.every(({ files }) => files.length === 0)) {
  console.error(`No test file matches ${pathParts.join(', ') || 'any pattern'}.`)
  process.exitCode = 1
}
for (const suite of suites) if (!(await runTests({ ...suite, patterns }))) process.exitCode = 1
// A process that a test left behind may still hold a pipe to this one.
process.stdout.write('', () => process.exit())

/** @param {string[]} files */
function inOwnProcesses(files) {
  return files.map((file) => ({ file }))
}

/**
 * As many processes as lanes, each with its share of the files: to load the sources once for each file would take longer.
 *
 * @param {string[]} files
 */
function inProcesses(files) {
  const shares = Array.from({ length: LANES }, (_, lane) => files.filter((_file, index) => index % LANES === lane))
  const file = join('scripts', 'unit-tests.mjs')
  return shares.filter((share) => share.length > 0).map((share) => ({ file, argv: share.map((path) => resolve(path)) }))
}

/**
 * The test files that match these patterns and the path parts of the command line.
 *
 * @param {string[]} globs
 */
function find(globs) {
  const paths = globSync(globs, { exclude: INSTALLING }).sort()
  const parts = pathParts.map((part) => part.replace(/^\.\//, ''))
  return paths.filter((path) => parts.length === 0 || parts.some((part) => path.includes(part)))
}
