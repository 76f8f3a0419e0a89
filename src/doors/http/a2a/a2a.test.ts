import assert from 'node:assert/strict'
import { request } from 'node:http'
import test from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams, sendParamsV03 } from '../../../../test/harness/open-door.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'

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

test('the same message again attaches to its task', async (t) => {
  const { rpc } = await openDoor(t)
  const first = await rpc('SendMessage', sendParams('hello'))
  const second = await rpc('SendMessage', sendParams('hello'))
  assert.equal(second.json.result.task.id, first.json.result.task.id)
})

test('historyLength limits the history: all, none, the last', async (t) => {
  const { rpc } = await openDoor(t)
  const all = await rpc('SendMessage', sendParams('hello'))
  assert.equal(all.json.result.task.history.length, 2)
  const none = await rpc('SendMessage', sendParams('hello', { configuration: { historyLength: 0 } }))
  assert.equal(none.json.result.task.history, undefined)
  const last = await rpc('message/send', sendParamsV03('hello', { historyLength: 1 }))
  assert.deepEqual(
    last.json.result.history.map((message: { messageId: string }) => message.messageId),
    ['m-hello-later'],
  )
  const got = await rpc('GetTask', { id: 'task-1', historyLength: 1 })
  assert.equal(got.json.result.history.length, 1)
  const negative = await rpc('SendMessage', sendParams('other', { configuration: { historyLength: -1 } }))
  assert.equal(negative.json.error.code, -32602)
})

test('GetTask and tasks/get answer in the format of their version', async (t) => {
  const { rpc } = await openDoor(t)
  await rpc('SendMessage', sendParams('hello'))
  assert.equal((await rpc('GetTask', { id: 'task-1' })).json.result.status.state, 'TASK_STATE_COMPLETED')
  assert.equal((await rpc('tasks/get', { id: 'task-1' })).json.result.status.state, 'completed')
})

test('CancelTask and tasks/cancel are idempotent, and an ended task refuses them', async (t) => {
  const { rpc } = await openDoor(t)
  await rpc('SendMessage', sendParams('slow', { configuration: { returnImmediately: true } }))
  assert.equal((await rpc('CancelTask', { id: 'task-1' })).json.result.status.state, 'TASK_STATE_CANCELED')
  assert.equal((await rpc('tasks/cancel', { id: 'task-1' })).json.result.status.state, 'canceled')
  await rpc('SendMessage', sendParams('hello'))
  assert.equal((await rpc('CancelTask', { id: 'task-2' })).json.error.code, -32002)
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

test('an unknown method is -32601', async (t) => {
  const { rpc } = await openDoor(t)
  assert.equal((await rpc('tasks/dance', {})).json.error.code, -32601)
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
