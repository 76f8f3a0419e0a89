/** A database that takes requests and answers none: its connections stay open, so nothing fails for half a minute. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startDatabaseProxy } from '../crash/database-proxy.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { startPostgres } from '../harness/stores/postgres.ts'

/** Well below the 30 s after which a connection counts as lost. */
const ANSWER_MS_MAX = 20_000

test('RE-10 /ready answers 503 with the reason while the database stalls', async (t) => {
  const postgres = await startPostgres()
  t.after(() => postgres.stop())
  const proxy = await startDatabaseProxy(await postgres.url())
  t.after(() => proxy.close())
  const platform = await startPlatformFor(t, { database: proxy.url })
  assert.equal((await platform.request('GET', '/ready')).status, 200)
  proxy.stall()
  const poll = async () => {
    const response = await fetch(`${platform.url}/ready`, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })
    return [response.status, await response.json()]
  }
  const refusal = [503, { status: 'not_ready', reason: 'the store does not answer a read' }]
  assert.deepEqual(await Promise.all([poll(), poll(), poll()]), [refusal, refusal, refusal])
})
