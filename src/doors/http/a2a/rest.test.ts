import assert from 'node:assert/strict'
import test from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import {
  type DoorRequest,
  type OpenDoor,
  openDoor,
  openStream,
  sendParams,
} from '../../../../test/harness/open-door.ts'
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

test('PL-5 a caller that accepts plain JSON gets its content type', async (t) => {
  const door = await openDoor(t)
  const plain = await get(door, '/tasks', { headers: { accept: 'application/json' } })
  assert.match(String(plain.headers['content-type']), /^application\/json/)
})

test('PL-5 ListTasks has 50 tasks on a page, page tokens lead through all, and nextPageToken is always present', async (t) => {
  const { rpc } = await openDoor(t)
  const empty = await rpc('ListTasks', {})
  assert.deepEqual(empty.json.result, { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 })
  for (let count = 0; count < 5; count++) await rpc('SendMessage', sendParams(`hello ${count}`))
  const seen: string[] = []
  for (let pageToken = '', pages = 0; pages === 0 || pageToken !== ''; pages++) {
    const { result } = (await rpc('ListTasks', { pageSize: 2, pageToken })).json
    assert.equal(result.totalSize, 5)
    for (const task of result.tasks) {
      assert.equal(task.artifacts, undefined)
      seen.push(task.id)
    }
    pageToken = result.nextPageToken
  }
  assert.deepEqual(seen, ['task-5', 'task-4', 'task-3', 'task-2', 'task-1'])
  const whole = await rpc('ListTasks', { includeArtifacts: true })
  assert.equal(whole.json.result.tasks[0].artifacts.length, 1)
  for (const params of [{ pageSize: 0 }, { pageSize: 101 }, { status: 'DONE' }, { statusTimestampAfter: 'soon' }]) {
    assert.equal((await rpc('ListTasks', params)).json.error.code, -32602, JSON.stringify(params))
  }
})
