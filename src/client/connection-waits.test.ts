/** How long a call of a bridge waits, when it is cancelled, and what counts as a failure of the connection. */
import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { within } from '../../test/harness/wait.ts'
import type { Clock } from '../clock.ts'
import { MoleculeError } from '../errors.ts'
import { createPlatformConnection, retryUntilAnswered } from './platform-connection.ts'

const WAIT_MS = 5000
const call = { body: {}, timeoutMs: 60_000 }
const busy = (retryAfterMs?: number) =>
  new MoleculeError('queue_full', 'busy', { retryable: true, ...(retryAfterMs && { details: { retryAfterMs } }) })

/** A connection whose clock stands still; `tokens` counts the calls that were sent. */
async function setUp(t: TestContext, answer: RequestListener, more: { startMs?: number; early?: number } = {}) {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const manual = manualClock(more.startMs)
  const clock: Clock = { ...manual, after: (ms, callback) => manual.after(ms - (more.early ?? 0), callback) }
  const backoffs: [string | undefined, number][] = []
  const state = { tokens: 0 }
  const token = () => `token ${++state.tokens}`
  const onBackoff = (error: MoleculeError | undefined, backoffMs: number) => backoffs.push([error?.code, backoffMs])
  const connection = createPlatformConnection({ url, clock, token, onBackoff, random: () => 1 })
  t.after(() => {
    connection.close()
    server.closeAllConnections()
    server.close()
  })
  const post = (maxWaitMs?: number, signal?: AbortSignal) =>
    within(connection.post('/', { ...call, ...(maxWaitMs !== undefined && { maxWaitMs }) }, signal), 'the end', WAIT_MS)
  return { connection, manual, backoffs, state, post, url }
}

const fine: RequestListener = (_request, response) => void response.setHeader('X-Request-Id', 'r').end('{"fine":1}')

test('CN-5 a call waits no longer than its maxWaitMs, to the millisecond', async (t) => {
  const { connection, manual, post, state, url } = await setUp(t, fine)
  const message = `the platform at ${url} cannot be reached at the moment`
  const refused = { code: 'timeout', retryable: true, message }
  connection.backoff(busy(7000))
  // Too short by one millisecond.
  const short = assert.rejects(post(6999), refused)
  await manual.settle()
  manual.advance(6999)
  await short
  // One millisecond is left, and the call may not wait at all.
  await assert.rejects(post(0), refused)
  assert.equal(state.tokens, 0)
  const exact = post(1)
  await manual.settle()
  assert.equal(state.tokens, 0)
  manual.advance(1)
  assert.deepEqual(await exact, { fine: 1 })
  // The backoff is over: no call waits.
  connection.backoff(busy(1000))
  manual.advance(1000)
  assert.deepEqual(await post(0), { fine: 1 })
  connection.backoff(busy(1000))
  manual.advance(1000)
  assert.deepEqual(await post(5), { fine: 1 })
})

test('CN-5 a call without maxWaitMs is sent exactly when the backoff ends, also if its timer fires early', async (t) => {
  const { connection, manual, post, state } = await setUp(t, fine, { early: 1 })
  connection.backoff(busy(7000))
  const patient = post()
  await manual.settle()
  manual.advance(6999)
  await manual.settle()
  assert.equal(state.tokens, 0)
  manual.advance(1)
  assert.deepEqual(await patient, { fine: 1 })
  assert.equal(state.tokens, 1)
})

test('CN-5 the first call and a call after a success wait for nothing, whatever the clock says', async (t) => {
  const first = await setUp(t, fine, { startMs: 0 })
  assert.deepEqual(await first.post(0), { fine: 1 })
  const release = Promise.withResolvers<void>()
  const answer: RequestListener = async ({ url }, response) => {
    if (url === '/slow') await release.promise
    response.writeHead(url === '/fails' ? 503 : 200, { 'X-Request-Id': 'r' }).end('{}')
  }
  const { connection, post, backoffs } = await setUp(t, answer, { startMs: 0 })
  // Both are in flight; one fails and starts a backoff, the other succeeds and ends it.
  const working = connection.post('/slow', call)
  await assert.rejects(connection.post('/fails', call), { code: 'store_unavailable' })
  release.resolve()
  assert.deepEqual(await working, {})
  assert.deepEqual(await post(0), {})
  assert.deepEqual(backoffs, [
    ['store_unavailable', 500],
    [undefined, 0],
  ])
})

test('CN-5 a failure at the very end of a backoff counts, one before it does not, and no wait is longer than ten minutes', async (t) => {
  const { connection, manual, backoffs } = await setUp(t, fine)
  connection.backoff(busy())
  manual.advance(499)
  connection.backoff(busy())
  manual.advance(1)
  connection.backoff(busy())
  manual.advance(1000)
  connection.backoff(busy(600_000))
  manual.advance(600_000)
  connection.backoff(busy(600_001))
  assert.deepEqual(
    backoffs.map(([, backoffMs]) => backoffMs),
    [500, 1000, 600_000, 600_000],
  )
})

test('CN-6 a call that is cancelled while it waits is not sent, and one in flight ends without a backoff', async (t) => {
  const asked = Promise.withResolvers<void>()
  const { connection, manual, backoffs, post, state } = await setUp(t, () => asked.resolve())
  const canceled = { code: 'canceled', retryable: false, message: 'the call was cancelled' }
  await assert.rejects(post(undefined, AbortSignal.abort()), canceled)
  connection.backoff(busy(1000))
  const impatient = new AbortController()
  const waiting = assert.rejects(post(undefined, impatient.signal), canceled)
  await manual.settle()
  impatient.abort()
  await waiting
  assert.equal(state.tokens, 0, 'nothing was sent')
  manual.advance(1000)
  const stop = new AbortController()
  const flying = assert.rejects(post(undefined, stop.signal), canceled)
  await asked.promise
  stop.abort()
  await flying
  assert.deepEqual(backoffs, [['queue_full', 1000]])
})

test('CN-6 after beginClosing a call has 4 s for its answer, or less if it says so', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let asked = Promise.withResolvers<void>()
  const { connection } = await setUp(t, () => asked.resolve())
  connection.beginClosing()
  for (const [timeoutMs, limitMs] of [
    [600_000, 4000],
    [1000, 1000],
  ] as const) {
    asked = Promise.withResolvers<void>()
    let ended = false
    const silent = connection.post('/', { body: {}, timeoutMs }).catch((thrown: MoleculeError) => {
      ended = true
      return thrown
    })
    await asked.promise
    t.mock.timers.tick(limitMs - 1)
    await new Promise(setImmediate)
    assert.equal(ended, false)
    t.mock.timers.tick(1)
    for (let turns = 0; turns < 1000 && !ended; turns++) await new Promise(setImmediate)
    assert.equal(ended, true)
    assert.match(((await silent) as MoleculeError).message, /did not answer in time/)
  }
})

test('CN-5 work is repeated until an answer, a final error, or an abort', async () => {
  const stop = new AbortController()
  const run = (...results: (string | Error)[]) => {
    let tries = 0
    const work = async () => {
      const result = results[tries++] ?? 'one try too many'
      if (result instanceof Error) throw result
      return `${result} ${tries}`
    }
    return retryUntilAnswered(work, stop.signal)
  }
  assert.equal(await run(busy(), busy(), 'done'), 'done 3')
  await assert.rejects(run(busy(), new MoleculeError('forbidden', 'no')), { code: 'forbidden' })
  await assert.rejects(run(new TypeError('defect')), { code: 'internal', message: 'defect' })
  stop.abort()
  await assert.rejects(run(busy()), { code: 'queue_full' })
})
