import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { createFakeActivityLogs } from '../../../../test/fakes/platform/fake-activity.ts'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { bearerOptions, connectSocket } from '../../../../test/harness/clients/socket-client.ts'
import { openDoor } from '../../../../test/harness/open-door.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import { SSE_LIMITS, type SseLimits } from '../server/sse.ts'

const OTHER_ID = 'ws_01M7FPH65GBDK8DY0646KAE699'

async function openSockets(t: TestContext, limits: Partial<SseLimits> = {}) {
  const logs = createFakeActivityLogs([WORKSPACE_ID, OTHER_ID])
  const opened = await openDoor(t, { logs: logs.logs, sseLimits: { ...SSE_LIMITS, ...limits } })
  const listen = async (options = bearerOptions(secretOf('admin'))) => {
    const listener = await connectSocket(opened.url, options)
    t.after(() => listener.socket.terminate())
    return listener
  }
  return { ...opened, logs, listen }
}

/** The status of a refused upgrade. */
async function refusedWith(work: Promise<unknown>): Promise<number> {
  const error = await work.then(
    () => assert.fail('the upgrade was accepted'),
    (thrown: Error) => thrown,
  )
  return Number(/Unexpected server response: (\d+)/.exec(error.message)?.[1])
}

test('PL-7 a socket receives every row once, after the given number or from now on', async (t) => {
  const { logs, listen } = await openSockets(t)
  for (let row = 0; row < 40; row++) logs.add(WORKSPACE_ID)
  logs.add(OTHER_ID)
  const listener = await listen()
  listener.send({ subscribe: { [WORKSPACE_ID]: 12, [OTHER_ID]: null } })
  await waitUntil(() => listener.seqs(WORKSPACE_ID).length === 28)
  const begins = listener.messages.filter(({ type }) => type === 'subscribed')
  assert.deepEqual(begins, [
    { type: 'subscribed', workspace: WORKSPACE_ID, seq: 12 },
    { type: 'subscribed', workspace: OTHER_ID, seq: 1 },
  ])
  logs.add(OTHER_ID)
  logs.add(WORKSPACE_ID)
  await waitUntil(() => listener.seqs(WORKSPACE_ID).at(-1) === 41 && listener.seqs(OTHER_ID).length === 1)
  assert.deepEqual(
    listener.seqs(WORKSPACE_ID),
    Array.from({ length: 29 }, (_, index) => index + 13),
  )
  assert.deepEqual(listener.seqs(OTHER_ID), [2])
  assert.deepEqual(listener.messages.at(-1)?.events?.[0]?.type, 'note')
})

test('PL-7 a log that is unsubscribed sends no more rows, and begins anew where it is subscribed again', async (t) => {
  const { logs, listen } = await openSockets(t)
  const listener = await listen()
  const subscribed = () => listener.messages.filter(({ type }) => type === 'subscribed').length
  listener.send({ subscribe: { [WORKSPACE_ID]: 0, [OTHER_ID]: 0 } })
  await waitUntil(() => subscribed() === 2)
  listener.send({ subscribe: { [OTHER_ID]: 0 }, unsubscribe: [WORKSPACE_ID, 'ws_nowhere'] })
  await waitUntil(() => subscribed() === 3)
  logs.add(WORKSPACE_ID)
  logs.add(OTHER_ID)
  await waitUntil(() => listener.seqs(OTHER_ID).length === 1)
  assert.deepEqual(listener.seqs(WORKSPACE_ID), [])
  listener.send({ subscribe: { [WORKSPACE_ID]: 0 }, unsubscribe: [WORKSPACE_ID] })
  await waitUntil(() => listener.seqs(WORKSPACE_ID).length === 1)
  assert.deepEqual(listener.seqs(OTHER_ID), [1])
})

test('PL-7 rows of another process arrive too, and only the log that grew is read', async (t) => {
  const { logs, listen } = await openSockets(t)
  const listener = await listen()
  listener.send({ subscribe: { [WORKSPACE_ID]: 0, [OTHER_ID]: 0 } })
  await waitUntil(() => listener.messages.length === 2 && logs.pages() === 2)
  logs.addElsewhere(WORKSPACE_ID)
  logs.addElsewhere(WORKSPACE_ID)
  await waitUntil(() => listener.seqs(WORKSPACE_ID).length === 2)
  await waitUntil(() => logs.pages() === 4)
  assert.deepEqual(listener.seqs(OTHER_ID), [])
})

