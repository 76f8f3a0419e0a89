import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFakePushContext, secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openA2a } from '../../../../test/harness/clients/a2a-in-memory.ts'
import {
  type DoorRequest,
  type OpenDoor,
  openDoor,
  openStream,
  sendParams,
} from '../../../../test/harness/open-door.ts'
import { present } from '../../../../test/harness/present.ts'
import type { TaskQuery } from '../../../inbox/reception.ts'
import { WIRE_ERRORS } from '../../../protocol/wire-errors.ts'
import { grpcStatusName } from './bindings.ts'

const A2A = `/workspaces/${WORKSPACE_ID}/a2a`
const admin = secretOf('admin')

const get = ({ sendRequest }: OpenDoor, path: string, more: DoorRequest = {}) =>
  sendRequest(A2A + path, { token: admin, ...more })
const post = ({ sendRequest }: OpenDoor, path: string, more: DoorRequest = {}) =>
  sendRequest(A2A + path, { method: 'POST', token: admin, ...more })
const json = (body: unknown, more: DoorRequest = {}): DoorRequest => ({ body: JSON.stringify(body), ...more })

test('PL-5 every REST route answers, also under a tenant', async (t) => {
  const door = await openDoor(t)
  for (const tenant of ['', '/acme', '/message']) {
    const sent = await post(door, `${tenant}/message:send`, json(sendParams(`hello${tenant}`)))
    assert.equal(sent.status, 200, sent.text)
    assert.match(String(sent.headers['content-type']), /^application\/a2a\+json/)
    const { id } = sent.json.task
    assert.equal(sent.json.task.status.state, 'TASK_STATE_COMPLETED')
    assert.equal((await get(door, `${tenant}/tasks/${id}?historyLength=1`)).json.history.length, 1)
    assert.ok((await get(door, `${tenant}/tasks?pageSize=1`)).json.tasks.length === 1)
    assert.equal((await get(door, `${tenant}/extendedAgentCard`)).json.name, 'echo')
    const running = await post(
      door,
      `${tenant}/message:send`,
      json(sendParams('slow', { message: { messageId: `slow${tenant}` }, configuration: { returnImmediately: true } })),
    )
    const canceled = await post(door, `${tenant}/tasks/${running.json.task.id}:cancel`)
    assert.equal(canceled.json.status.state, 'TASK_STATE_CANCELED')
  }
})

test('PL-5 REST streams are bare events, by send and by subscription with GET and POST', async (t) => {
  const door = await openDoor(t)
  const body = JSON.stringify(sendParams('slow'))
  const sent = await openStream(`${door.url}${A2A}/message:stream`, { token: admin, body })
  const others = await Promise.all(
    ['GET', 'POST'].map((method) =>
      openStream(`${door.url}${A2A}/tasks/task-1:subscribe`, { method, token: admin, body: undefined }),
    ),
  )
  door.fakePlatform.finish('task-1')
  await sent.ended
  assert.deepEqual(
    sent.events.map(({ data }) => Object.keys(data)[0]),
    ['task', 'artifactUpdate', 'statusUpdate'],
  )
  for (const other of others) {
    await other.ended
    assert.deepEqual(other.events, sent.events)
  }
})

test('PL-5 an answer over REST has the media type of A2A, and plain JSON for a caller that accepts nothing else', async (t) => {
  const door = await openDoor(t)
  const typeFor = async (accept?: string) =>
    (await get(door, '/tasks', accept === undefined ? {} : { headers: { accept } })).headers['content-type']
  for (const accept of [undefined, '*/*', 'application/a2a+json', 'application/json, application/a2a+json'])
    assert.match(String(await typeFor(accept)), /^application\/a2a\+json/, accept)
  assert.match(String(await typeFor('application/json')), /^application\/json/)
})

test('PL-5 every error has the gRPC status of its HTTP status', () => {
  const names: Readonly<Record<number, string>> = {
    400: 'INVALID_ARGUMENT',
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    409: 'ABORTED',
    410: 'OUT_OF_RANGE',
    413: 'RESOURCE_EXHAUSTED',
    429: 'RESOURCE_EXHAUSTED',
    507: 'RESOURCE_EXHAUSTED',
    500: 'INTERNAL',
    502: 'INTERNAL',
    503: 'UNAVAILABLE',
    504: 'DEADLINE_EXCEEDED',
  }
  for (const [code, { status }] of Object.entries(WIRE_ERRORS))
    assert.equal(grpcStatusName(status, 0), names[status], `${code} ${status}`)
})

