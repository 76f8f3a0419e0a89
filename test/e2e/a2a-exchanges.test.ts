/** Raw HTTP exchanges with the real platform, as published A2A clients send them: one row for each. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { bearerOptions, connectSocket } from '../harness/clients/socket-client.ts'
import { type PlatformUnderTest, readJson, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

let platform: PlatformUnderTest
let echo: string
/** A finished task of `echo`. */
let doneTask: string
/** The token of a program that may use another workspace only. */
let stranger: string

before(async () => {
  platform = await startPlatform()
  const make = async (name: string) =>
    (await platform.request('POST', '/workspaces', { name, runtime: 'mock', runtime_config: {} })).body.id
  echo = await make('echo')
  doneTask = (await platform.send(echo, 'hello')).id
  const grant = { name: 'stranger', role: 'caller', workspaces: [await make('other')] }
  stranger = (await platform.request('POST', '/tokens', grant)).body.token
  assert.ok(stranger)
})
after(() => platform.dispose())

/** What is sent. Absent: POST to the JSON-RPC URL of `echo` with the admin's token. */
interface Exchange {
  readonly what: string
  readonly method?: string
  /** Below the A2A URL of the workspace. */
  readonly path?: string | (() => string)
  readonly workspace?: string
  readonly token?: string | (() => string)
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly status?: number
  /** A part of the answer, or of the first event of a stream. */
  readonly answer: object
  readonly isStream?: boolean
}

const textOf = (given: string | (() => string)): string => (typeof given === 'function' ? given() : given)

