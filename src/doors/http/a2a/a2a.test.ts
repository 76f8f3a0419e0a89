import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openA2a } from '../../../../test/harness/clients/a2a-in-memory.ts'
import { openDoor, sendParams, sendParamsV03 } from '../../../../test/harness/open-door.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import { MoleculeError } from '../../../errors.ts'
import { a2aAddress } from './a2a.ts'

test('BK-2 SendMessage of 1.0 answers with the finished task in the 1.0 format', async (t) => {
  const { rpc } = await openDoor(t)
  const { status, json, headers } = await rpc('SendMessage', sendParams('hello'))
  assert.equal(status, 200)
  assert.match(String(headers['x-request-id']), /^req_/)
  assert.equal(json.id, 7)
  assert.equal(json.result.task.status.state, 'TASK_STATE_COMPLETED')
  assert.deepEqual(json.result.task.artifacts[0].parts, [{ text: 'hello' }])
})

test('BK-2 message/send of 0.3 answers with the finished task in the 0.3 format', async (t) => {
  const { rpc } = await openDoor(t)
  const { json } = await rpc('message/send', sendParamsV03('hello'))
  assert.equal(json.result.kind, 'task')
  assert.equal(json.result.status.state, 'completed')
  assert.deepEqual(json.result.artifacts[0].parts, [{ kind: 'text', text: 'hello' }])
  assert.equal(json.result.history[0].role, 'user')
})

test('a blocking send waits for the end of its task', async (t) => {
  const { rpc, fakePlatform } = await openDoor(t)
  const answer = rpc('SendMessage', sendParams('slow'))
  await waitUntil(() => fakePlatform.waiting() === 1, 'the call waits')
  fakePlatform.finish('task-1')
  assert.equal((await answer).json.result.task.status.state, 'TASK_STATE_COMPLETED')
})

test('a blocking send answers with the unfinished task after its timeout', async (t) => {
  const { rpc, fakePlatform } = await openDoor(t, { maxBlockMs: 30 })
  const { json } = await rpc('message/send', sendParamsV03('slow'))
  assert.equal(json.result.status.state, 'working')
  assert.equal(fakePlatform.waiting(), 0)
})

test('a blocking send ends when the task asks for input', async (t) => {
  const { rpc } = await openDoor(t)
  assert.equal((await rpc('SendMessage', sendParams('ask'))).json.result.task.status.state, 'TASK_STATE_INPUT_REQUIRED')
})

test('a send that does not block answers at once, in both versions', async (t) => {
  const { rpc } = await openDoor(t)
  const fresh = await rpc('SendMessage', sendParams('slow', { configuration: { returnImmediately: true } }))
  assert.equal(fresh.json.result.task.status.state, 'TASK_STATE_WORKING')
  const older = await rpc('message/send', sendParamsV03('slow', { blocking: false }))
  assert.equal(older.json.result.status.state, 'working')
})