test('PL-5 REST errors are a google.rpc.Status with the reason', async (t) => {
  const door = await openDoor(t)
  await post(door, '/message:send', json(sendParams('hello')))
  const expected: readonly [
    Promise<{ status: number; json: { error: Record<string, unknown> } }>,
    number,
    string,
    string,
  ][] = [
    [get(door, '/tasks/nope'), 404, 'NOT_FOUND', 'TASK_NOT_FOUND'],
    [post(door, '/tasks/task-1:cancel'), 400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE'],
    [post(door, '/tasks/task-1:subscribe'), 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'],
    [get(door, '/tasks?pageSize=101'), 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    [get(door, '/tasks?pageSize=many'), 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    [get(door, '/tasks?pageToken=x'), 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    [get(door, '/tasks/task-1?historyLength=-1'), 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    [get(door, '/tasks/%FF'), 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    [post(door, '/message:send', json([])), 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    [post(door, '/message:send', { body: '{' }), 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    [post(door, '/message:send', json(sendParams('queue_full'))), 429, 'RESOURCE_EXHAUSTED', 'QUEUE_FULL'],
    [post(door, '/message:send', json(sendParams('defect'))), 500, 'INTERNAL', 'INTERNAL'],
    [get(door, '/nothing'), 404, 'NOT_FOUND', 'METHOD_NOT_FOUND'],
    [get(door, '/tasks', { token: 'wrong' }), 401, 'UNAUTHENTICATED', 'UNAUTHENTICATED'],
    [
      post(door, '/message:send', json(sendParams('x'), { token: secretOf('viewer') })),
      403,
      'PERMISSION_DENIED',
      'FORBIDDEN',
    ],
    [get(door, '/tasks', { headers: { 'a2a-version': '0.3' } }), 400, 'FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED'],
    [get(door, '/tasks', { headers: { 'a2a-version': '2.0' } }), 400, 'FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED'],
  ]
  for (const [answer, status, name, reason] of expected) {
    const got = await answer
    const [info] = got.json.error['details'] as { reason: string; domain: string }[]
    assert.deepEqual(
      [got.status, got.json.error['code'], got.json.error['status'], info?.reason],
      [status, status, name, reason],
    )
    assert.equal(info?.domain, 'a2a-protocol.org')
  }
  const nowhere = await door.sendRequest('/workspaces/ws_nobody/a2a/tasks', { token: admin })
  assert.deepEqual([nowhere.status, nowhere.json.error.details[0].reason], [404, 'WORKSPACE_NOT_FOUND'])
})

/** A door with one finished task, that notes the calls of its push configs and the queries of its list. */
async function openNoting() {
  const notes: unknown[] = []
  const queries: TaskQuery[] = []
  const door = openA2a(({ reception }) => {
    const push = createFakePushContext()
    return {
      reception: {
        ...reception,
        list(query) {
          queries.push(query)
          return reception.list(query)
        },
      },
      push: {
        ...push,
        configs: {
          ...push.configs,
          async remove(name) {
            notes.push(name)
            return true
          },
        },
      },
    }
  })
  await door.rpc('SendMessage', sendParams('hello'))
  const call = async (method: string, path: string, body?: unknown) => {
    const answer = await door.send({ method, path, ...(body !== undefined && { body }) })
    return [answer.status, answer.json]
  }
  return { ...door, call, notes, queries }
}

test('PL-5 the REST routes of push configs set, list, show and delete them', async () => {
  const { call, notes } = await openNoting()
  const path = '/tasks/task-1/pushNotificationConfigs'
  const shown = { id: 'hook', taskId: 'task-1', url: 'https://hook.test/' }
  for (const tenant of ['', '/acme']) {
    const [status, set] = await call('POST', tenant + path, { url: 'https://a.test/', id: 'mine' })
    assert.deepEqual([status, set.id, set.taskId, set.url], [200, 'mine', 'task-1', 'https://a.test/'])
    assert.deepEqual(await call('GET', tenant + path), [200, { configs: [shown], nextPageToken: '' }])
    assert.deepEqual(await call('GET', `${tenant + path}/hook`), [200, shown])
    assert.deepEqual(await call('DELETE', `${tenant + path}/my%20hook`), [200, {}])
  }
  assert.deepEqual(notes, [
    { workspaceId: WORKSPACE_ID, taskId: 'task-1', id: 'my hook' },
    { workspaceId: WORKSPACE_ID, taskId: 'task-1', id: 'my hook' },
  ])
})

test('PL-5 a REST route is its method and its whole path; anything else is not found', async () => {
  const { call } = await openNoting()
  const wrong = [
    ...['GET /message:send', 'GET /message:stream', 'POST /tasks', 'DELETE /tasks/task-1', 'GET /tasks/task-1:cancel'],
    ...['PUT /tasks', 'POST /extendedAgentCard', 'GET /a/b/tasks', 'GET /tasks/a/b', 'GET /x', 'GET /xtasks'],
    'DELETE /tasks/task-1/pushNotificationConfigs',
  ]
  for (const route of wrong) {
    const [method = '', path = ''] = route.split(' ')
    const [status, { error }] = await call(method, path)
    assert.deepEqual(
      [status, error.code, error.status, error.message, error.details[0].reason],
      [404, 404, 'NOT_FOUND', `A2A has no ${route}`, 'METHOD_NOT_FOUND'],
    )
  }
})

test('PL-5 the query of a list becomes numbers, flags and texts', async () => {
  const { call, queries } = await openNoting()
  await call('GET', '/tasks?pageSize=7&historyLength=2&includeArtifacts=true&contextId=12')
  await call('GET', '/tasks?page_size=8&includeArtifacts=false&contextId=true')
  assert.deepEqual(present(queries), [
    { workspaceId: WORKSPACE_ID, detail: true, limit: 7, historyLength: 2, artifacts: true, contextId: '12' },
    { workspaceId: WORKSPACE_ID, detail: true, limit: 8, artifacts: false, contextId: 'true' },
  ])
  const refused = ['includeArtifacts=yes', 'pageSize=x', 'pageSize=1e1', 'historyLength=-1', 'pageSize=']
  for (const query of refused) assert.equal((await call('GET', `/tasks?${query}`))[0], 400, query)
})

test('PL-5 a POST over REST reads its params from query and body, and needs no body', async () => {
  const { call, rpc, send } = await openNoting()
  const running = sendParams('slow', { message: { messageId: 's' }, configuration: { returnImmediately: true } })
  await rpc('SendMessage', running)
  const [status, canceled] = await call('POST', '/tasks/task-2:cancel')
  assert.deepEqual([status, canceled.status.state], [200, 'TASK_STATE_CANCELED'])
  assert.equal((await call('POST', '/tasks/task-2:cancel', '{}'))[0], 200)
  const one = await send({ path: '/message:send', body: '7' })
  assert.deepEqual([one.status, one.json.error.message], [400, 'the body must be a JSON object'])
  assert.equal(one.headers['Content-Type'], 'application/a2a+json')
  const snake = { message: { message_id: 'snake', role: 'ROLE_USER', parts: [{ text: 'hello' }] } }
  const [, sent] = await call('POST', '/message:send', snake)
  assert.equal(sent.task.status.state, 'TASK_STATE_COMPLETED')
})

test('PL-5 a version that REST does not serve is refused, and a failure has its headers and its log line', async () => {
  const { send, fakePlatform, countedBytes } = await openNoting()
  const old = await send({ method: 'GET', path: '/tasks', headers: { 'a2a-version': '0.3' } })
  assert.deepEqual([old.status, old.json.error.code], [400, 400])
  assert.equal((await send({ method: 'GET', path: '/tasks', headers: { 'a2a-version': '1.0' } })).status, 200)
  const full = await send({ path: '/message:send', body: sendParams('queue_full') })
  assert.deepEqual([full.status, full.headers['Retry-After']], [429, '2'])
  const line = fakePlatform.logged.at(-1)
  assert.deepEqual([line?.['msg'], line?.['code'], line?.['requestId']], ['request refused', 'queue_full', 'req_01'])
  assert.equal(countedBytes.length, 0, 'an admin is exempt')
  const body = JSON.stringify(sendParams('counted'))
  await send({ path: '/message:send', token: 'member-secret', body })
  assert.deepEqual(countedBytes, [['member', body.length]])
  assert.equal(fakePlatform.letters.at(-1)?.bytes, body.length)
})

test('PL-5 a client of 0.3 finds the extended card at v1/card, in its format and with a token', async () => {
  const { send } = await openNoting()
  for (const version of [undefined, '0.3', '1.0']) {
    const headers = version === undefined ? {} : { 'a2a-version': version }
    const { status, json: found, headers: answered } = await send({ method: 'GET', path: '/v1/card', headers })
    assert.deepEqual([status, answered['Content-Type']], [200, 'application/json'])
    assert.deepEqual([found.name, found.protocolVersion, found.preferredTransport], ['echo', '0.3.0', 'JSONRPC'])
    assert.ok(found.capabilities.extensions.length > 0, 'the extended one')
  }
  assert.equal((await send({ method: 'GET', path: '/v1/card', token: 'wrong' })).status, 401)
  assert.equal((await send({ method: 'GET', path: '/v1/card', headers: { 'a2a-version': '2.0' } })).status, 400)
  assert.equal((await send({ method: 'POST', path: '/v1/card' })).status, 404)
})

test('PL-5 Last-Event-ID resumes a stream after that event, over JSON-RPC and over REST', async () => {
  const { send } = openA2a()
  await send({ body: { jsonrpc: '2.0', id: 7, method: 'SendMessage', params: sendParams('hello') } })
  const headers = { 'last-event-id': '2.1' }
  const fromRpc = await send({
    headers,
    body: { jsonrpc: '2.0', id: 7, method: 'SubscribeToTask', params: { id: 'task-1' } },
  })
  const fromRest = await send({ headers, method: 'GET', path: '/tasks/task-1:subscribe' })
  for (const { text } of [fromRpc, fromRest]) assert.match(text, /^id: 2\.2\n[^\n]*statusUpdate[^\n]*\n\n$/)
})
