/**
 * `npm test` runs the unit tests in one process, then contracts and end-to-end tests in one process per file. Arguments
 * after `--` choose files by a part of their path; `--test-name-pattern=...` chooses tests by title.
 *
 * Invariant: it ends, and its exit code is 0 only if tests ran and all passed. A file that hangs is killed and named
 * (`test-watch.mjs`).
 */
import { globSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runTests } from './run-tests.mjs'

/** These install hundreds of megabytes; `npm run test:agents` and `npm run test:clients` run them. */
const INSTALLING = ['test/agents/**', 'test/clients/**']
const PATTERN_FLAG = '--test-name-pattern='

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))))
const args = process.argv.slice(2)
const pathParts = args.filter((arg) => !arg.startsWith('-'))
const patterns = args.filter((arg) => arg.startsWith(PATTERN_FLAG)).map((arg) => arg.slice(PATTERN_FLAG.length))

const unitFiles = find(['src/**/*.test.ts', 'scripts/**/*.test.ts', 'web/src/**/*.test.ts', 'test/*.test.ts'])
const isolatedFiles = find(['test/*/**/*.test.ts'])
if (unitFiles.length + isolatedFiles.length === 0) {
  console.error(`No test file matches ${pathParts.join(', ') || 'any pattern'}.`)
  process.exitCode = 1
}
const unitTests = { file: join('scripts', 'unit-tests.mjs'), argv: unitFiles.map((file) => resolve(file)) }
const runs = [
  { title: 'Unit tests', files: unitFiles.length > 0 ? [unitTests] : [], lanes: 1 },
  { title: 'Contracts and end to end', files: isolatedFiles.map((file) => ({ file })), lanes: 2 },
]
for (const one of runs) if (!(await runTests({ ...one, patterns }))) process.exitCode = 1
// A process that a test left behind may still hold a pipe to this one.
process.stdout.write('', () => process.exit())

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
