/**
 * `npm run check` runs nine checks in parallel: style, types, types of the web page, import table, owners of tables, type names,
 * sizes of folders, migrations, unused code. A check that passes prints one line; a check that fails prints its whole output. It changes no file; `npm run format` does.
 */
import { spawn } from 'node:child_process'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const COLORS = process.stdout.isTTY ? 'force' : 'off'

/** The slowest first, so that no core is idle at the end. */
const CHECKS = [
  { name: 'types', command: ['tsc', '-p', 'tsconfig.json'] },
  { name: 'page', command: ['tsc', '-p', 'web/tsconfig.json'] },
  { name: 'unused', command: ['knip', '--no-progress'] },
  { name: 'style', command: ['biome', 'ci', '--error-on-warnings', '--max-diagnostics=100', `--colors=${COLORS}`] },
  { name: 'layers', command: ['node', 'scripts/layers.ts'] },
  { name: 'tables', command: ['node', 'scripts/table-use.ts'] },
  { name: 'names', command: ['node', 'scripts/type-names.ts'] },
  { name: 'folders', command: ['node', 'scripts/folder-sizes.ts'] },
  { name: 'migrations', command: ['node', 'scripts/migration-hashes.ts'] },
]

const outcomes = await Promise.all(CHECKS.map(runCheck))
if (outcomes.includes(false)) process.exitCode = 1

/**
 * Runs one check and prints its line; resolves with whether it passed.
 *
 * @param {{ name: string, command: string[] }} check
 * @returns {Promise<boolean>}
 */
function runCheck({ name, command: [program = '', ...args] }) {
  const startMs = performance.now()
  // Uses the tools and the Node of this clone even when npm did not start the script.
  const path = [join(ROOT, 'node_modules', '.bin'), process.env['PATH']].join(delimiter)
  const child = spawn(program, args, {
    cwd: ROOT,
    env: { ...process.env, PATH: path },
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  }
  return new Promise((resolve) => {
    /** @param {boolean} passed */
    const report = (passed) => {
      const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
      console.log(passed ? `ok ${name} ${seconds} s` : `failed ${name} ${seconds} s\n\n${output.trim()}\n`)
      resolve(passed)
    }
    child.on('error', (error) => {
      output += `${program} could not be started: ${error.message}`
      report(false)
    })
    child.on('close', (code) => report(code === 0))
  })
}
