/**
 * `npm run test:agents`: runs the real agent CLIs behind their backends against a fake model and prints one line for
 * each. Arguments after `--` choose agents; openclaw, which is large and slow, runs only when it is named.
 *
 * Installs missing CLIs from npm into the user's cache folder, once per version. Then runs everything in a network
 * namespace with only loopback and with a minimal environment: no CLI can reach a vendor or read the user's settings.
 * Where the system allows no network namespace the tests are refused, unless `--allow-network` is given.
 *
 * Invariant: the exit code is 0 only if every step of every chosen agent has passed.
 */
import { dirname, join } from 'node:path'
import { run } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ACP_AGENTS, ensureAcpInstalled } from '../test/agents/acp-agents.ts'
import { CLIS, findVersions, ONLY_WHEN_NAMED } from '../test/agents/clis.ts'
import { ensureInstalled } from '../test/agents/install-cli.ts'
import { runIsolated } from '../test/agents/run-isolated.ts'

const flag = /** @type {const} */ ({ type: 'boolean', default: false })
const options = { 'allow-network': flag, inside: flag }

/** Five agents behind the `acp` backend, in one test file. */
const ACP = 'acp'
const acpVersions = () => `(${ACP_AGENTS.map(({ name }) => name).join(', ')})`

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))))
try {
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  const named = positionals.filter((name) => name !== ACP)
  const clis =
    positionals.length > 0 ? named.flatMap(findVersions) : CLIS.filter(({ name }) => !ONLY_WHEN_NAMED.has(name))
  const hasAcp = positionals.length === 0 || positionals.includes(ACP)
  if (values.inside) await testAll(hasAcp ? [...clis, { name: ACP, version: acpVersions() }] : clis)
  else process.exitCode = await prepare(clis, hasAcp, values['allow-network'])
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}

/**
 * Installs missing CLIs and runs this script again in isolation.
 *
 * @param {import('../test/agents/clis.ts').Cli[]} clis
 * @param {boolean} hasAcp
 * @param {boolean} mayUseNetwork
 */
async function prepare(clis, hasAcp, mayUseNetwork) {
  for (const cli of clis) {
    const seconds = await ensureInstalled(cli)
    if (seconds !== undefined) console.log(`installed ${cli.name} ${cli.version} in ${seconds.toFixed(1)} s`)
  }
  if (hasAcp) for (const one of await ensureAcpInstalled()) console.log(`installed ${one}`)
  const names = new Set([...clis.map(({ name }) => name), ...(hasAcp ? [ACP] : [])])
  return runIsolated([process.execPath, fileURLToPath(import.meta.url), '--inside', ...names], mayUseNetwork)
}

/**
 * Tests two agents at a time, because most of a step is waiting. The last ones take the longest and begin first.
 *
 * @param {{ name: string, version: string }[]} clis
 */
async function testAll(clis) {
  const rest = [...clis]
  const lane = async () => {
    for (let cli = rest.pop(); cli !== undefined; cli = rest.pop()) await testAgent(cli)
  }
  await Promise.all([lane(), lane()])
}

/**
 * Runs the steps of one agent and prints its line, followed by the errors.
 *
 * @param {{ name: string, version: string, file?: string }} cli
 */
async function testAgent({ name, version, file = name }) {
  /** @type {string[]} */
  const steps = []
  /** @type {string[]} */
  const problems = []
  /** @type {string[]} */
  const rows = []
  const startMs = performance.now()
  const stream = run({ files: [join('test', 'agents', `${file}.test.ts`)], isolation: 'process', concurrency: 1 })
  stream.on('test:pass', ({ name: step, details }) => {
    if (details.type !== 'suite') steps.push(`${step} ok`)
  })
  stream.on('test:fail', ({ name: step, details }) => {
    process.exitCode = 1
    if (details.type !== 'suite') steps.push(`${step} FAILED`)
    if (!isRepeated(details.error)) problems.push(`${step}: ${explain(details.error)}`)
  })
  stream.on('test:diagnostic', ({ message }) => {
    const row = failureRow(name, message)
    if (row !== undefined) rows.push(row)
  })
  stream.on('test:stderr', ({ message }) => process.stderr.write(message))
  for await (const _ of stream);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(0)
  console.log(`${name} ${version}  ${steps.join(', ') || 'no step ran'} (${seconds} s)`)
  for (const row of rows) console.log(row)
  for (const problem of problems) console.log(`\n${problem}\n`)
  if (steps.length === 0) process.exitCode = 1
}

/**
 * A line of the table of failures: CLI, failure, category, tries, seconds, the sentence that the user sees. Undefined for
 * any other message of a test.
 *
 * @param {string} name
 * @param {string} message
 */
function failureRow(name, message) {
  if (!message.startsWith('{"failure":')) return undefined
  const { failure, category, tries, seconds, sentence } = JSON.parse(message)
  return `  ${name.padEnd(8)} ${failure.padEnd(16)} ${category.padEnd(20)} ${tries.padEnd(6)} ${seconds.toFixed(1).padStart(5)} s  ${sentence}`
}

/**
 * A suite fails when one of its steps fails, and steps fail when their suite cannot start. Such errors repeat another.
 *
 * @param {Error} error
 */
function isRepeated(error) {
  return /subtests? failed|test did not finish before its parent/.test(error.message)
}

/** @param {Error} error */
function explain(error) {
  const { cause } = error
  return cause instanceof Error ? (cause.stack ?? cause.message) : (error.stack ?? error.message)
}