test('a client that disconnects stops waiting and cancels nothing', async (t) => {
  const { rpc, fakePlatform, url } = await openDoor(t)
  const leaving = request(`${url}/workspaces/${WORKSPACE_ID}/a2a`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secretOf('admin')}` },
    agent: false,
  })
  leaving.on('error', () => undefined)
  leaving.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: sendParams('slow') }))
  await waitUntil(() => fakePlatform.waiting() === 1, 'the call waits')
  leaving.destroy()
  await waitUntil(() => fakePlatform.waiting() === 0, 'the wait is over')
  const { json } = await rpc('GetTask', { id: 'task-1' })
  assert.equal(json.result.status.state, 'TASK_STATE_WORKING')
})

test('BK-10 sender and principal come from the token, whatever the message claims', async (t) => {
  const { rpc, fakePlatform } = await openDoor(t)
  const claims = { metadata: { sender: { kind: 'agent', id: 'ws_other' }, caller_id: 'ws_other' } }
  await rpc('SendMessage', sendParams('hello', { message: claims }), { token: secretOf('member') })
  assert.deepEqual(fakePlatform.letters[0]?.sender, { kind: 'person', id: 'member', name: 'member', door: 'http' })
  assert.equal(fakePlatform.letters[0]?.principal, 'people')
})

test('BK-1 the letter carries the raw envelope, the method and the workspace', async (t) => {
  const { rpc, fakePlatform } = await openDoor(t)
  await rpc('message/send', sendParamsV03('hello'))
  const letter = fakePlatform.letters[0]
  assert.equal(letter?.workspaceId, WORKSPACE_ID)
  assert.equal(letter?.envelope.method, 'message/send')
  assert.deepEqual(letter?.envelope.raw, {
    jsonrpc: '2.0',
    id: 7,
    method: 'message/send',
    params: sendParamsV03('hello'),
  })
})

test('the idempotency key is the header, else the metadata, else none', async (t) => {
  const { rpc, fakePlatform } = await openDoor(t)
  const params = sendParams('hello', { metadata: { idempotency_key: 'from-metadata' } })
  await rpc('SendMessage', params, { headers: { 'idempotency-key': 'from-header' } })
  await rpc('SendMessage', params)
  await rpc('SendMessage', sendParams('hello'))
  assert.deepEqual(
    fakePlatform.letters.map(({ idempotencyKey }) => idempotencyKey),
    ['from-header', 'from-metadata', undefined],
  )
  const tooLong = await rpc('SendMessage', params, { headers: { 'idempotency-key': 'k'.repeat(257) } })
  assert.equal(tooLong.json.error.code, -32602)
})

test('PL-5 an unknown workspace is a JSON-RPC error that names it, for every method', async (t) => {
  const { sendRequest } = await openDoor(t)
  const calls = [
    { method: 'SendMessage', params: sendParams('hello') },
    { method: 'message/send', params: sendParamsV03('hello') },
    { method: 'GetTask', params: { id: 'task-1' } },
    { method: 'tasks/cancel', params: { id: 'task-1' } },
  ]
  for (const call of calls) {
    const { status, json } = await sendRequest('/workspaces/ws_nobody/a2a', {
      method: 'POST',
      token: secretOf('admin'),
      body: JSON.stringify({ jsonrpc: '2.0', id: 'x', ...call }),
    })
    assert.equal(status, 200, call.method)
    assert.equal(json.id, 'x')
    assert.match(json.error.message, /ws_nobody/)
    assert.equal(json.error.data[0].reason, 'WORKSPACE_NOT_FOUND')
  }
})

test('an unknown task of a known workspace is TaskNotFound', async (t) => {
  const { rpc } = await openDoor(t)
  for (const [method, params] of [
    ['GetTask', { id: 'nope' }],
    ['tasks/cancel', { id: 'nope' }],
    ['SendMessage', sendParams('hello', { message: { taskId: 'unknown' } })],
  ] as const) {
    const { status, json } = await rpc(method, params)
    assert.equal(status, 200)
    assert.equal(json.error.code, -32001, method)
  }
})

test('PL-9 a refusal by the reception has its code, status and headers', async (t) => {
  const { rpc } = await openDoor(t)
  const full = await rpc('SendMessage', sendParams('queue_full'))
  assert.equal(full.status, 429)
  assert.equal(full.headers['retry-after'], '2')
  assert.equal(full.json.error.data[0].reason, 'QUEUE_FULL')
  const conflict = await rpc('SendMessage', sendParams('idempotency_conflict'))
  assert.equal(conflict.status, 200)
  assert.equal(conflict.json.error.code, -32602)
  assert.equal(conflict.json.error.data[0].reason, 'IDEMPOTENCY_CONFLICT')
  const ended = await rpc('SendMessage', sendParams('unsupported_operation'))
  assert.equal(ended.status, 200)
  assert.equal(ended.json.error.code, -32004)
})

test('an A2A-Version other than 0.3 and 1.0 is -32009; patch versions and no version are accepted', async (t) => {
  const { rpc } = await openDoor(t)
  for (const version of ['2.0', '1.1', '0.2', 'latest', '10.0']) {
    const { json } = await rpc('SendMessage', sendParams('hello'), { headers: { 'a2a-version': version } })
    assert.equal(json.error.code, -32009, version)
  }
  for (const version of ['1.0', '1.0.1', '0.3', '0.3.0', '']) {
    const { json } = await rpc('SendMessage', sendParams('hello'), { headers: { 'a2a-version': version } })
    assert.ok(json.result, version)
  }
})

test('PL-5 a body that is not a JSON-RPC request gets the error with the reason', async (t) => {
  const { rpc } = await openDoor(t)
  const expected: readonly [string | Buffer, number][] = [
    ['{"jsonrpc":', -32700],
    ['', -32700],
    [Buffer.from([0x22, 0xff, 0xfe, 0x22]), -32700],
    ['[]', -32600],
    ['"text"', -32600],
    ['null', -32600],
    ['{"method":"SendMessage"}', -32600],
    ['{"jsonrpc":"2.0","id":{},"method":"SendMessage"}', -32600],
    [`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":${'['.repeat(500)}${']'.repeat(500)}}`, -32602],
    ['{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":7}}', -32602],
  ]
  for (const [body, code] of expected) {
    const { status, json } = await rpc('', {}, { body })
    assert.equal(status, 200, String(body).slice(0, 60))
    assert.equal(json.error.code, code, String(body).slice(0, 60))
    assert.notEqual(json.error.message, '')
  }
})

