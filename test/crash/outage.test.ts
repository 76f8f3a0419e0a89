/**
 * An outage of the database under load: a real PostgreSQL is stopped and started again while clients talk to a platform
 * that is not restarted. In `npm test` the outage lasts some seconds, in `npm run test:crash` the 30 s of the
 * requirement (MOLECULE_TEST_OUTAGE_SECONDS).
 */
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { memoryBytes } from '../harness/live-processes.ts'
import type { PlatformResponse, PlatformUnderTest } from '../harness/platform.ts'
import { startPostgres, type TestPostgres } from '../harness/stores/postgres.ts'
import { waitUntil } from '../harness/wait.ts'
import { type Audit, audit } from './audit.ts'
import { startClientLoad } from './client-load.ts'
import { createCrashHarness } from './crash-harness.ts'
import { openDatabase } from './database.ts'
import { createRandom } from './random.ts'

const OUTAGE_MS = Number(process.env['MOLECULE_TEST_OUTAGE_SECONDS'] ?? '6') * 1000
/** The time of load before and after the outage. */
const CALM_MS = 1500
const DRAIN_MS_MAX = 60_000
const MIB = 1024 * 1024
/** Messages of one round during the outage; none of them can be stored. */
const REFUSED_AT_ONCE = 20
const REFUSED_BYTES = 256 * 1024
const PAUSE_MS = 10
/**
 * Memory that waits for the garbage collector is 57 to 200 MiB (measured), however much was refused. What is kept grows
 * with it: the outage lasts until the memory has grown by less than half of what was refused, or until the most.
 */
const OFFERED_BYTES_MIN = 300 * MIB
const OFFERED_BYTES_MAX = 1500 * MIB

let postgres: TestPostgres
before(async () => {
  postgres = await startPostgres()
})
after(() => postgres.stop())

test(`RE-3 RE-1 during ${OUTAGE_MS / 1000} s without PostgreSQL under load, clients get clear 503s in bounded memory, no admitted message is lost, answered twice or run twice, and the platform recovers without a restart`, async (t) => {
  const database = await postgres.url()
  const harness = await createCrashHarness(t, database)
  const platform = await harness.start()
  const runsDir = join(harness.folder, 'runs-of-messages')
  await mkdir(runsDir)
  const problems: string[] = []
  const reportProblem = (problem: string) => void problems.push(problem)
  const target = { url: platform.url, token: platform.token }
  const load = await startClientLoad({ target, random: createRandom(1), runsDir, reportProblem })
  await delay(CALM_MS)

  const bytesBefore = memoryBytes(platform.pid)
  await postgres.stopServer()
  const grownBytes = () => memoryBytes(platform.pid) - bytesBefore
  const refused = await sendRequests(platform, load.sent[0]?.workspaceId ?? '', grownBytes)
  const grown = grownBytes()
  await postgres.startServer()
  for (const answer of refused) assertClearRefusal(answer)
  const offered = refused.length * REFUSED_BYTES
  t.diagnostic(`${refused.length} sends refused, ${mib(offered)} MiB offered, memory grew by ${mib(grown)} MiB`)
  assert.ok(grown < offered / 2, 'refused messages stayed in memory')

  await delay(CALM_MS)
  assert.ok(await load.finish(DRAIN_MS_MAX), 'some messages had no answer long after the outage')
  assert.equal((await platform.request('GET', '/health')).body.pid, platform.pid)
  await waitUntil(async () => (await platform.request('GET', '/ready')).status === 200, '/ready after the outage')
  const stored = await harness.end()
  assert.ok(stored.every(({ state, losses, failures }) => state === 'done' && losses + failures === 0))
  assert.deepEqual(problems, [])
  const audited = await auditAll(database, load.sent, runsDir)
  assert.equal(audited.agentRuns, audited.counted, 'an agent ran again because of the outage')
  t.diagnostic(`${audited.admitted} messages admitted and answered, ${audited.agentRuns} agent runs`)
})

/** Sends until the outage is over and checks that the platform is not ready; returns every answer. */
async function sendRequests(
  platform: PlatformUnderTest,
  workspaceId: string,
  grownBytes: () => number,
): Promise<PlatformResponse[]> {
  const answers: PlatformResponse[] = []
  const text = 'x'.repeat(REFUSED_BYTES)
  const untilMs = performance.now() + OUTAGE_MS
  const isOver = () => {
    const offered = answers.length * REFUSED_BYTES
    if (performance.now() < untilMs || offered < OFFERED_BYTES_MIN) return false
    return grownBytes() < offered / 2 || offered > OFFERED_BYTES_MAX
  }
  for (let round = 1; !isOver(); round++) {
    const sends = Array.from({ length: REFUSED_AT_ONCE }, (_, n) => {
      const message = { messageId: `refused-${round}-${n}`, role: 'ROLE_USER', parts: [{ text }] }
      return platform.rpc(workspaceId, 'SendMessage', { message })
    })
    answers.push(...(await Promise.all(sends)))
    const ready = await platform.request('GET', '/ready')
    assert.equal(ready.status, 503)
    assert.match(ready.body.reason, /store is unavailable/)
    assert.equal((await platform.request('GET', '/health')).status, 200)
    await delay(PAUSE_MS)
  }
  return answers
}

function assertClearRefusal({ status, body }: PlatformResponse): void {
  assert.equal(status, 503, JSON.stringify(body).slice(0, 300))
  assert.equal(body.error.data[0].reason, 'STORE_UNAVAILABLE')
  assert.match(body.error.message, /^the store is unavailable; it is safe to send the same message again/)
}

async function auditAll(database: string, sent: Parameters<typeof audit>[1], runsDir: string): Promise<Audit> {
  const stored = await openDatabase({ dataDir: '', database })
  try {
    const audited = await audit(stored, sent, runsDir)
    for (const { title, violations } of audited.checks) assert.deepEqual(violations, [], title)
    return audited
  } finally {
    await stored.close()
  }
}

const mib = (bytes: number): string => (bytes / MIB).toFixed(0)
