import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { within } from '../../test/harness/wait.ts'
import { MoleculeError } from '../errors.ts'
import { createPlatformConnection, type PlatformConnectionOptions } from './platform-connection.ts'

type Answering = (request: IncomingMessage, response: ServerResponse) => void

async function setUp(t: TestContext, answer: Answering, more: Partial<PlatformConnectionOptions> = {}) {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const clock = manualClock()
  const backoffs: [string | undefined, number][] = []
  const connection = createPlatformConnection({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: () => 'secret',
    clock,
    onBackoff: (error, backoffMs) => backoffs.push([error?.code, backoffMs]),
    random: () => 1,
    ...more,
  })
  t.after(() => {
    connection.close()
    server.closeAllConnections()
    server.close()
  })
  return { connection, clock, backoffs }
}

const say = (response: ServerResponse, status: number, body: object) => {
  response.setHeader('X-Request-Id', 'req_1')
  response.writeHead(status)
  response.end(JSON.stringify(body))
}

const call = { body: {}, timeoutMs: 5000 }
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
  // A single failure ends like many: with one report, at the first success.
  clock.advance(60_000)
  healthy = true
  const before = backoffs.length
  for (let successes = 0; successes < 2; successes++) await connection.post('/', call)
  assert.deepEqual(backoffs.slice(before), [[undefined, 0]])
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

test('CN-5 the backoff is as long as the platform asks, and a call with a short maxWaitMs fails', async (t) => {
  let calls = 0
  const { connection, clock, backoffs } = await setUp(t, (_request, response) => {
    calls += 1
    if (calls === 1) response.setHeader('Retry-After', '7')
    if (calls === 1) say(response, 429, { error: { code: 'too_many_requests', message: 'slowly' } })
    else say(response, 200, { fine: true })
  })
  await assert.rejects(connection.post('/', call), { code: 'too_many_requests', retryable: true })
  assert.deepEqual(backoffs, [['too_many_requests', 7000]])
  assert.equal(await codeOf(connection.post('/', { ...call, maxWaitMs: 0 })), 'timeout')
  const patient = connection.post('/', call)
  clock.advance(6_999)
  await clock.settle()
  assert.equal(calls, 1)
  clock.advance(1)
  assert.deepEqual(await patient, { fine: true })
})

test('CN-5 calls that fail together count as one failure', async (t) => {
  const { connection, backoffs } = await setUp(t, (_request, response) => say(response, 503, {}))
  await Promise.allSettled([connection.post('/', call), connection.post('/', call), connection.post('/', call)])
  assert.equal(backoffs.length, 1)
})

test('CN-5 a refused token is retried, except at the first contact; other refusals are final', async (t) => {
  const { connection, clock } = await setUp(t, (request, response) => {
    const status = Number(request.url?.slice(1))
    say(response, status, { error: { code: status === 401 ? 'unauthenticated' : 'not_found', message: 'no' } })
  })
  const retryable = async (path: string, strict: boolean) => {
    clock.advance(60_000)
    const error = await connection.post(path, { ...call, strict }).catch((thrown: unknown) => thrown)
    assert.ok(error instanceof MoleculeError)
    return error.retryable
  }
  assert.equal(await retryable('/401', false), true)
  assert.equal(await retryable('/401', true), false)
  assert.equal(await retryable('/404', false), false)
})

test('CN-5 the page of a proxy is retried, whatever its status', async (t) => {
  const { connection } = await setUp(t, (_request, response) => {
    response.writeHead(404, { 'Content-Type': 'text/html' })
    response.end('<h1>nothing here yet</h1>')
  })
  await assert.rejects(connection.post('/', call), { retryable: true })
})

test('CN-5 a page of a proxy with status 200 and a closed port are retried, and each error says what happened', async (t) => {
  const { connection } = await setUp(t, (_request, response) => response.end('<h1>log in first</h1>'))
  await assert.rejects(connection.post('/', call), { retryable: true, message: /^the answer of http:.* is not JSON$/ })
  const closed = await setUp(t, () => undefined, { url: 'http://127.0.0.1:1' })
  const unreachable =
    /^the platform at http:\/\/127\.0\.0\.1:1 cannot be reached \(.*ECONNREFUSED.*\); start it there with "molecule up"$/
  await assert.rejects(closed.connection.post('/', call), { retryable: true, message: unreachable })
})

test('CN-6 after beginClosing a call without an answer ends in seconds, whatever its own time is', async (t) => {
  const { connection } = await setUp(t, () => undefined)
  connection.beginClosing()
  const silent = assert.rejects(connection.post('/', { ...call, timeoutMs: 600_000 }), { code: 'timeout' })
  await within(silent, 'the end of the call', 60_000)
})

test('CN-5 a silent connection is noticed by the timeout of the call', async (t) => {
  const { connection, backoffs } = await setUp(t, () => undefined)
  await assert.rejects(connection.post('/', { ...call, timeoutMs: 50 }), { code: 'timeout', retryable: true })
  assert.deepEqual(backoffs, [['timeout', 500]])
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
