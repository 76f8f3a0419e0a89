import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request, type Server } from 'node:http'
import { connect } from 'node:net'
import test from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createFakePlatform, secretOf, WORKSPACE_ID } from '../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams } from '../../../test/harness/open-door.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
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

test('PL-15 every answer has its own X-Request-Id', async (t) => {
  const { sendRequest, rpc } = await openDoor(t)
  const answers = [
    await sendRequest('/health'),
    await sendRequest('/nowhere'),
    await sendRequest('/workspaces'),
    await sendRequest('/health', { headers: { host: 'evil.example' } }),
    await rpc('SendMessage', sendParams('hello')),
    await rpc('SendMessage', sendParams('hello'), { token: 'wrong' }),
  ]
  const ids = answers.map(({ headers }) => String(headers['x-request-id']))
  for (const id of ids) assert.match(id, /^req_[0-9A-Z]{26}$/)
  assert.equal(new Set(ids).size, ids.length)
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

test('a client that sends Expect: 100-continue is refused before it sends a body over the limit', async (t) => {
  const { url } = await openDoor(t)
  const ask = (bytes: number, path = A2A) =>
    new Promise<string>((resolve, reject) => {
      const headers = { authorization: `Bearer ${secretOf('admin')}`, expect: '100-continue', 'content-length': bytes }
      const outgoing = request(url + path, { method: 'POST', headers, agent: false })
      const answered = (what: string) => {
        outgoing.destroy()
        resolve(what)
      }
      outgoing.on('continue', () => answered('continue'))
      outgoing.on('response', (incoming) => answered(String(incoming.statusCode)))
      outgoing.on('error', reject)
      outgoing.flushHeaders()
    })
  assert.equal(await ask(9 * MIB), '413')
  assert.equal(await ask(MIB), 'continue')
  const settle = `/workspaces/${WORKSPACE_ID}/inbox/settle`
  assert.equal(await ask(33 * MIB, settle), '413')
  assert.equal(await ask(32 * MIB, settle), 'continue', 'a bridge may settle with a large reply')
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

test('RE-5 closing ends requests that do not finish within the grace, and leaves no socket', async (t) => {
  const { door, url } = await openDoor(t, { closeGraceMs: 100 })
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.on('error', () => undefined)
  socket.write(`POST ${A2A} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${secretOf('admin')}\r\n`)
  socket.write('Content-Length: 100\r\n\r\n{')
  await delay(50)
  await door.close()
  await closed
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
