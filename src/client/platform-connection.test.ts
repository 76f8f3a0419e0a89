import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener, ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { serve } from '../../test/harness/loopback-server.ts'
import { waitUntil, within } from '../../test/harness/wait.ts'
import { MoleculeError } from '../errors.ts'
import { createPlatformConnection, type PlatformConnectionOptions, retryUntilAnswered } from './platform-connection.ts'

const WAIT_MS = 5000
const call = { body: {}, timeoutMs: 20_000 }
const fine: RequestListener = (_request, response) => void response.setHeader('X-Request-Id', 'r').end('{"fine":1}')
const busy = (retryAfterMs?: number) =>
  new MoleculeError('queue_full', 'busy', { retryable: true, ...(retryAfterMs && { details: { retryAfterMs } }) })
const timersOf = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

interface Options extends Partial<PlatformConnectionOptions> {
  /** The first time of the clock. */
  readonly startMs?: number
  /** How much too early the timers fire. */
  readonly early?: number
}

/** A connection on a clock that the test moves, to a server with these answers; `state.tokens` counts the calls that were sent. */
async function setUp(t: TestContext, answer: RequestListener, { startMs, early = 0, ...more }: Options = {}) {
  const open = new Set<Socket>()
  const seen = new Set<Socket>()
  const { server, url } = await serve(t, answer)
  server.keepAliveTimeout = 600_000
  server.on('connection', (socket) => {
    open.add(socket)
    seen.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  const clock = manualClock(startMs)
  const backoffs: [string | undefined, number][] = []
  const state = { tokens: 0 }
  const connection = createPlatformConnection({
    url,
    token: () => `token ${++state.tokens}`,
    clock: { ...clock, after: (ms, callback) => clock.after(ms - early, callback) },
    onBackoff: (error, backoffMs) => backoffs.push([error?.code, backoffMs]),
    random: () => 1,
    ...more,
  })
  t.after(() => connection.close())
  const post = (maxWaitMs?: number, signal?: AbortSignal) =>
    within(connection.post('/', { ...call, ...(maxWaitMs !== undefined && { maxWaitMs }) }, signal), 'the end', WAIT_MS)
  return { connection, clock, backoffs, state, post, url, open, seen }
}

const say = (response: ServerResponse, status: number, body: object) => {
  response.setHeader('X-Request-Id', 'req_1')
  response.writeHead(status)
  response.end(JSON.stringify(body))
}

const codeOf = async (work: Promise<unknown>) => ((await work.catch((error: unknown) => error)) as MoleculeError).code

test('CN-5 the backoff doubles after each failure, up to a minute, and resets after a success', async (t) => {
  let healthy = false
  const { connection, clock, backoffs } = await setUp(t, (_request, response) => say(response, healthy ? 200 : 503, {}))
  for (let failures = 0; failures < 10; failures++) {
    await assert.rejects(connection.post('/', call))
    clock.advance(60_000)
  }
  const waits = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]
  assert.deepEqual(
    backoffs.map(([, backoffMs]) => backoffMs),
    waits,
  )
  healthy = true
  await connection.post('/', call)
  healthy = false
  await assert.rejects(connection.post('/', call))
  assert.deepEqual(backoffs.slice(-2), [
    [undefined, 0],
    ['store_unavailable', 500],
  ])
})

test('CN-5 each backoff has jitter: between half of its value and all of it', async (t) => {
  const backoffOf = async (more: Partial<PlatformConnectionOptions>) => {
    const { connection, backoffs } = await setUp(t, (_request, response) => say(response, 503, {}), more)
    await assert.rejects(connection.post('/', call))
    return backoffs[0]?.[1] ?? 0
  }
  assert.deepEqual([await backoffOf({ random: () => 0 }), await backoffOf({ random: () => 0.5 })], [250, 375])
  const unset = { random: undefined } as unknown as Partial<PlatformConnectionOptions>
  const waits = await Promise.all(Array.from({ length: 12 }, () => backoffOf(unset)))
  for (const waitMs of waits) assert.ok(waitMs >= 250 && waitMs <= 500, `${waits}`)
  assert.ok(new Set(waits).size > 3, `twelve bridges do not come back together: ${waits}`)
})

test('CN-5 a page of a proxy with status 200 and a closed port are retried, and each error says what happened', async (t) => {
  const { connection } = await setUp(t, (_request, response) => response.end('<h1>log in first</h1>'))
  await assert.rejects(connection.post('/', call), { retryable: true, message: /^the answer of http:.* is not JSON$/ })
  const closed = await setUp(t, () => undefined, { url: 'http://127.0.0.1:1' })
  const unreachable =
    /^the platform at http:\/\/127\.0\.0\.1:1 cannot be reached \(.*ECONNREFUSED.*\); start it there with "molecule up"$/
  await assert.rejects(closed.connection.post('/', call), { retryable: true, message: unreachable })
})

test('CN-6 after beginClosing no call waits for a backoff, and a waiting call can be cancelled', async (t) => {
  let calls = 0
  const { connection } = await setUp(t, (_request, response) => say(response, ++calls === 1 ? 503 : 200, {}))
  await assert.rejects(connection.post('/', call))
  const cancel = new AbortController()
  const waiting = connection.post('/', call, cancel.signal)
  cancel.abort()
  assert.equal(await codeOf(waiting), 'canceled')
  const patient = connection.post('/', call)
  connection.beginClosing()
  assert.deepEqual(await patient, {})
})

test('a kept socket is reused, and a socket that the platform closed does not fail a call', async (t) => {
  const sockets = new Set<unknown>()
  const { connection } = await setUp(t, (request, response) => {
    sockets.add(request.socket)
    say(response, 200, {})
    if (request.url === '/last') response.once('finish', () => request.socket.destroy())
  })
  for (let calls = 0; calls < 3; calls++) await connection.post('/', call)
  assert.equal(sockets.size, 1)
  await connection.post('/last', call)
  await connection.post('/', call)
  assert.equal(sockets.size, 2)
})

test('CN-5 a call waits no longer than its maxWaitMs, to the millisecond', async (t) => {
  const { connection, clock, post, state, url } = await setUp(t, fine)
  const message = `the platform at ${url} cannot be reached at the moment`
  const refused = { code: 'timeout', retryable: true, message }
  connection.backoff(busy(7000))
  const short = assert.rejects(post(6999), refused)
  await clock.settle()
  clock.advance(6999)
  await short
  // One millisecond is left, and the call may not wait at all.
  await assert.rejects(post(0), refused)
  assert.equal(state.tokens, 0)
  const exact = post(1)
  await clock.settle()
  assert.equal(state.tokens, 0)
  clock.advance(1)
  assert.deepEqual(await exact, { fine: 1 })
  connection.backoff(busy(1000))
  clock.advance(1000)
  assert.deepEqual(await post(0), { fine: 1 })
  connection.backoff(busy(1000))
  clock.advance(1000)
  assert.deepEqual(await post(5), { fine: 1 })
})

test('CN-5 a call without maxWaitMs is sent exactly when the backoff ends, also if its timer fires early', async (t) => {
  const { connection, clock, post, state } = await setUp(t, fine, { early: 1 })
  connection.backoff(busy(7000))
  const patient = post()
  await clock.settle()
  clock.advance(6999)
  await clock.settle()
  assert.equal(state.tokens, 0)
  clock.advance(1)
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
  const { connection, clock, backoffs } = await setUp(t, fine)
  connection.backoff(busy())
  clock.advance(499)
  connection.backoff(busy())
  clock.advance(1)
  connection.backoff(busy())
  clock.advance(1000)
  connection.backoff(busy(600_000))
  clock.advance(600_000)
  connection.backoff(busy(600_001))
  assert.deepEqual(
    backoffs.map(([, backoffMs]) => backoffMs),
    [500, 1000, 600_000, 600_000],
  )
})

test('CN-6 a call that is cancelled while it waits is not sent, and one in flight ends without a backoff', async (t) => {
  const asked = Promise.withResolvers<void>()
  const { connection, clock, backoffs, post, state } = await setUp(t, () => asked.resolve())
  const canceled = { code: 'canceled', retryable: false, message: 'the call was cancelled' }
  await assert.rejects(post(undefined, AbortSignal.abort()), canceled)
  connection.backoff(busy(1000))
  const impatient = new AbortController()
  const waiting = assert.rejects(post(undefined, impatient.signal), canceled)
  await clock.settle()
  impatient.abort()
  await waiting
  assert.equal(state.tokens, 0, 'nothing was sent')
  clock.advance(1000)
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

test('a call is a POST with the token and JSON, and leaves no timer that holds the process', async (t) => {
  const asked: unknown[] = []
  const { connection } = await setUp(t, async (request, response) => {
    const { authorization, 'content-type': type, 'content-length': length } = request.headers
    asked.push(request.method, request.url, authorization, type, length, await text(request))
    response.end('{"a":"ü"}')
  })
  const before = timersOf()
  assert.deepEqual(await connection.post('/x', { ...call, body: { b: 'ü' } }), { a: 'ü' })
  assert.deepEqual(asked, ['POST', '/x', 'Bearer token 1', 'application/json', '10', '{"b":"ü"}'])
  assert.equal(timersOf(), before)
  const closed = await setUp(t, fine, { url: 'http://127.0.0.1:1' })
  await assert.rejects(closed.connection.post('/', call), { code: 'timeout', retryable: true })
  assert.equal(timersOf(), before)
})

test('CN-5 a failure of the platform or of a proxy is retryable, and a refusal of the platform is not', async (t) => {
  const { connection, clock } = await setUp(t, (request, response) => {
    const [, status, by] = request.url?.split('/') ?? []
    if (by === 'platform') response.setHeader('X-Request-Id', 'r')
    response.writeHead(Number(status)).end('{"error":{"message":"no"}}')
  })
  const failure = async (path: string) => {
    clock.advance(60_000)
    const error = await connection.post(path, call).catch((thrown: unknown) => thrown)
    assert.ok(error instanceof MoleculeError, String(error))
    assert.equal(error.message, 'no')
    assert.equal(error.details['status'], Number(path.split('/')[1]))
    return error.retryable
  }
  for (const status of [401, 429, 500, 501, 503, 507])
    assert.equal(await failure(`/${status}/platform`), true, `${status}`)
  for (const status of [400, 403, 404, 409, 499]) assert.equal(await failure(`/${status}/platform`), false, `${status}`)
  for (const status of [400, 401, 404, 500, 503]) assert.equal(await failure(`/${status}/proxy`), true, `${status}`)
  clock.advance(60_000)
  const firstContact = connection.post('/401/platform', { ...call, strict: true })
  await assert.rejects(firstContact, { retryable: false }, 'a wrong token at the first contact is final')
})

test('a refusal keeps its socket, and a reset of a new socket is a failure that is not sent again', async (t) => {
  let calls = 0
  const { connection, seen, clock } = await setUp(t, (request, response) => {
    calls += 1
    if (request.url === '/reset') return void request.socket.resetAndDestroy()
    response.writeHead(404, { 'X-Request-Id': 'r' }).end('{}')
  })
  await assert.rejects(connection.post('/reset', call), { code: 'timeout', retryable: true })
  assert.equal(calls, 1)
  clock.advance(60_000)
  for (let again = 0; again < 2; again++) await assert.rejects(connection.post('/', call), { code: 'not_found' })
  assert.equal(seen.size, 2)
})

test('CN-5 a call without an answer closes all kept sockets, because all of them may be dead', async (t) => {
  const both = Promise.withResolvers<void>()
  let calls = 0
  const { connection, open, clock } = await setUp(t, async (request, response) => {
    if (request.url === '/silent') return
    calls += 1
    if (calls === 2) both.resolve()
    await both.promise
    response.end('{}')
  })
  await Promise.all([connection.post('/', call), connection.post('/', call)])
  assert.equal(open.size, 2)
  await assert.rejects(connection.post('/silent', { ...call, timeoutMs: 50 }), { message: /did not answer in time/ })
  await waitUntil(() => open.size === 0, 'both sockets are closed', 15_000)
  clock.advance(60_000)
  assert.deepEqual(await connection.post('/', call), {})
})

test('at most four idle sockets are kept', async (t) => {
  let all = Promise.withResolvers<void>()
  let calls = 0
  const { connection, open, seen } = await setUp(t, async (_request, response) => {
    calls += 1
    if (calls % 6 === 0) all.resolve()
    await all.promise
    response.end('{}')
  })
  for (const sockets of [6, 8]) {
    all = Promise.withResolvers()
    await Promise.all(Array.from({ length: 6 }, () => connection.post('/', call)))
    assert.equal(seen.size, sockets)
    await waitUntil(
      () => open.size === 4,
      () => `${open.size} sockets are open`,
      15_000,
    )
  }
})

test('a platform at https is called over TLS', async (t) => {
  const server = createTcpServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { connection } = await setUp(t, fine, { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` })
  const connected = once(server, 'connection')
  const failing = assert.rejects(connection.post('/', call), { code: 'timeout', retryable: true })
  const [socket] = (await within(connected, 'a connection', 15_000)) as [Socket]
  const [hello] = (await within(once(socket, 'data'), 'the first bytes', 15_000)) as [Buffer]
  socket.destroy()
  await failing
  assert.equal(hello[0], 0x16, 'the handshake of TLS')
})

test('an answer to a bridge has at most 64 MiB, and a larger one is a final error', async (t) => {
  const limit = 64 * 1024 * 1024
  const body = Buffer.alloc(limit + 1, ' ')
  body.write('{}')
  const { connection, backoffs } = await setUp(t, (request, response) => {
    response.end(request.url === '/larger' ? body : body.subarray(0, limit))
  })
  const slow = { ...call, timeoutMs: 100_000 }
  assert.deepEqual(await connection.post('/', slow), {})
  const message = 'the answer of the platform is larger than 64 MiB'
  await assert.rejects(connection.post('/larger', slow), { code: 'too_large', retryable: false, message })
  assert.deepEqual(backoffs, [])
})
