/**
 * `npm run test:crash`: kills a platform under load with `kill -9` at random moments and starts it again, on SQLite and
 * on PostgreSQL, then audits the result. It prints its seed, so that a failing run can be repeated as far as timing
 * allows, and exits with 1 if a check fails.
 */
import { parseArgs } from 'node:util'
import { startPostgres } from '../harness/stores/postgres.ts'
import { type CampaignOptions, type CrashReport, runCampaign } from './campaign.ts'
import { createRandom } from './random.ts'

const ROUNDS_DEFAULT = 200
const VIOLATIONS_SHOWN = 10

type Engine = 'sqlite' | 'postgres'

interface KillTestSettings {
  readonly engines: readonly Engine[]
  readonly rounds: number
  readonly seed: number
}

const settings = readSettings(process.argv.slice(2))
process.exitCode = (await main(settings)) ? 0 : 1

async function main({ engines, rounds, seed }: KillTestSettings): Promise<boolean> {
  print(`kill -9 at ${rounds} random moments under load, on ${engines.join(' and ')}; seed ${seed}\n`)
  let passed = 0
  let failed = 0
  for (const [index, engine] of engines.entries()) {
    const share = Math.floor(rounds / engines.length) + (index < rounds % engines.length ? 1 : 0)
    const startMs = performance.now()
    const report = await runOn(engine, { rounds: share, seed: seed + index })
    show(engine, report, (performance.now() - startMs) / 1000)
    const broken = report.checks.filter(({ violations }) => violations.length > 0).length
    failed += broken
    passed += report.checks.length - broken
  }
  print(`${passed} passed, ${failed} failed\n`)
  return failed === 0
}

async function runOn(engine: Engine, { rounds, seed }: { rounds: number; seed: number }): Promise<CrashReport> {
  const options: CampaignOptions = {
    rounds,
    random: createRandom(seed),
    progress: (round) => printProgress(round, rounds),
  }
  if (engine === 'sqlite') return await runCampaign(options)
  const postgres = await startPostgres()
  try {
    return await runCampaign({ ...options, database: await postgres.url() })
  } finally {
    await postgres.stop()
  }
}

function show(engine: Engine, report: CrashReport, seconds: number): void {
  const { admitted, answered, failed, lost, answeredTwice, agentRuns, counted, orphans } = report
  const reasons = Object.entries(failed).map(([code, count]) => `${count} ${code}`)
  const failures = reasons.length === 0 ? '0' : reasons.join(', ')
  const { kills, killsWhileStarting, messagesSentAgain } = report
  print(
    `${engine}: rounds ${kills - killsWhileStarting}, admitted ${admitted}, answered ${answered}, failed ${failures}, ` +
      `lost ${lost}, answered twice ${answeredTwice}, agent runs ${agentRuns}, orphans ${orphans}\n`,
  )
  print(
    `  ${kills} kills, ${killsWhileStarting} of them during a start; clients sent ${messagesSentAgain} messages again; ` +
      `${agentRuns} agent runs for ${counted} exec messages: a run that a kill ended is repeated; ` +
      `${seconds.toFixed(0)} s\n`,
  )
  for (const { title, violations } of report.checks) {
    print(`  ${violations.length === 0 ? 'ok    ' : 'FAILED'} ${title}\n`)
    for (const violation of violations.slice(0, VIOLATIONS_SHOWN)) print(`         ${violation}\n`)
    if (violations.length > VIOLATIONS_SHOWN) print(`         and ${violations.length - VIOLATIONS_SHOWN} more\n`)
  }
}

function readSettings(args: string[]): KillTestSettings {
  const { values } = parseArgs({
    args,
    options: { rounds: { type: 'string' }, engine: { type: 'string' }, seed: { type: 'string' } },
  })
  const engine = values.engine ?? 'both'
  if (engine !== 'both' && engine !== 'sqlite' && engine !== 'postgres') {
    throw new TypeError(`--engine must be sqlite, postgres or both, not ${engine}`)
  }
  return {
    engines: engine === 'both' ? ['sqlite', 'postgres'] : [engine],
    rounds: wholeNumber('rounds', values.rounds ?? String(ROUNDS_DEFAULT)),
    seed: wholeNumber('seed', values.seed ?? String(Date.now() % 1_000_000)),
  }
}

function wholeNumber(name: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new TypeError(`--${name} must be a whole number, not ${text}`)
  return Number(text)
}

/** A terminal shows every round; a log file gets a line every 25 rounds. */
function printProgress(round: number, rounds: number): void {
  if (process.stdout.isTTY) process.stdout.write(`\r  ${round} of ${rounds}${round === rounds ? '\n' : ''}`)
  else if (round % 25 === 0) print(`  ${round} of ${rounds}\n`)
}

function print(text: string): void {
  process.stdout.write(text)
}
