import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { MoleculeError } from '../errors.ts'
import { createLine, type LineOptions } from './remote-inbox-line.ts'

type Answering = (request: IncomingMessage, response: ServerResponse) => void

async function setUp(t: TestContext, answer: Answering, more: Partial<LineOptions> = {}) {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const clock = manualClock()
  const rests: [string | undefined, number][] = []
  const line = createLine({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: () => 'secret',
    clock,
    onRest: (error, restMs) => rests.push([error?.code, restMs]),
    random: () => 1,
    ...more,
  })
  t.after(() => {
    line.close()
    server.closeAllConnections()
    server.close()
  })
  return { line, clock, rests }
}

const say = (response: ServerResponse, status: number, body: object) => {
  response.setHeader('X-Request-Id', 'req_1')
  response.writeHead(status)
  response.end(JSON.stringify(body))
}

const call = { body: {}, timeoutMs: 5000 }
const codeOf = async (work: Promise<unknown>) => ((await work.catch((error: unknown) => error)) as MoleculeError).code

test('CN-5 the line rests twice as long after each failure, up to a minute, and begins anew after a success', async (t) => {
  let healthy = false
  const { line, clock, rests } = await setUp(t, (_request, response) => say(response, healthy ? 200 : 503, {}))
  for (let failures = 0; failures < 10; failures++) {
    await assert.rejects(line.post('/', call))
    clock.advance(60_000)
  }
  const waits = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]
  assert.deepEqual(
    rests.map(([, restMs]) => restMs),
    waits,
  )
  healthy = true
  await line.post('/', call)
  healthy = false
  await assert.rejects(line.post('/', call))
  assert.deepEqual(rests.slice(-2), [
    [undefined, 0],
    ['store_unavailable', 500],
  ])
})

test('CN-5 it waits as long as the platform asks, and a call with little patience is told so', async (t) => {
  let calls = 0
  const { line, clock, rests } = await setUp(t, (_request, response) => {
    calls += 1
    if (calls === 1) response.setHeader('Retry-After', '7')
    if (calls === 1) say(response, 429, { error: { code: 'too_many_requests', message: 'slowly' } })
    else say(response, 200, { fine: true })
  })
  await assert.rejects(line.post('/', call), { code: 'too_many_requests', retryable: true })
  assert.deepEqual(rests, [['too_many_requests', 7000]])
  assert.equal(await codeOf(line.post('/', { ...call, patienceMs: 0 })), 'timeout')
  const patient = line.post('/', call)
  clock.advance(6_999)
  await clock.settle()
  assert.equal(calls, 1)
  clock.advance(1)
  assert.deepEqual(await patient, { fine: true })
})

test('CN-5 calls that fail together count as one failure', async (t) => {
  const { line, rests } = await setUp(t, (_request, response) => say(response, 503, {}))
  await Promise.allSettled([line.post('/', call), line.post('/', call), line.post('/', call)])
  assert.equal(rests.length, 1)
})

test('CN-5 a refused token may be renewed, unless this is the first contact; other refusals are final', async (t) => {
  const { line, clock } = await setUp(t, (request, response) => {
    const status = Number(request.url?.slice(1))
    say(response, status, { error: { code: status === 401 ? 'unauthenticated' : 'not_found', message: 'no' } })
  })
  const retryable = async (path: string, strict: boolean) => {
    clock.advance(60_000)
    const error = await line.post(path, { ...call, strict }).catch((thrown: unknown) => thrown)
    assert.ok(error instanceof MoleculeError)
    return error.retryable
  }
  assert.equal(await retryable('/401', false), true)
  assert.equal(await retryable('/401', true), false)
  assert.equal(await retryable('/404', false), false)
})

test("CN-5 a proxy's own page is waited out, whatever its status", async (t) => {
  const { line } = await setUp(t, (_request, response) => {
    response.writeHead(404, { 'Content-Type': 'text/html' })
    response.end('<h1>nothing here yet</h1>')
  })
  await assert.rejects(line.post('/', call), { retryable: true })
})

test('CN-5 silence is noticed by the time limit of the call', async (t) => {
  const { line, rests } = await setUp(t, () => undefined)
  await assert.rejects(line.post('/', { ...call, timeoutMs: 50 }), { code: 'timeout', retryable: true })
  assert.deepEqual(rests, [['timeout', 500]])
})

test('CN-6 whoever hurries does not wait for a line that rests, and a call can be cancelled while it waits', async (t) => {
  let calls = 0
  const { line } = await setUp(t, (_request, response) => say(response, ++calls === 1 ? 503 : 200, {}))
  await assert.rejects(line.post('/', call))
  const cancel = new AbortController()
  const waiting = line.post('/', call, cancel.signal)
  cancel.abort()
  assert.equal(await codeOf(waiting), 'canceled')
  const patient = line.post('/', call)
  line.hurry()
  assert.deepEqual(await patient, {})
})

test('a connection is kept and used again, and one that the platform closed meanwhile does not fail a call', async (t) => {
  const sockets = new Set<unknown>()
  const { line } = await setUp(t, (request, response) => {
    sockets.add(request.socket)
    say(response, 200, {})
    if (request.url === '/last') response.once('finish', () => request.socket.destroy())
  })
  for (let calls = 0; calls < 3; calls++) await line.post('/', call)
  assert.equal(sockets.size, 1)
  await line.post('/last', call)
  await line.post('/', call)
  assert.equal(sockets.size, 2)
})
