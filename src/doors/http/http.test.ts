import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { request, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { createFakePlatform, secretOf, WORKSPACE_ID } from '../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams } from '../../../test/harness/open-door.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { createMetrics } from '../../metrics.ts'
import { createHttpDoor } from './http.ts'
import { urlOf } from './server/listen.ts'

const MIB = 1024 * 1024
const A2A = `/workspaces/${WORKSPACE_ID}/a2a`

test('/health is always 200, with name and version', async (t) => {
  const { sendRequest } = await openDoor(t, { unready: async () => 'starting' })
  const { status, json } = await sendRequest('/health')
  assert.equal(status, 200)
  assert.deepEqual(json, { status: 'ok', name: 'molecule', version: '1.2.3', pid: process.pid })
})

test('PL-1 /ready is 200 when the platform accepts work and 503 with the reason when not', async (t) => {
  let reason: string | undefined = 'the runtime is starting'
  const { sendRequest } = await openDoor(t, { unready: async () => reason })
  const before = await sendRequest('/ready')
  assert.equal(before.status, 503)
  assert.equal(before.json.reason, 'the runtime is starting')
  reason = undefined
  assert.equal((await sendRequest('/ready')).status, 200)
})

test('a Host that is not this platform is refused before anything else, on every path', async (t) => {
  const { sendRequest, url, fakePlatform } = await openDoor(t)
  const { port } = new URL(url)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: sendParams('hello') })
  for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.evil.example']) {
    const headers = { host }
    assert.equal((await sendRequest('/health', { headers })).status, 403, host)
    const answer = await sendRequest(A2A, { method: 'POST', headers, token: secretOf('admin'), body })
    assert.equal(answer.status, 403, host)
  }
  assert.equal(fakePlatform.letters.length, 0)
  for (const host of ['localhost', `LOCALHOST:${port}`, '127.0.0.1:1', '[::1]', `[::1]:${port}`]) {
    assert.equal((await sendRequest('/health', { headers: { host } })).status, 200, host)
  }
})

test('TRACE is not allowed, on every path', async (t) => {
  const { sendRequest } = await openDoor(t)
  for (const path of ['/health', '/workspaces', '/nowhere', A2A, `${A2A}/tasks`]) {
    const { status, headers, json } = await sendRequest(path, { method: 'TRACE', token: secretOf('admin') })
    assert.deepEqual([status, json.error.message], [405, 'TRACE is not answered here'], path)
    assert.match(String(headers.allow), /GET.*POST/)
    assert.match(String(headers['x-request-id']), /^req_/)
  }
})

test('PL-9 a body over its limit (1 MiB, for A2A 8 MiB) is 413', async (t) => {
  const { sendRequest, rpc } = await openDoor(t)
  const over = await sendRequest('/workspaces', { method: 'POST', token: secretOf('admin'), body: 'x'.repeat(MIB + 1) })
  assert.equal(over.status, 413)
  assert.equal(over.json.error.code, 'too_large')
  const within = await sendRequest('/workspaces', { method: 'POST', token: secretOf('admin'), body: 'x'.repeat(MIB) })
  assert.equal(within.status, 400)
  const a2aOver = await rpc('', {}, { body: 'x'.repeat(8 * MIB + 1) })
  assert.equal(a2aOver.status, 413)
  assert.equal(a2aOver.json.error.data[0].metadata.limitBytes, String(8 * MIB))
  const a2aWithin = await rpc('', {}, { body: 'x'.repeat(8 * MIB) })
  assert.equal(a2aWithin.json.error.code, -32700)
})

test('a client that sends 100 MiB, of known or unknown length, can read its 413', async (t) => {
  const { url } = await openDoor(t)
  const chunk = Buffer.alloc(MIB, 'x')
  for (const path of ['/workspaces', A2A]) {
    for (const headers of [{ 'content-length': String(100 * MIB) }, { 'transfer-encoding': 'chunked' }]) {
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const authorization = `Bearer ${secretOf('admin')}`
        const options = { method: 'POST', headers: { authorization, ...headers }, agent: false }
        const outgoing = request(url + path, options, (incoming) => {
          resolve(incoming.statusCode)
          outgoing.destroy()
        })
        outgoing.on('error', reject)
        let left = 100
        const pump = () => {
          while (left-- > 0) if (!outgoing.write(chunk)) return void outgoing.once('drain', pump)
          outgoing.end()
        }
        pump()
      })
      assert.equal(status, 413, `${path} ${JSON.stringify(headers)}`)
    }
  }
})

test('a client that disconnects in the middle of its body does no harm', async (t) => {
  const { url, sendRequest, fakePlatform } = await openDoor(t)
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const head = `POST ${A2A} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${secretOf('admin')}\r\n`
  // The door asks for the body only when it has read the head.
  socket.write(`${head}Content-Length: 100\r\nExpect: 100-continue\r\n\r\n`)
  assert.match(String(await once(socket, 'data')), /^HTTP\/1.1 100 /)
  socket.write('{"jsonrpc"')
  socket.destroy()
  await waitUntil(() => fakePlatform.logged.some(({ code }) => code === 'canceled'), 'the disconnect is logged')
  assert.equal((await sendRequest('/health')).status, 200)
})

