/** One exchange of a bridge with its platform: what is sent, which failures are repeated, and the sockets that are kept. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { waitUntil, within } from '../../test/harness/wait.ts'
import { MoleculeError } from '../errors.ts'
import { createPlatformConnection } from './platform-connection.ts'

const call = { body: {}, timeoutMs: 20_000 }
const timersOf = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

function connect(t: TestContext, url: string) {
  const clock = manualClock()
  const backoffs: (string | undefined)[] = []
  const onBackoff = (error: MoleculeError | undefined) => backoffs.push(error?.code)
  const connection = createPlatformConnection({ url, clock, token: () => 'secret', onBackoff })
  t.after(() => connection.close())
  return { connection, clock, backoffs }
}

async function setUp(t: TestContext, answer: RequestListener) {
  const open = new Set<Socket>()
  const seen = new Set<Socket>()
  const server = createServer(answer)
  server.keepAliveTimeout = 600_000
  server.on('connection', (socket) => {
    open.add(socket)
    seen.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { ...connect(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`), open, seen }
}

test('a call is a POST with the token and JSON, and leaves no timer that holds the process', async (t) => {
  const asked: unknown[] = []
  const { connection } = await setUp(t, async (request, response) => {
    const { authorization, 'content-type': type, 'content-length': length } = request.headers
    asked.push(request.method, request.url, authorization, type, length, await text(request))
    response.end('{"a":"ü"}')
  })
  const before = timersOf()
  assert.deepEqual(await connection.post('/x', { ...call, body: { b: 'ü' } }), { a: 'ü' })
  assert.deepEqual(asked, ['POST', '/x', 'Bearer secret', 'application/json', '10', '{"b":"ü"}'])
  assert.equal(timersOf(), before)
  const closed = connect(t, 'http://127.0.0.1:1')
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
  const { connection } = connect(t, `https://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const connected = once(server, 'connection')
  const failing = assert.rejects(connection.post('/', call), { code: 'timeout', retryable: true })
  const [socket] = (await within(connected, 'a connection', 15_000)) as [Socket]
  const [hello] = (await within(once(socket, 'data'), 'the first bytes', 15_000)) as [Buffer]
  socket.destroy()
  await failing
  assert.equal(hello[0], 0x16, 'the handshake of TLS')
})