test('PL-7 a pruned number is answered with 410, and the other logs go on', async (t) => {
  const { logs, listen } = await openSockets(t)
  for (let row = 0; row < 9; row++) logs.add(WORKSPACE_ID)
  logs.add(OTHER_ID)
  logs.prune(WORKSPACE_ID, 5)
  const listener = await listen()
  listener.send({ subscribe: { [WORKSPACE_ID]: 3, [OTHER_ID]: 0, ws_nowhere: null } })
  await waitUntil(() => listener.seqs(OTHER_ID).length === 1)
  const refusals = listener.messages.filter(({ type }) => type === 'error')
  assert.deepEqual(
    refusals.map(({ workspace, status, error, pruned_seq }) => [workspace, status, error.code, pruned_seq]),
    [
      [WORKSPACE_ID, 410, 'pruned', 5],
      ['ws_nowhere', 404, 'not_found', undefined],
    ],
  )
  listener.send({ subscribe: { [WORKSPACE_ID]: 5 } })
  await waitUntil(() => listener.seqs(WORKSPACE_ID).length === 4)
})

test('PL-7 the stream _platform begins with all workspaces and reports created, changed and deleted ones', async (t) => {
  const { fakePlatform, logs, listen } = await openSockets(t)
  const listener = await listen()
  listener.send({ subscribe: {}, others: 'now' })
  await waitUntil(() => listener.messages.some(({ type }) => type === 'snapshot'))
  const [snapshot] = listener.messages
  assert.deepEqual([snapshot.workspace, snapshot.workspaces[0].id], ['_platform', WORKSPACE_ID])
  await waitUntil(() => listener.messages.some(({ type }) => type === 'subscribed'))
  const made = await fakePlatform.workspaces.create({ name: 'new' })
  await waitUntil(() => listener.messages.some(({ type, id }) => type === 'created' && id === made.id))
  const created = listener.messages.find(({ type }) => type === 'created')
  assert.deepEqual([created.workspace, created.state.name], ['_platform', 'new'])
  logs.remove(WORKSPACE_ID)
  await waitUntil(() => listener.messages.some(({ type, workspace }) => type === 'ended' && workspace === WORKSPACE_ID))
})

test("PL-7 PL-12 the roles are those of a workspace's events, and a workspace receives only its own", async (t) => {
  const { logs, listen } = await openSockets(t)
  logs.add(WORKSPACE_ID)
  logs.add(OTHER_ID)
  for (const role of ['viewer', 'member', 'admin'] as const) {
    const listener = await listen(bearerOptions(secretOf(role)))
    listener.send({ subscribe: { [WORKSPACE_ID]: 0, [OTHER_ID]: 0 } })
    await waitUntil(() => listener.seqs(OTHER_ID).length === 1 && listener.seqs(WORKSPACE_ID).length === 1)
  }
  for (const role of ['caller', 'conversation'] as const) {
    assert.equal(await refusedWith(listen(bearerOptions(secretOf(role)))), 403, role)
  }
  assert.equal(await refusedWith(listen({})), 401)
  assert.equal(await refusedWith(listen(bearerOptions('wrong'))), 401)
  const own = await listen(bearerOptions(secretOf('workspace')))
  own.send({ subscribe: { [OTHER_ID]: 0 }, others: 'beginning' })
  await waitUntil(() => own.seqs(WORKSPACE_ID).length === 1)
  const refusal = own.messages.find(({ type }) => type === 'error')
  assert.deepEqual([refusal.workspace, refusal.status], [OTHER_ID, 403])
  assert.deepEqual(own.seqs(OTHER_ID), [])
})

test("PL-7 a browser is accepted by its cookie from the platform's page, or by a token among its protocols", async (t) => {
  const { fakePlatform, sendRequest, url, listen } = await openSockets(t)
  const body = JSON.stringify({ code: fakePlatform.tokens.issueLoginCode() })
  const { headers } = await sendRequest('/login', { method: 'POST', body })
  const cookie = String(headers['set-cookie']).split(';')[0] ?? ''
  await listen({ headers: { cookie, origin: url } })
  for (const origin of ['https://evil.test', 'null', undefined]) {
    const given: Record<string, string> = origin === undefined ? {} : { origin }
    assert.equal(await refusedWith(listen({ headers: { cookie, ...given } })), 403, origin)
  }
  const protocols = ['molecule', `molecule.bearer.${secretOf('viewer')}`]
  const byProtocol = await listen({ protocols } as object)
  assert.equal(byProtocol.socket.protocol, 'molecule')
  await listen({ protocols, origin: url } as object)
  assert.equal(await refusedWith(listen({ protocols, origin: 'https://evil.test' } as object)), 403)
  const wrong = { protocols: ['molecule', 'molecule.bearer.wrong'] } as object
  assert.equal(await refusedWith(listen(wrong)), 401)
  const admin = secretOf('admin')
  const rebound = { headers: { authorization: `Bearer ${admin}`, host: 'evil.test' } }
  assert.equal(await refusedWith(listen(rebound)), 403)
  // A secret in a URL would end up in logs, so it is not accepted there.
  assert.equal((await sendRequest(`/ws?token=${admin}`)).status, 401)
  const { status, headers: upgrade } = await sendRequest('/ws', { token: admin })
  assert.deepEqual([status, upgrade['upgrade']], [426, 'websocket'])
})