test('a defect shows its id and nothing internal; the log has the whole error under that id', async (t) => {
  const { rpc, fakePlatform } = await openDoor(t)
  for (const [text, status] of [
    ['defect', 200],
    ['store_unavailable', 503],
  ] as const) {
    const answer = await rpc('SendMessage', sendParams(text))
    const requestId = String(answer.headers['x-request-id'])
    assert.equal(answer.status, status)
    assert.doesNotMatch(answer.text, /inside/)
    assert.ok(answer.json.error.message.includes(requestId))
    const line = fakePlatform.logged.find((entry) => entry['requestId'] === requestId)
    assert.match(JSON.stringify(line), /inside/)
  }
})

test('1 MiB of text arrives complete', async (t) => {
  const { rpc } = await openDoor(t)
  const text = 'ä"\\'.repeat(262_144)
  const { json } = await rpc('SendMessage', sendParams(text, { message: { messageId: 'big' } }))
  assert.equal(json.result.task.artifacts[0].parts[0].text, text)
})

const STREAM = 'text/event-stream'

test('PL-5 an A2A address has the workspace, the path below it and the query', () => {
  const post = (url: string | undefined) => a2aAddress('POST', url)
  assert.deepEqual(post('/workspaces/ws_1/a2a'), { workspaceId: 'ws_1', path: '', query: '' })
  assert.deepEqual(post('/workspaces/ws_1/a2a/'), { workspaceId: 'ws_1', path: '', query: '' })
  assert.deepEqual(post('/workspaces/my%20bot/a2a?x=1'), { workspaceId: 'my bot', path: '', query: 'x=1' })
  assert.deepEqual(post('/workspaces/100%/a2a'), { workspaceId: '100%', path: '', query: '' })
  assert.deepEqual(a2aAddress('GET', '/workspaces/a/a2a/tasks/?pageSize=1?2'), {
    workspaceId: 'a',
    path: '/tasks',
    query: 'pageSize=1?2',
  })
  const longest = 'x'.repeat(1000)
  assert.equal(post(`/workspaces/${longest}/a2a`)?.workspaceId, longest)
  const others = [`/workspaces/${longest}x/a2a`, '/workspaces//a2a', '/workspaces/a/a2ax', '/x/workspaces/a/a2a', '/']
  for (const url of [...others, undefined, '']) assert.equal(post(url), undefined, url)
  for (const method of ['GET', 'PUT', undefined])
    assert.equal(a2aAddress(method, '/workspaces/a/a2a'), undefined, 'only POST is JSON-RPC')
})

test('PL-5 the card has two paths for GET and HEAD, and a failed card is logged', async () => {
  const { send, fakePlatform } = openA2a()
  for (const path of ['/.well-known/agent-card.json', '/.well-known/agent.json'])
    for (const method of ['GET', 'HEAD']) assert.equal((await send({ method, path, token: '' })).status, 200)
  const none = await send({
    method: 'GET',
    path: '/.well-known/agent.json',
    workspace: 'ws_00000000000000000000000000',
  })
  assert.deepEqual([none.status, none.json.error.code, none.json.error.id], [404, 'not_found', 'req_01'])
  assert.equal(fakePlatform.logged.at(-1)?.['code'], 'not_found')
})

test('PL-9 the bytes of a call count against its token, and go with its letter', async () => {
  const { rpc, countedBytes, fakePlatform } = openA2a()
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: sendParams('hello') })
  await rpc('', {}, { token: 'member-secret', body })
  assert.deepEqual(countedBytes, [['member', body.length]])
  assert.equal(fakePlatform.letters[0]?.bytes, body.length)
  const many = await rpc('SendMessage', { list: Array.from({ length: 10_000 }, () => 0) })
  assert.match(many.json.error.message, /has more than 10000 values/)
})

