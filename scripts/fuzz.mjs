/**
 * `npm run test:fuzz`: 10,000 bodies, made from the API document's schemas and then broken, on every route that takes a
 * POST. `npm run test:fuzz -- --runs 500` sends fewer. `npm test` sends a few hundred to each.
 */
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { values } = parseArgs({ options: { runs: { type: 'string', default: '10000' } } })
const env = { ...process.env, FUZZ_RUNS: values.runs }
const { status } = spawnSync(process.execPath, ['scripts/test.mjs', 'test/e2e/fuzz.test.ts'], {
  cwd: root,
  env,
  stdio: 'inherit',
})
process.exitCode = status ?? 1