test('a client that sends too slowly is disconnected', async (t) => {
  const { url } = await openDoor(t, { requestTimeoutMs: 200 })
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk.toString()
  })
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.write(`POST ${A2A} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${secretOf('admin')}\r\n`)
  socket.write('Content-Length: 100\r\n\r\n{')
  await closed
  assert.match(answer, /^HTTP\/1.1 408 /)
})

test('closing answers waiting callers with the unfinished task, and then the port is closed', async (t) => {
  const { door, rpc, fakePlatform, sendRequest } = await openDoor(t)
  const answer = rpc('SendMessage', sendParams('slow'))
  await waitUntil(() => fakePlatform.waiting() === 1, 'the call waits')
  await door.close()
  assert.equal((await answer).json.result.task.status.state, 'TASK_STATE_WORKING')
  await assert.rejects(sendRequest('/health'), { code: 'ECONNREFUSED' })
  await door.close()
})

test('PL-1 the URL of a door that listens on all addresses is that of loopback', () => {
  const server = { address: () => ({ port: 8080 }) } as unknown as Server
  const hosts = { '0.0.0.0': '127.0.0.1', '::': '[::1]', '::1': '[::1]', 'a.test': 'a.test' }
  for (const [host, shown] of Object.entries(hosts)) assert.equal(urlOf(server, host), `http://${shown}:8080`)
  assert.throws(() => urlOf({ address: () => null } as unknown as Server, '::'), { code: 'internal' })
})

test('PL-13 the error for a port in use names the port and the flag', async (t) => {
  const { url } = await openDoor(t)
  const fakePlatform = createFakePlatform()
  const second = createHttpDoor({
    ...fakePlatform,
    clock: systemClock,
    host: '127.0.0.1',
    port: Number(new URL(url).port),
    version: '0',
    maxBlockMs: 1,
    unready: async () => undefined,
  })
  await assert.rejects(second.start(), { code: 'in_use', message: /port \d+ .* --port/ })
  await second.close()
})

test('the error for an address of another machine names the flag', async () => {
  const door = createHttpDoor({
    ...createFakePlatform(),
    clock: systemClock,
    host: '203.0.113.1',
    port: 0,
    version: '0',
    maxBlockMs: 1,
    unready: async () => undefined,
  })
  await assert.rejects(door.start(), { code: 'bad_config', message: /--host/ })
})

/** A connection of bytes, that keeps what it receives. */
async function dial(t: TestContext, url: string) {
  const socket: Socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  const received: string[] = []
  socket.on('error', () => undefined)
  socket.setEncoding('utf8').on('data', (text: string) => received.push(text))
  await once(socket, 'connect')
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  return { socket, closed, text: () => received.join('') }
}

test('PL-9 a client has 15 s for the head of a request, 60 s for all of it, and 60 s until the next one', async (t) => {
  const { url, sendRequest } = await openDoor(t)
  const servers: Server[] = []
  const note = (message: unknown) => {
    servers.push((message as { server: Server }).server)
  }
  subscribe('http.server.request.start', note)
  t.after(() => unsubscribe('http.server.request.start', note))
  await sendRequest('/health')
  const [server] = servers
  assert.deepEqual([server?.headersTimeout, server?.requestTimeout], [15_000, 60_000])
  const { socket, text } = await dial(t, url)
  socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await waitUntil(() => text().includes('"ok"'))
  assert.match(text(), /keep-alive: timeout=60/i)
})

test('PL-1 a door has its name, and its A2A calls only once it is started', async (t) => {
  const door = createHttpDoor({
    ...createFakePlatform(),
    clock: systemClock,
    host: '127.0.0.1',
    port: 0,
    version: '0',
    maxBlockMs: 1,
    unready: async () => undefined,
  })
  t.after(() => door.close())
  assert.equal(door.name, 'http')
  assert.throws(() => door.a2aCalls, { code: 'internal', message: 'the http door is not started' })
  await door.start()
  assert.equal(door.a2aCalls.limits.requestMs, 60_000)
})

test('RE-5 a closing door answers what has begun, says that it shuts down, and ends the rest after 5 s', async (t) => {
  const clock = manualClock()
  const { door, url } = await openDoor(t, { clock, unready: () => new Promise<undefined>(() => undefined) })
  const [waits, begun, other] = [await dial(t, url), await dial(t, url), await dial(t, url)]
  waits.socket.write('GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n')
  begun.socket.write('GET /ready HTTP/1.1\r\nHost: localhost\r\n')
  // An answer on another connection shows that the door has read the bytes before.
  other.socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  await other.closed
  let isClosed = false
  const closing = door.close().then(() => {
    isClosed = true
  })
  begun.socket.write('\r\n')
  await begun.closed
  assert.match(begun.text(), /^HTTP\/1.1 503 .*connection: close.*"shutting down"/is)
  clock.advance(4999)
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  assert.equal(isClosed, false)
  clock.advance(1)
  await waits.closed
  await closing
  assert.equal(waits.text(), '')
})