test('PL-12 revoking a token closes its sockets, and no others', async (t) => {
  const { fakePlatform, logs, listen } = await openSockets(t)
  const { id, secret } = await fakePlatform.tokens.create({ name: 'short', role: 'viewer' })
  const [revoked, other] = [await listen(bearerOptions(secret)), await listen()]
  for (const listener of [revoked, other]) listener.send({ subscribe: { [WORKSPACE_ID]: null } })
  await waitUntil(() => revoked.messages.length === 1 && other.messages.length === 1)
  await fakePlatform.tokens.revoke(id)
  assert.equal(await revoked.closed, 4401)
  logs.add(WORKSPACE_ID)
  await waitUntil(() => other.seqs(WORKSPACE_ID).length === 1)
  assert.deepEqual(revoked.seqs(WORKSPACE_ID), [])
})

test('PL-7 an invalid message is answered with the reason, and a message over the limit closes the socket', async (t) => {
  const { listen } = await openSockets(t)
  const listener = await listen()
  const wrong = ['{', '7', '{}', '{"subscribe":{"ws_1":-1}}', '{"subscribe":{"ws_1":"1"}}', '{"subscribe":{},"x":1}']
  for (const message of wrong) listener.send(message)
  await waitUntil(() => listener.messages.length === wrong.length)
  assert.ok(listener.messages.every(({ type, status }) => type === 'error' && status === 400))
  assert.match(listener.messages.at(-1).error.message, /"x" is not a field of a subscription/)
  listener.send('x'.repeat(200_000))
  assert.equal(await listener.closed, 1009)
})

test('RE-4 any text of a client is answered, and the next subscription works', async (t) => {
  const { logs, listen } = await openSockets(t)
  logs.add(WORKSPACE_ID)
  const listener = await listen()
  const subscription = fc.record(
    { subscribe: fc.dictionary(fc.string(), fc.jsonValue()), others: fc.jsonValue() },
    { requiredKeys: [] },
  )
  const texts = fc.sample(
    fc.oneof(
      fc.string(),
      fc.json(),
      subscription.map((value) => JSON.stringify(value)),
    ),
    300,
  )
  while (texts.length > 0) {
    const before = listener.messages.length
    // As many as may be unread at once. The last one always causes an answer.
    for (const message of texts.splice(0, 15)) listener.send(message)
    listener.send({ subscribe: { ws_nowhere: null } })
    await waitUntil(() => listener.messages.slice(before).some(({ workspace }) => workspace === 'ws_nowhere'))
  }
  listener.send({ subscribe: { [WORKSPACE_ID]: 0 } })
  await waitUntil(() => listener.seqs(WORKSPACE_ID).length === 1)
})

test('a client that also offers HTTP/2 is answered as usual, and an upgrade on another path is 404', async (t) => {
  const { sendRequest, url } = await openSockets(t)
  const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAAQAAP__' }
  assert.equal((await sendRequest('/workspaces', { token: secretOf('admin'), headers })).status, 200)
  assert.equal(await refusedWith(connectSocket(`${url}/elsewhere`, bearerOptions(secretOf('admin')))), 404)
})

test('RE-3 a client that does not read costs one page, is disconnected, and misses nothing after it reconnects', async (t) => {
  const { logs, listen } = await openSockets(t, { unsentMs: 300 })
  const rows = 400
  for (let row = 0; row < rows; row++) logs.add(WORKSPACE_ID, 64 * 1024)
  const slow = await listen()
  slow.send({ subscribe: { [WORKSPACE_ID]: 0 } })
  await waitUntil(() => slow.seqs(WORKSPACE_ID).length > 0)
  slow.socket.pause()
  await waitUntil(() => logs.pages() > 1)
  // The buffers of the socket fill, then no more pages are read for it, then it is disconnected.
  setTimeout(() => slow.socket.resume(), 2000).unref()
  await slow.closed
  assert.ok(logs.pages() < rows / 16, `${logs.pages()} pages were read for a client that reads nothing`)
  const again = await listen()
  again.send({ subscribe: { [WORKSPACE_ID]: slow.seqs(WORKSPACE_ID).at(-1) } })
  await waitUntil(() => again.seqs(WORKSPACE_ID).at(-1) === rows)
  const all = [...slow.seqs(WORKSPACE_ID), ...again.seqs(WORKSPACE_ID)]
  assert.deepEqual(
    all,
    Array.from({ length: rows }, (_, index) => index + 1),
  )
})