test('PL-5 a caller of 0.3 that asked for a stream gets its error as the only event of one; of 1.0, plain JSON', async () => {
  const { rpc } = openA2a()
  const codeOf = (text: string) => JSON.parse(text.replace(/^data: /, '')).error.code
  const cases = [
    await rpc('tasks/resubscribe', { id: 'nope' }),
    await rpc('message/stream', { message: 7 }),
    await rpc('message/stream', sendParamsV03('unsupported_operation')),
    await rpc('tasks/resubscribe', { id: 'nope' }, { headers: { 'a2a-version': '9.0' } }),
    await rpc('tasks/dance', {}, { headers: { accept: `${STREAM}, */*` } }),
    await rpc('', {}, { body: '{', headers: { accept: STREAM } }),
  ]
  assert.deepEqual(
    cases.map(({ status, headers, text }) => [status, headers['Content-Type'], codeOf(text)]),
    [-32001, -32602, -32004, -32009, -32601, -32700].map((code) => [200, STREAM, code]),
  )
  const plain = [
    await rpc('SubscribeToTask', { id: 'nope' }),
    await rpc('SendStreamingMessage', { message: 7 }),
    await rpc('tasks/dance', {}, { headers: { accept: STREAM, 'a2a-version': '1.0' } }),
    await rpc('GetTask', { id: 'nope' }, { headers: { accept: STREAM } }),
    await rpc('tasks/dance', {}),
    await rpc('tasks/dance', {}, { headers: { accept: `application/json, ${STREAM}` } }),
    await rpc('GetTask', { id: 'nope' }, { headers: { 'a2a-version': '9.0' } }),
  ]
  assert.deepEqual(
    plain.map(({ status, headers, json }) => [status, headers['Content-Type'], json.id, json.error.code]),
    [-32001, -32602, -32601, -32001, -32601, -32601, -32009].map((code) => [200, 'application/json', 7, code]),
  )
})

test('PL-5 a denial has status 403; a method that refuses for another reason is a JSON-RPC error with 200', async () => {
  const { rpc } = openA2a(({ reception }) => ({
    reception: {
      ...reception,
      cancel: async () => {
        throw new MoleculeError('forbidden', 'not this task')
      },
    },
  }))
  const denied = await rpc('SendMessage', sendParams('hello'), { token: 'viewer-secret' })
  assert.deepEqual([denied.status, denied.json.id, denied.json.error.data[0].reason], [403, 7, 'FORBIDDEN'])
  const refused = await rpc('CancelTask', { id: 'task-1' })
  assert.deepEqual([refused.status, refused.json.error.data[0].reason], [200, 'FORBIDDEN'])
  const unknown = await rpc('SendMessage', sendParams('hello'), { token: 'wrong' })
  assert.deepEqual(
    [unknown.status, unknown.json.id, unknown.headers['WWW-Authenticate']],
    [401, null, 'Bearer realm="molecule"'],
  )
})

test('PL-5 params under the names of the protobuf form are read, and a name leads to its workspace', async () => {
  const { rpc, fakePlatform } = openA2a()
  const params = { message: { message_id: 'm-1', role: 'ROLE_USER', parts: [{ text: 'hello' }], context_id: 'c-1' } }
  const { json } = await rpc('SendMessage', params, { workspace: 'echo' })
  assert.deepEqual([json.result.task.contextId, fakePlatform.letters[0]?.workspaceId], ['c-1', WORKSPACE_ID])
  const none = await rpc('SendMessage', sendParams('x'), { workspace: 'nobody' })
  assert.deepEqual([none.status, none.json.error.message], [200, 'there is no workspace nobody'])
})

test('PL-5 a stream that failed after its head is only logged', async () => {
  const { begin, fakePlatform } = openA2a(({ reception }) => ({
    reception: {
      ...reception,
      // biome-ignore lint/correctness/useYield: the log fails before its first row
      async *follow() {
        throw new Error('the log is gone')
      },
    },
  }))
  const { request: outgoing, client, answered } = begin()
  outgoing.end(JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SendStreamingMessage', params: sendParams('hello') }))
  await answered
  assert.deepEqual([client.status, client.destroyed], [200, true])
  assert.doesNotMatch(client.text, /error/)
  assert.match(JSON.stringify(fakePlatform.logged.at(-1)), /the log is gone/)
})

const rpcBody = (method: string, params: object) => ({ jsonrpc: '2.0', id: 7, method, params })

test('PL-12 a caller reaches only the workspaces on its list, over JSON-RPC and over REST', async () => {
  const { send, fakePlatform } = openA2a()
  const other = await fakePlatform.workspaces.create({ name: 'other' })
  const to = (workspace: string) => ({ token: 'caller-secret', workspace })
  for (const [workspace, status] of [
    [WORKSPACE_ID, 200],
    ['echo', 200],
    [other.id, 403],
  ] as const) {
    const body = sendParams(`hello ${workspace}`)
    assert.equal((await send({ ...to(workspace), body: rpcBody('SendMessage', body) })).status, status, workspace)
    assert.equal((await send({ ...to(workspace), path: '/message:send', body })).status, status, workspace)
  }
  const hidden = await send({ ...to('other'), path: '/message:send', body: sendParams('x') })
  assert.deepEqual([hidden.status, hidden.json.error.message], [404, 'there is no workspace other'])
  assert.ok(fakePlatform.letters.every(({ workspaceId }) => workspaceId === WORKSPACE_ID))
})
