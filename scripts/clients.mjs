/**
 * `npm run test:clients`: runs the published A2A clients against the platform, and compares what works with the table in
 * `docs/a2a.md`; then the official checks of MCP servers, and a client that is generated from the API document. Installs them into
 * the user's cache folder, once, and runs everything in a network namespace with only loopback, as `npm run test:agents` does;
 * `--allow-network` allows to run where the system has none.
 */
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runIsolated } from '../test/agents/run-isolated.ts'
import { ensureClients, ensureGenerator, ensureMcpChecks } from '../test/clients/install-clients.ts'
import { runTests } from './run-tests.mjs'

const flag = /** @type {const} */ ({ type: 'boolean', default: false })

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))))
try {
  const { values } = parseArgs({ options: { 'allow-network': flag, inside: flag } })
  if (values.inside) await testClients()
  else process.exitCode = await prepare(values['allow-network'])
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}

/**
 * Installs the clients and runs this script again in isolation.
 *
 * @param {boolean} mayUseNetwork
 */
async function prepare(mayUseNetwork) {
  const seconds = await ensureClients()
  if (seconds !== undefined) console.log(`installed the clients in ${seconds.toFixed(1)} s`)
  const checkSeconds = await ensureMcpChecks()
  if (checkSeconds !== undefined) console.log(`installed the checks of MCP in ${checkSeconds.toFixed(1)} s`)
  const generatorSeconds = await ensureGenerator()
  if (generatorSeconds !== undefined) console.log(`installed the client generator in ${generatorSeconds.toFixed(1)} s`)
  return runIsolated([process.execPath, fileURLToPath(import.meta.url), '--inside'], mayUseNetwork)
}

async function testClients() {
  const files = ['matrix', 'mcp-checks', 'generated-client'].map((name) => ({ file: `test/clients/${name}.test.ts` }))
  const hasPassed = await runTests({ title: 'Published clients and checks', files, lanes: 1, patterns: [] })
  if (!hasPassed) process.exitCode = 1
}