async function exchange({ method = 'POST', path = '', workspace = echo, token = platform.token, ...given }: Exchange) {
  const body = typeof given.body === 'function' ? given.body() : given.body
  const response = await fetch(`${platform.url}/workspaces/${workspace}/a2a${textOf(path)}`, {
    method,
    headers: { Authorization: `Bearer ${textOf(token)}`, 'Content-Type': 'application/json', ...given.headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const contentType = response.headers.get('content-type') ?? ''
  const text = await response.text()
  return { status: response.status, contentType, text, json: readJson(contentType, text) }
}

function testExchanges(table: readonly Exchange[]): void {
  for (const row of table) {
    test(`PL-5 ${row.what}`, async () => {
      const { status, contentType, text, json } = await exchange(row)
      assert.equal(status, row.status ?? 200, text)
      assert.equal(contentType.startsWith('text/event-stream'), row.isStream ?? false, contentType)
      if (row.isStream) assert.match(text, /^data: .*\n\n$/, 'one event, then the end')
      assert.partialDeepStrictEqual(json, row.answer, text)
    })
  }
}

const rpc = (method: string, params?: unknown) => ({ jsonrpc: '2.0', id: 7, method, params })
const message = (more: object = {}) => {
  return { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hi' }], ...more }
}
const usedTwice = () => message({ parts: [{ text: randomUUID() }], metadata: { idempotency_key: 'used-twice' } })
const messageV03 = (more: object = {}) => ({
  kind: 'message',
  messageId: randomUUID(),
  role: 'user',
  parts: [{ kind: 'text', text: 'hi' }],
  ...more,
})
const error = (code: number, reason: string, more: object = {}) => ({ error: { code, data: [{ reason, ...more }] } })
const rpcError = (code: number, reason: string, more: object = {}) => ({
  jsonrpc: '2.0',
  id: 7,
  ...error(code, reason, more),
})

// Item 1: params may be absent.
testExchanges([
  { what: 'ListTasks without params', body: rpc('ListTasks'), answer: { id: 7, result: { pageSize: 50 } } },
  {
    what: 'GetExtendedAgentCard without params',
    body: rpc('GetExtendedAgentCard'),
    answer: { result: { name: 'echo' } },
  },
  {
    what: 'the extended card of 0.3 without params',
    body: rpc('agent/getAuthenticatedExtendedCard'),
    answer: { result: { name: 'echo' } },
  },
  { what: 'null params are absent params', body: rpc('ListTasks', null), answer: { result: { pageSize: 50 } } },
  {
    what: 'a method that needs params names the field that is missing',
    body: rpc('GetTask'),
    answer: rpcError(-32602, 'INVALID_PARAMS', { metadata: { path: 'params.id' } }),
  },
])

// Item 2: over JSON-RPC every error is HTTP 200, but for the statuses of HTTP itself.
testExchanges([
  { what: 'a body that is not JSON', body: '{', answer: { id: null, ...error(-32700, 'PARSE_ERROR') } },
  { what: 'a batch', body: [rpc('ListTasks')], answer: { id: null, ...error(-32600, 'INVALID_REQUEST') } },
  { what: 'an unknown method', body: rpc('tasks/dance'), answer: rpcError(-32601, 'METHOD_NOT_FOUND') },
  { what: 'params that are no object', body: rpc('GetTask', ['x']), answer: rpcError(-32602, 'INVALID_PARAMS') },
  {
    what: 'a version that is not served',
    headers: { 'A2A-Version': '2.0' },
    body: rpc('ListTasks'),
    answer: rpcError(-32009, 'VERSION_NOT_SUPPORTED'),
  },
  { what: 'an unknown task', body: rpc('GetTask', { id: 'nope' }), answer: rpcError(-32001, 'TASK_NOT_FOUND') },
  {
    what: 'an unknown workspace',
    workspace: 'ws_nobody',
    body: rpc('SendMessage', { message: message() }),
    answer: rpcError(-32602, 'WORKSPACE_NOT_FOUND'),
  },
  {
    what: 'a key for the first time',
    body: () => rpc('SendMessage', { message: usedTwice() }),
    answer: { id: 7 },
  },
  {
    what: 'a key again with other content is a conflict',
    body: () => rpc('SendMessage', { message: usedTwice() }),
    answer: rpcError(-32602, 'IDEMPOTENCY_CONFLICT'),
  },
  {
    what: 'a cancel of an ended task',
    body: () => rpc('tasks/cancel', { id: doneTask }),
    answer: rpcError(-32002, 'TASK_NOT_CANCELABLE'),
  },
  {
    what: 'a webhook to a private address',
    body: () => rpc('CreateTaskPushNotificationConfig', { taskId: doneTask, url: 'http://10.0.0.1/hook' }),
    answer: rpcError(-32052, 'FORBIDDEN'),
  },
  {
    what: 'a wrong token keeps 401',
    token: 'wrong',
    body: rpc('ListTasks'),
    status: 401,
    answer: error(-32051, 'UNAUTHENTICATED'),
  },
  {
    what: 'a workspace that the token does not reach keeps 403',
    token: () => stranger,
    body: rpc('ListTasks'),
    status: 403,
    answer: rpcError(-32052, 'FORBIDDEN'),
  },
  {
    what: 'a body that is too large keeps 413',
    body: () => ' '.repeat(8 * 1024 * 1024 + 1),
    status: 413,
    answer: error(-32054, 'TOO_LARGE'),
  },
  {
    what: 'REST keeps 400 for params that are not valid',
    method: 'GET',
    path: '/tasks?pageSize=x',
    status: 400,
    answer: { error: { code: 400, status: 'INVALID_ARGUMENT', details: [{ reason: 'INVALID_PARAMS' }] } },
  },
  {
    what: 'REST keeps 404 for an unknown task',
    method: 'GET',
    path: '/tasks/nope',
    status: 404,
    answer: { error: { code: 404, status: 'NOT_FOUND', details: [{ reason: 'TASK_NOT_FOUND' }] } },
  },
  {
    what: 'REST keeps 409 for a conflict',
    path: '/message:send',
    body: () => ({ message: usedTwice() }),
    status: 409,
    answer: { error: { code: 409, details: [{ reason: 'IDEMPOTENCY_CONFLICT' }] } },
  },
])

// Item 3: a 0.3 stream that cannot begin is one event with the error, a 1.0 stream plain JSON.
testExchanges([
  {
    what: 'a stream of a message without a message',
    body: rpc('SendStreamingMessage', {}),
    answer: rpcError(-32602, 'INVALID_PARAMS'),
  },
  {
    what: 'a stream of a message to an ended task',
    body: () => rpc('message/stream', { message: messageV03({ taskId: doneTask }) }),
    isStream: true,
    answer: rpcError(-32004, 'UNSUPPORTED_OPERATION'),
  },
  {
    what: 'a subscription to an ended task',
    body: () => rpc('SubscribeToTask', { id: doneTask }),
    answer: rpcError(-32004, 'UNSUPPORTED_OPERATION'),
  },
  {
    what: 'a subscription of 0.3 to an unknown task',
    body: rpc('tasks/resubscribe', { id: 'nope' }),
    isStream: true,
    answer: rpcError(-32001, 'TASK_NOT_FOUND'),
  },
  {
    what: 'a stream in an unknown workspace',
    workspace: 'ws_nobody',
    body: () => rpc('SendStreamingMessage', { message: message() }),
    answer: rpcError(-32602, 'WORKSPACE_NOT_FOUND'),
  },
  {
    what: 'a stream in a version that is not served',
    headers: { 'A2A-Version': '2.0' },
    body: () => rpc('SendStreamingMessage', { message: message() }),
    answer: rpcError(-32009, 'VERSION_NOT_SUPPORTED'),
  },
  {
    what: 'a request that is not valid, from a client that accepts a stream',
    headers: { Accept: 'text/event-stream' },
    body: { id: 7, method: 'SendStreamingMessage' },
    isStream: true,
    answer: rpcError(-32600, 'INVALID_REQUEST'),
  },
  {
    what: 'a stream without a token keeps 401',
    token: 'wrong',
    body: rpc('SubscribeToTask', { id: 'x' }),
    status: 401,
    answer: error(-32051, 'UNAUTHENTICATED'),
  },
  {
    what: 'a REST stream that cannot begin keeps its status',
    method: 'GET',
    path: () => `/tasks/${doneTask}:subscribe`,
    status: 400,
    answer: { error: { code: 400, details: [{ reason: 'UNSUPPORTED_OPERATION' }] } },
  },
])

// Item 5: fields under their names of protocol buffers.
const snakeMessage = (more: object = {}) => ({
  message_id: randomUUID(),
  role: 'ROLE_USER',
  parts: [{ text: 'hi', media_type: 'text/plain' }],
  ...more,
})
testExchanges([
  {
    what: 'SendMessage with snake_case names; metadata keeps its own',
    body: () =>
      rpc('SendMessage', {
        message: snakeMessage({ context_id: 'a-context', metadata: { task_id: 'mine' } }),
        configuration: { accepted_output_modes: ['text/plain'], return_immediately: false },
      }),
    answer: {
      result: {
        task: {
          contextId: 'a-context',
          status: { state: 'TASK_STATE_COMPLETED' },
          history: [{ contextId: 'a-context', parts: [{ mediaType: 'text/plain' }], metadata: { task_id: 'mine' } }],
        },
      },
    },
  },
  {
    what: 'one snake_case name among others is not ignored',
    body: () => rpc('SendMessage', { message: message({ task_id: doneTask }) }),
    answer: rpcError(-32004, 'UNSUPPORTED_OPERATION'),
  },
  {
    what: 'a field under both names is refused',
    body: () => rpc('SendMessage', { message: message({ task_id: doneTask, taskId: 'other' }) }),
    answer: rpcError(-32602, 'INVALID_PARAMS', { metadata: { path: 'params.message.task_id' } }),
  },
  {
    what: 'message/send of 0.3 with snake_case names',
    body: () =>
      rpc('message/send', {
        message: { kind: 'message', message_id: randomUUID(), role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
        configuration: { history_length: -1 },
      }),
    answer: rpcError(-32602, 'INVALID_PARAMS', { metadata: { path: 'params.configuration.historyLength' } }),
  },
  {
    what: 'GetTask with history_length',
    body: () => rpc('GetTask', { id: doneTask, history_length: -1 }),
    answer: rpcError(-32602, 'INVALID_PARAMS', { metadata: { path: 'params.historyLength' } }),
  },
  {
    what: 'ListTasks with page_size',
    body: rpc('ListTasks', { page_size: 1, include_artifacts: true }),
    answer: { result: { pageSize: 1, tasks: [{ artifacts: [{}] }] } },
  },
  {
    what: 'a push config with task_id',
    body: () => rpc('ListTaskPushNotificationConfigs', { task_id: doneTask }),
    answer: { result: { configs: [] } },
  },
  {
    what: 'a push config of 0.3 with snake_case names',
    body: () =>
      rpc('tasks/pushNotificationConfig/set', {
        task_id: doneTask,
        push_notification_config: { url: 'http://10.0.0.1/hook' },
      }),
    answer: rpcError(-32052, 'FORBIDDEN'),
  },
  {
    what: 'a push config in a send with snake_case names',
    body: () =>
      rpc('SendMessage', {
        message: snakeMessage(),
        configuration: { task_push_notification_config: { url: 'http://10.0.0.1/hook' } },
      }),
    answer: rpcError(-32052, 'FORBIDDEN'),
  },
  {
    what: 'REST query with snake_case names',
    method: 'GET',
    path: '/tasks?page_size=1&include_artifacts=true&history_length=0',
    answer: { pageSize: 1, tasks: [{ artifacts: [{}] }] },
  },
  {
    what: 'REST body with snake_case names',
    path: '/message:send',
    body: () => ({ message: snakeMessage({ context_id: 'b-context' }), configuration: { history_length: 1 } }),
    answer: { task: { contextId: 'b-context', history: [{ contextId: 'b-context' }] } },
  },
])

// Item 6: what single clients need.
testExchanges([
  {
    what: 'a request without jsonrpc gets the error that names the field',
    body: { id: 7, method: 'ListTasks', params: {} },
    answer: rpcError(-32600, 'INVALID_REQUEST', { metadata: { path: 'jsonrpc' } }),
  },
  { what: 'the card at agent.json', method: 'GET', path: '/.well-known/agent.json', answer: { name: 'echo' } },
  { what: 'JSON-RPC with a slash at the end', path: '/', body: rpc('ListTasks'), answer: { id: 7, result: {} } },
  {
    what: 'the card with a slash at the end',
    method: 'GET',
    path: '/.well-known/agent.json/',
    answer: { name: 'echo' },
  },
  { what: 'REST with a slash at the end', method: 'GET', path: '/tasks/?pageSize=1', answer: { pageSize: 1 } },
  {
    what: 'a REST send with a slash at the end',
    path: '/message:send/',
    body: () => ({ message: message() }),
    answer: { task: { status: { state: 'TASK_STATE_COMPLETED' } } },
  },
])

test('PL-5 every route outside A2A also takes a slash at the end', async () => {
  for (const path of [
    '/workspaces/',
    `/workspaces/${echo}/`,
    '/version/',
    `/workspaces/${echo}/files/`,
    '/health/?x=1',
  ])
    assert.equal((await platform.request('GET', path)).status, 200, path)
  const { socket } = await connectSocket(platform.url, { ...bearerOptions(platform.token), path: '/ws/' })
  socket.terminate()
})

test('PL-5 a webhook whose name cannot be resolved is accepted and retried', async () => {
  const url = 'http://nobody.invalid/hook'
  const { json } = await exchange({
    what: '',
    answer: {},
    body: rpc('SendMessage', { message: message(), configuration: { taskPushNotificationConfig: { url } } }),
  })
  const { id } = json.result.task
  const set = rpc('CreateTaskPushNotificationConfig', { taskId: id, id: 'later', url })
  assert.partialDeepStrictEqual((await exchange({ what: '', answer: {}, body: set })).json, { result: { url } })
  let story: { deliveries: { tries: number; state: string; error?: string }[] } | undefined
  await waitUntil(
    async () => {
      story = (await platform.request('GET', `/messages/${id}/story`)).body
      return story?.deliveries.some(({ tries }) => tries >= 2) ?? false
    },
    () => `a second try in ${JSON.stringify(story)}`,
  )
  assert.match(JSON.stringify(story?.deliveries), /nobody\.invalid/)
})
