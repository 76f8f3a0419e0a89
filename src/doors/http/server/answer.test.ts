import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type FakeRequestFields, FakeResponse, fakeRequest } from '../../../../test/fakes/http-exchange.ts'
import { isRefusedBeforeBody, writeAnswer } from './answer.ts'

const MIB = 1024 * 1024
const HEADERS = {
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'X-Request-Id': 'req_1',
}

function answer(fields: FakeRequestFields, headers?: Readonly<Record<string, string>>) {
  const request = fakeRequest(fields)
  const client = new FakeResponse()
  const given = { status: 413, body: { a: 'ä' }, ...(headers && { headers }) }
  writeAnswer({ request, response: client.response, requestId: 'req_1' }, given)
  return { request, client }
}

test('PL-15 an answer is JSON with its length in bytes and the id of its request, and the connection stays', () => {
  const { client } = answer({}, { 'Retry-After': '2' })
  assert.deepEqual(
    [client.status, client.text, client.writableEnded, client.headers],
    [413, '{"a":"ä"}', true, { ...HEADERS, 'Content-Length': 10, 'Retry-After': '2' }],
  )
})

test('nothing is written to a client that has gone', () => {
  const client = new FakeResponse()
  client.destroy()
  writeAnswer({ request: fakeRequest(), response: client.response, requestId: 'r' }, { status: 200, body: {} })
  assert.equal(client.status, undefined)
})

test('PL-9 an answer to a client that still sends is whole, and ends after the body', async () => {
  const { request, client } = answer({ complete: false })
  assert.deepEqual([client.text, client.writableEnded, client.headers['Connection']], ['{"a":"ä"}', false, undefined])
  request.write('more')
  await nextTurn()
  assert.deepEqual([client.writableEnded, request.readableLength], [false, 0])
  request.end('the end')
  await once(request, 'end')
  assert.ok(client.writableEnded)
})

test('PL-9 an answer to a client that disconnects while it sends ends too', async () => {
  const { request, client } = answer({ complete: false })
  request.destroy()
  await once(request, 'close')
  assert.ok(client.writableEnded)
})

test('PL-9 a refused body is read for 5 s, then the connection is closed', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { request } = answer({ complete: false })
  t.mock.timers.tick(4999)
  assert.equal(request.destroyed, false)
  t.mock.timers.tick(1)
  assert.equal(request.destroyed, true)
})

test('RE-5 a refused body that is still read does not keep the process from ending', () => {
  const keepAlive = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
  const before = keepAlive()
  const { request } = answer({ complete: false })
  assert.equal(keepAlive(), before)
  request.destroy()
})

test('PL-9 a body that ended in time does not close the connection later', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { request } = answer({ complete: false })
  request.emit('end')
  t.mock.timers.tick(10_000)
  assert.equal(request.destroyed, false)
})

test('PL-9 a client that asks before it sends too much gets its answer at once, and the connection ends', () => {
  const headers = { expect: '100-continue', 'content-length': String(8 * MIB + 1) }
  const { client } = answer({ complete: false, headers })
  assert.deepEqual([client.text, client.writableEnded, client.headers['Connection']], ['{"a":"ä"}', true, 'close'])
})

test('PL-9 before it sends, a client is refused over 8 MiB, over 32 MiB for the inbox, and over the limit of a file', () => {
  const refused = (bytes: number, { method = 'POST', url = '/workspaces/a/a2a', expect = '100-continue' } = {}) =>
    isRefusedBeforeBody({ method, url, headers: { expect, 'content-length': String(bytes) } })
  const edge = (bytes: number, of: { method?: string; url?: string } = {}) => [
    refused(bytes, of),
    refused(bytes + 1, of),
  ]
  assert.deepEqual(edge(8 * MIB), [false, true])
  assert.deepEqual(edge(32 * MIB, { url: '/workspaces/a/inbox/settle' }), [false, true])
  assert.deepEqual(edge(8 * MIB, { url: '/workspaces/a/files/inbox/x' }), [false, true])
  assert.deepEqual(edge(25 * MIB, { method: 'PUT', url: '/workspaces/a/inbox/x' }), [false, true])
  assert.equal(isRefusedBeforeBody({ method: 'POST', headers: { 'content-length': '99999999' }, url: '/' }), false)
  assert.equal(isRefusedBeforeBody({ method: 'POST', headers: { expect: '100-continue' }, url: '/' }), false)
})
