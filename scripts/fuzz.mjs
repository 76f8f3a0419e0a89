/**
 * `npm run test:fuzz` sends 10,000 bodies to every POST, PUT and PATCH route: values that fit the schemas of the API
 * document, most of them then broken. `npm run test:fuzz -- --runs 500` sends fewer. `npm test` sends a few hundred to
 * each route. It also prints how long the worst body of each POST route, and the worst text of each surface (gRPC, socket,
 * MCP, chat, failures, file names, the page), held the event loop.
 */
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { values } = parseArgs({ options: { runs: { type: 'string', default: '10000' } } })
const env = { ...process.env, FUZZ_RUNS: values.runs }
const { status } = spawnSync(
  process.execPath,
  ['scripts/test.mjs', 'test/e2e/fuzz.test.ts', 'test/hostile/loop-hold.test.ts', 'test/hostile/surfaces.test.ts'],
  {
    cwd: root,
    env,
    stdio: 'inherit',
  },
)
process.exitCode = status ?? 1
