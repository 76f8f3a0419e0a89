import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { Server } from 'node:http'
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

const A2A = `/workspaces/${WORKSPACE_ID}/a2a`

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

test('a platform without a load shows none', async (t) => {
  const { sendRequest } = await openDoor(t)
  const { text } = await sendRequest('/metrics', { token: secretOf('admin') })
  assert.match(text, /^molecule_messages_waiting 0$/m)
  assert.match(text, /^molecule_turns_running 0$/m)
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
