import assert from 'node:assert/strict'
import { once } from 'node:events'
import test from 'node:test'
import { createFakeActivityLogs } from '../../../../test/fakes/platform/fake-activity.ts'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, openStream, sendParams } from '../../../../test/harness/open-door.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import { MoleculeError } from '../../../errors.ts'
import type { ActivityRow } from '../../../views/activity.ts'
import type { WorkspaceLogs } from '../../workspace-logs.ts'
import { SSE_LIMITS } from '../server/sse.ts'
import { STREAMS_PER_TOKEN_MAX } from '../server/waiting-calls.ts'

/** A log that never grows, on a stream that sends no comments. */
function quiet() {
  const { logs } = createFakeActivityLogs([WORKSPACE_ID])
  // biome-ignore lint/correctness/useYield: a log without rows
  async function* follow(_id: string, _seq: number, signal: AbortSignal) {
    await once(signal, 'abort')
  }
  return { logs: { ...logs, follow }, sseLimits: { ...SSE_LIMITS, keepAliveMs: 3600_000 } }
}

test('PL-7 the stream of a quiet workspace begins at once, and ends when its token is revoked', async (t) => {
  const { url, fakePlatform } = await openDoor(t, quiet())
  const { id, secret } = await fakePlatform.tokens.create({ name: 'short', role: 'viewer' })
  for (const token of [secret, secretOf('admin')]) {
    const stream = await openStream(`${url}/workspaces/${WORKSPACE_ID}/events`, { method: 'GET', token })
    assert.equal(stream.status, 200)
    if (token === secret) await fakePlatform.tokens.revoke(id)
    else stream.leave()
    await stream.ended
  }
})

test('PL-9 a token has a limited number of event streams, of both kinds together; closing one frees its place', async (t) => {
  const { url, fakePlatform, rpc } = await openDoor(t, quiet())
  const { secret } = await fakePlatform.tokens.create({ name: 'greedy', role: 'member' })
  const open = (token: string) => openStream(`${url}/workspaces/${WORKSPACE_ID}/events`, { method: 'GET', token })
  const streams = await Promise.all(Array.from({ length: STREAMS_PER_TOKEN_MAX }, () => open(secret)))
  assert.ok(streams.every(({ status }) => status === 200))
  assert.equal((await open(secret)).status, 429)
  const sent = await rpc('SendStreamingMessage', sendParams('slow'), { token: secret })
  assert.equal(sent.status, 429)
  assert.equal(fakePlatform.letters.length, 0, 'nothing was admitted for a stream that was refused')
  const other = await open(secretOf('admin'))
  assert.equal(other.status, 200)
  streams[0]?.leave()
  await waitUntil(async () => {
    const again = await open(secret)
    again.leave()
    return again.status === 200
  }, 'a closed stream frees its place')
  for (const stream of [...streams, other]) stream.leave()
})

const PATH = `/workspaces/${WORKSPACE_ID}/events`
const ROWS: ActivityRow[] = [
  { seq: 8, entries: [{ seq: 8, at: '2023-11-14T22:13:20.000Z', type: 'text', task_id: 't_1', text: 'a' }] },
  { seq: 9, entries: [] },
]

/** A log with these rows, that ends with the promise, and where its readers began. */
function createLog(end: Promise<void> = Promise.resolve()) {
  const fake = createFakeActivityLogs([WORKSPACE_ID])
  const resolved: unknown[] = []
  const followed: unknown[] = []
  const logs: WorkspaceLogs = {
    ...fake.logs,
    async resolveCursor(id, afterSeq) {
      resolved.push([id, afterSeq])
      return afterSeq ?? 7
    },
    async *follow(id, afterSeq) {
      followed.push([id, afterSeq])
      yield* ROWS
      await end
    },
  }
  return { logs, resolved, followed }
}

test('PL-7 every row of the log is one event with its number, from now on or after the last number that was seen', async (t) => {
  const { logs, resolved, followed } = createLog()
  const { url } = await openDoor(t, { logs })
  const read = async (query: string, headers: Record<string, string> = {}) => {
    const options = { method: 'GET', token: secretOf('viewer'), headers }
    const stream = await openStream(`${url}${PATH}${query}`, options)
    assert.equal(await stream.ended, 'ended')
    return stream.events
  }
  const at = '2023-11-14T22:13:20.000Z'
  assert.deepEqual(await read(''), [
    { id: '8', data: { seq: 8, events: [{ seq: 8, at, task_id: 't_1', type: 'text', text: 'a' }] } },
    { id: '9', data: { seq: 9, events: [] } },
  ])
  await read('?since=3')
  await read('?since=3', { 'Last-Event-ID': '5' })
  await read('', { 'Last-Event-ID': '' })
  assert.deepEqual(
    resolved,
    [undefined, 3, 5, undefined].map((seq) => [WORKSPACE_ID, seq]),
  )
  assert.deepEqual(
    followed,
    [7, 3, 5, 7].map((seq) => [WORKSPACE_ID, seq]),
  )
})

test('PL-7 a number that is none is refused before the stream begins', async (t) => {
  const { logs, resolved } = createLog()
  const { sendRequest } = await openDoor(t, { logs })
  for (const since of ['x', '-1', '1.5', '1'.repeat(16)]) {
    const { status, json } = await sendRequest(`${PATH}?since=${since}`, { token: secretOf('viewer') })
    assert.deepEqual([status, json.error.message], [400, 'Last-Event-ID must be the number of an earlier event'])
  }
  assert.deepEqual(resolved, [])
})

test('PL-7 a stream whose log fails is cut and logged, so that its reader connects again', async (t) => {
  const failure = Promise.withResolvers<void>()
  const { logs } = createLog(failure.promise)
  const { url, fakePlatform } = await openDoor(t, { logs })
  const stream = await openStream(url + PATH, { method: 'GET', token: secretOf('viewer') })
  await waitUntil(() => stream.events.length === 2, 'the rows arrive')
  failure.reject(new MoleculeError('store_unavailable', 'the store is away'))
  assert.equal(await stream.ended, 'cut')
  const isLogged = () => fakePlatform.logged.some(({ code }) => code === 'store_unavailable')
  await waitUntil(isLogged, 'the failure is logged')
})

test('PL-7 a request for the socket without an upgrade is told how to ask for it', async (t) => {
  const { sendRequest } = await openDoor(t)
  const { status, json, headers } = await sendRequest('/ws', { token: secretOf('viewer') })
  assert.deepEqual([status, headers.upgrade, headers.connection], [426, 'websocket', 'Upgrade'])
  assert.deepEqual(json.error, {
    code: 'invalid_request',
    message: 'this is a WebSocket: ask for it with "Upgrade: websocket"',
    id: headers['x-request-id'],
  })
})
