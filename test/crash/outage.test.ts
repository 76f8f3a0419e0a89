/**
 * The database goes away under load and comes back: a real PostgreSQL is stopped and started again while clients talk
 * to a platform that is never restarted. `npm test` leaves it away for some seconds; `npm run test:crash` for the 30 s
 * of the requirement (MOLECULE_TEST_OUTAGE_SECONDS).
 */
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { memoryBytes } from '../harness/live-processes.ts'
import type { PlatformResponse, PlatformUnderTest } from '../harness/platform.ts'
import { startPostgres, type TestPostgres } from '../harness/postgres.ts'
import { type Audit, audit } from './audit.ts'
import { startClientLoad } from './client-load.ts'
import { createCrashHarness } from './crash-harness.ts'
import { openDatabase } from './database.ts'
import { createRandom } from './random.ts'

const OUTAGE_MS = Number(process.env['MOLECULE_TEST_OUTAGE_SECONDS'] ?? '6') * 1000
/** How long the load goes on before and after. */
const CALM_MS = 1500
const DRAIN_MS_MAX = 60_000
const MIB = 1024 * 1024
/** Sent at once, again and again, while nothing of it can be stored. */
const REFUSED_AT_ONCE = 20
const REFUSED_BYTES = 256 * 1024

let postgres: TestPostgres
before(async () => {
  postgres = await startPostgres()
})
after(() => postgres.stop())

test(`RE-3 RE-1 PostgreSQL is away for ${OUTAGE_MS / 1000} s under load: clear 503s meanwhile in bounded memory, nothing admitted is lost or answered twice or even run twice, and it recovers without a restart`, async (t) => {
  const database = await postgres.url()
  const harness = await createCrashHarness(t, database)
  const platform = await harness.start()
  const runsDir = join(harness.folder, 'runs-of-messages')
  await mkdir(runsDir)
  const complaints: string[] = []
  const complain = (problem: string) => void complaints.push(problem)
  const target = { url: platform.url, token: platform.token }
  const load = await startClientLoad({ target, random: createRandom(1), runsDir, complain })
  await delay(CALM_MS)

  const bytesBefore = memoryBytes(platform.pid)
  await postgres.stopServer()
  const refused = await sendRequests(platform, load.sent[0]?.workspaceId ?? '')
  const bytesAfter = memoryBytes(platform.pid)
  await postgres.startServer()
  for (const answer of refused) assertClearRefusal(answer)
  const grown = bytesAfter - bytesBefore
  const offered = refused.length * REFUSED_BYTES
  t.diagnostic(`${refused.length} sends refused, ${mib(offered)} MiB offered, memory grew by ${mib(grown)} MiB`)
  assert.ok(grown < Math.max(150 * MIB, offered / 4), 'what was refused was kept in memory')

  await delay(CALM_MS)
  assert.ok(await load.finish(DRAIN_MS_MAX), 'some messages had no answer long after the database was back')
  assert.equal((await platform.request('GET', '/health')).body.pid, platform.pid)
  assert.equal((await platform.request('GET', '/ready')).status, 200)
  const stored = await harness.end()
  assert.ok(stored.every(({ state, losses, failures }) => state === 'done' && losses + failures === 0))
  assert.deepEqual(complaints, [])
  const audited = await auditAll(database, load.sent, runsDir)
  assert.equal(audited.agentRuns, audited.counted, 'some agent was run again for want of a connection')
  t.diagnostic(`${audited.admitted} messages admitted and answered, ${audited.agentRuns} agent runs`)
})

/** Sends until the outage is over, all the while asking whether the platform is ready; gives every answer. */
async function sendRequests(platform: PlatformUnderTest, workspaceId: string): Promise<PlatformResponse[]> {
  const answers: PlatformResponse[] = []
  const text = 'x'.repeat(REFUSED_BYTES)
  const untilMs = performance.now() + OUTAGE_MS
  for (let round = 1; performance.now() < untilMs; round++) {
    const sends = Array.from({ length: REFUSED_AT_ONCE }, (_, n) => {
      const message = { messageId: `refused-${round}-${n}`, role: 'ROLE_USER', parts: [{ text }] }
      return platform.rpc(workspaceId, 'SendMessage', { message })
    })
    answers.push(...(await Promise.all(sends)))
    const ready = await platform.request('GET', '/ready')
    assert.equal(ready.status, 503)
    assert.match(ready.body.reason, /store is unavailable/)
    assert.equal((await platform.request('GET', '/health')).status, 200)
    await delay(100)
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
