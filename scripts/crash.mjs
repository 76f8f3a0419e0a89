/**
 * `npm run test:crash`: the crash tests that are too slow for `npm test`. First PostgreSQL is down for 30 s under load,
 * then a platform is killed with `kill -9` at 200 random moments, half of them on SQLite, half on PostgreSQL.
 *
 * `npm run test:crash -- --rounds 20 --engine sqlite --seed 7 --outage 6`; `--outage 0` skips the outage.
 */
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const OUTAGE_SECONDS = '30'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const text = /** @type {const} */ ({ type: 'string' })
const { values } = parseArgs({ options: { rounds: text, engine: text, seed: text, outage: text } })
const { outage = OUTAGE_SECONDS, ...choices } = values

const passed = [outage === '0' || runOutage(outage), runKills(choices)]
if (passed.includes(false)) process.exitCode = 1

/**
 * @param {string} seconds
 * @returns {boolean} whether it passed
 */
function runOutage(seconds) {
  return run(['--test', 'test/crash/outage.test.ts'], { MOLECULE_TEST_OUTAGE_SECONDS: seconds })
}

/**
 * @param {Record<string, string | undefined>} given
 * @returns {boolean} whether it passed
 */
function runKills(given) {
  const args = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]))
  return run(['test/crash/kill.ts', ...args], {})
}

/**
 * @param {string[]} args
 * @param {Record<string, string>} env
 */
function run(args, env) {
  const options = { cwd: root, env: { ...process.env, ...env }, stdio: /** @type {const} */ ('inherit') }
  return spawnSync(process.execPath, args, options).status === 0
}