test('PL-15 every answer is marked as not to be sniffed, and has one id', async (t) => {
  const { sendRequest, rpc } = await openDoor(t)
  for (const { headers } of [
    await sendRequest('/health'),
    await sendRequest('/x'),
    await rpc('GetTask', { id: 'x' }),
  ]) {
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.match(String(headers['x-request-id']), /^req_[0-9A-Z]{26}$/)
  }
})

test('PL-15 requests are counted by the class of their status, and those without an answer apart', async (t) => {
  const metrics = createMetrics()
  const { sendRequest, rpc, url, fakePlatform } = await openDoor(t, { metrics })
  await sendRequest('/health')
  await sendRequest('/nowhere')
  await rpc('GetTask', { id: 'x' })
  await sendRequest('/health', { headers: { host: 'evil.test' } })
  const { socket } = await dial(t, url)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: sendParams('slow') })
  socket.write(`POST ${A2A} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${secretOf('admin')}\r\n`)
  socket.write(`Content-Length: ${body.length}\r\n\r\n${body}`)
  await waitUntil(() => fakePlatform.waiting() === 1)
  socket.destroy()
  const counts = async () => {
    const { text } = await sendRequest('/metrics', { token: secretOf('admin') })
    return text.split('\n').filter((line) => line.startsWith('molecule_http_requests_total'))
  }
  await waitUntil(async () => (await counts()).some((line) => line.includes('none')))
  const lines = await counts()
  assert.ok(lines.includes('molecule_http_requests_total{status="4xx"} 2'), String(lines))
  assert.ok(lines.includes('molecule_http_requests_total{status="none"} 1'), String(lines))
  assert.equal(lines.length, 3)
})

test('a refused Host is named in the answer and in the log, also where there is none', async (t) => {
  const { sendRequest, url, fakePlatform } = await openDoor(t)
  const { status, json } = await sendRequest('/health', { headers: { host: 'evil.test' } })
  assert.equal(status, 403)
  assert.match(
    json.error.message,
    /^"evil\.test" is not a name of this platform; .* --public-url https:\/\/evil\.test$/,
  )
  const line = fakePlatform.logged.at(-1)
  assert.deepEqual([line?.['code'], line?.['path'], line?.['requestId']], ['forbidden', '/health', json.error.id])
  const { socket, closed, text } = await dial(t, url)
  socket.write('GET /health HTTP/1.0\r\n\r\n')
  await closed
  assert.match(text(), /^HTTP\/1.1 403 .*\\"\\" is not a name of this platform/s)
})

test('RE-7 a log that fails ends one connection and not the platform', async (t) => {
  const { log } = createFakePlatform()
  let failures = 0
  const lines: object[] = []
  const info = (fields: object) => {
    if (failures++ === 0) throw new Error('the disk is full')
    lines.push(fields)
  }
  const { rpc, sendRequest } = await openDoor(t, {
    log: { ...log, info, error: (fields) => void lines.push(fields) },
  })
  await assert.rejects(rpc('GetTask', { id: 'x' }), { code: 'ECONNRESET' })
  assert.equal(lines.length, 1)
  assert.equal((await sendRequest('/health')).status, 200)
})

test('the door leaves the Request and Response of the process as they are', async (t) => {
  const { Request: requestBefore, Response: responseBefore } = globalThis
  await openDoor(t)
  assert.deepEqual([globalThis.Request === requestBefore, globalThis.Response === responseBefore], [true, true])
})

const WAIT_MS = 10_000

/** Writes bytes and keeps the answer. */
async function dialWith(t: TestContext, url: string, head: readonly string[]) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  await once(socket, 'connect')
  const authorization = `Authorization: Bearer ${secretOf('admin')}`
  socket.write(`${[...head, 'Host: localhost', authorization].join('\r\n')}\r\n\r\n`)
  const answered = (what: RegExp) =>
    waitUntil(
      () => what.test(text),
      () => `${what}: ${text}`,
      WAIT_MS,
    )
  return { socket, answered, text: () => text }
}

test('PL-9 a client that asks before it sends its body may go on, and is then answered', async (t) => {
  const { url } = await openDoor(t)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SendMessage', params: sendParams('hello') })
  const post = [`POST /workspaces/${WORKSPACE_ID}/a2a HTTP/1.1`, 'Expect: 100-continue']
  const { socket, answered } = await dialWith(t, url, [...post, `Content-Length: ${body.length}`])
  await answered(/^HTTP\/1\.1 100 Continue\r\n\r\n$/)
  socket.write(body)
  await answered(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 .*TASK_STATE_COMPLETED/s)
  const large = await dialWith(t, url, [...post, `Content-Length: ${8 * 1024 * 1024 + 1}`])
  await large.answered(/^HTTP\/1\.1 413 .*connection: close.*larger than 8388608 bytes/is)
})
