import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openA2a, soon } from '../../../../test/harness/clients/a2a-in-memory.ts'
import { sendParams, sendParamsV03 } from '../../../../test/harness/open-door.ts'
import { MoleculeError } from '../../../errors.ts'
import { a2aAddress } from './a2a.ts'

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

test('PL-23 other callers run between the steps of a large message: before and after parsing, and before the answer', async () => {
  for (const [bytes, expected] of [
    [256 * 1024, [0, 0]],
    [256 * 1024 + 1, [2, 3]],
  ] as const) {
    let turns = 0
    let atAdmission = -1
    const { begin } = openA2a(({ reception }) => ({
      reception: {
        ...reception,
        send(...given) {
          atAdmission = turns
          return reception.send(...given)
        },
      },
    }))
    const params = (pad: string) => sendParams('hello', { message: { metadata: { pad } } })
    const bodyOf = (pad: string) =>
      JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SendMessage', params: params(pad) })
    const body = bodyOf('x'.repeat(bytes - bodyOf('').length))
    const { request, answered, client } = begin()
    const count = () => {
      turns++
      timer = setImmediate(count)
    }
    let timer = setImmediate(count)
    request.end(body)
    await answered
    clearImmediate(timer)
    assert.deepEqual([body.length, client.status, [atAdmission, turns]], [bytes, 200, expected])
  }
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
  const { request, client, answered } = begin()
  request.end(JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SendStreamingMessage', params: sendParams('hello') }))
  await answered
  assert.deepEqual([client.status, client.destroyed], [200, true])
  assert.doesNotMatch(client.text, /error/)
  assert.match(JSON.stringify(fakePlatform.logged.at(-1)), /the log is gone/)
})

test('PL-5 each event of a stream is a response to its call, in the format of its version', async () => {
  const { rpc } = openA2a()
  const first = (text: string) => JSON.parse(/data: (.*)\n/.exec(text)?.[1] ?? '')
  const fresh = first((await rpc('SendStreamingMessage', sendParams('hello'))).text)
  assert.deepEqual([fresh.jsonrpc, fresh.id, Object.keys(fresh.result)], ['2.0', 7, ['task']])
  const older = first((await rpc('message/stream', sendParamsV03('hello'))).text)
  assert.deepEqual([older.id, older.result.kind, older.result.status.state], [7, 'task', 'completed'])
})

test('PL-12 a stream whose token is revoked ends, and nothing is written after it', async () => {
  const { begin, fakePlatform } = openA2a()
  const { id, secret: token } = await fakePlatform.tokens.create({ name: 'short', role: 'member' })
  const { request, client, answered } = begin({ token })
  request.end(JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SendStreamingMessage', params: sendParams('slow') }))
  await soon(() => fakePlatform.following() > 0)
  await fakePlatform.tokens.revoke(id)
  await answered
  assert.ok(client.writableEnded)
  assert.equal(fakePlatform.logged.at(-1)?.['code'], 'unauthenticated')
})
