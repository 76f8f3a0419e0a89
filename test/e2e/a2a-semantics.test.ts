/** The rules of A2A that clients and their test suites check, in both versions, on the real platform. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { type PlatformResponse, type PlatformUnderTest, startPlatform } from '../harness/platform.ts'

let platform: PlatformUnderTest
let echo: string
let slow: string

before(async () => {
  platform = await startPlatform()
  const make = async (config: object) =>
    (await platform.request('POST', '/workspaces', { name: 'a', runtime: 'mock', runtime_config: config })).body.id
  echo = await make({})
  slow = await make({ delay: '1h' })
})
after(() => platform.dispose())

/** Each version's names for the same things. */
const DIALECTS = {
  '1.0': {
    send: 'SendMessage',
    stream: 'SendStreamingMessage',
    get: 'GetTask',
    cancel: 'CancelTask',
    subscribe: 'SubscribeToTask',
    role: 'ROLE_USER',
    part: (text: string) => ({ text }),
    now: { returnImmediately: true },
    // biome-ignore lint/suspicious/noExplicitAny: responses have many shapes
    task: (result: any) => result.task,
    states: { completed: 'TASK_STATE_COMPLETED', canceled: 'TASK_STATE_CANCELED' },
  },
  '0.3': {
    send: 'message/send',
    stream: 'message/stream',
    get: 'tasks/get',
    cancel: 'tasks/cancel',
    subscribe: 'tasks/resubscribe',
    role: 'user',
    part: (text: string) => ({ kind: 'text', text }),
    now: { blocking: false },
    // biome-ignore lint/suspicious/noExplicitAny: responses have many shapes
    task: (result: any) => result,
    states: { completed: 'completed', canceled: 'canceled' },
  },
} as const

const codeOf = ({ body }: PlatformResponse): number | undefined => body.error?.code

for (const [version, names] of Object.entries(DIALECTS)) {
  const messageParams = (text: string, message: object = {}, configuration?: object) => ({
    message: { messageId: randomUUID(), role: names.role, parts: [names.part(text)], ...message },
    ...(configuration && { configuration }),
  })
  const send = async (workspaceId: string, params: object) => {
    const { body } = await platform.rpc(workspaceId, names.send, params)
    assert.ok(body.result, JSON.stringify(body))
    return names.task(body.result)
  }

  test(`PL-5 each kind of bad request has its error code (${version})`, async () => {
    const ended = await send(echo, messageParams('hello'))
    const running = await send(slow, messageParams('hello', {}, names.now))
    const table: readonly [string, number, string, string, object][] = [
      ['a task id that the client made up', -32001, echo, names.send, messageParams('x', { taskId: randomUUID() })],
      ['a task of another workspace', -32001, slow, names.send, messageParams('x', { taskId: ended.id })],
      [
        'a context of another task',
        -32602,
        slow,
        names.send,
        messageParams('x', { taskId: running.id, contextId: 'c' }),
      ],
      ['a message to an ended task', -32004, echo, names.send, messageParams('x', { taskId: ended.id })],
      ['a streamed message to an ended task', -32004, echo, names.stream, messageParams('x', { taskId: ended.id })],
      ['no parts', -32602, echo, names.send, messageParams('x', { parts: [] })],
      ['a part without content', -32602, echo, names.send, messageParams('x', { parts: [{}] })],
      ['no message id', -32602, echo, names.send, messageParams('x', { messageId: '' })],
      ['an unknown role', -32602, echo, names.send, messageParams('x', { role: 'system' })],
      ['a negative historyLength', -32602, echo, names.send, messageParams('x', {}, { historyLength: -1 })],
      ['a get with a negative historyLength', -32602, echo, names.get, { id: ended.id, historyLength: -1 }],
      ['a get of an unknown task', -32001, echo, names.get, { id: randomUUID() }],
      ['a get without id', -32602, echo, names.get, {}],
      ['a cancel of an ended task', -32002, echo, names.cancel, { id: ended.id }],
      ['a cancel of an unknown task', -32001, echo, names.cancel, { id: randomUUID() }],
      ['a subscription to an ended task', -32004, echo, names.subscribe, { id: ended.id }],
      ['a subscription to an unknown task', -32001, echo, names.subscribe, { id: randomUUID() }],
      ['an unknown method', -32601, echo, 'tasks/dance', {}],
    ]
    for (const [what, code, workspaceId, method, params] of table)
      assert.equal(codeOf(await platform.rpc(workspaceId, method, params)), code, what)
    await platform.rpc(slow, names.cancel, { id: running.id })
  })

  test(`PL-5 the server creates task ids, keeps or creates the context id, and takes it from a given task (${version})`, async () => {
    const [one, other] = [await send(echo, messageParams('hello')), await send(echo, messageParams('hello'))]
    assert.notEqual(one.id, other.id)
    assert.notEqual(one.contextId, other.contextId)
    const contextId = randomUUID()
    assert.equal((await send(echo, messageParams('hello', { contextId }))).contextId, contextId)
    const running = await send(slow, messageParams('hello', { contextId }, names.now))
    const more = await send(slow, messageParams('more', { taskId: running.id }, names.now))
    assert.deepEqual([more.id, more.contextId], [running.id, contextId])
    await platform.rpc(slow, names.cancel, { id: running.id })
  })

  test(`PL-5 the same message again is the same task; the same id with other content is another (${version})`, async () => {
    const params = messageParams('hello')
    assert.equal((await send(echo, params)).id, (await send(echo, params)).id)
    const { messageId } = params.message
    const other = await send(echo, messageParams('other', { messageId }))
    assert.notEqual(other.id, (await send(echo, params)).id)
    assert.equal((await send(echo, messageParams('other', { messageId }))).id, other.id)
    const named = (text: string) => messageParams(text, { metadata: { idempotency_key: `key-${version}` } })
    const first = await send(echo, named('hello'))
    assert.equal((await send(echo, named('hello'))).id, first.id)
    const conflict = await platform.rpc(echo, names.send, named('other'))
    assert.deepEqual([codeOf(conflict), conflict.body.error.data[0].reason], [-32602, 'IDEMPOTENCY_CONFLICT'])
  })

  test(`PL-5 historyLength: unset returns all messages, 0 none, N the last N (${version})`, async () => {
    const task = await send(slow, messageParams('first', {}, names.now))
    for (const text of ['second', 'third']) await send(slow, messageParams(text, { taskId: task.id }, names.now))
    const texts = async (more: object) => {
      const { body } = await platform.rpc(slow, names.get, { id: task.id, ...more })
      return (body.result.history ?? []).map((message: { parts: { text: string }[] }) => message.parts[0]?.text)
    }
    assert.deepEqual(await texts({}), ['first', 'second', 'third'])
    assert.deepEqual(await texts({ historyLength: 0 }), [])
    assert.deepEqual(await texts({ historyLength: 2 }), ['second', 'third'])
    assert.deepEqual(await texts({ historyLength: 99 }), ['first', 'second', 'third'])
    await platform.rpc(slow, names.cancel, { id: task.id })
  })

  test(`PL-5 cancelling a task again returns the cancelled task again (${version})`, async () => {
    const task = await send(slow, messageParams('hello', {}, names.now))
    for (let times = 0; times < 3; times++) {
      const { body } = await platform.rpc(slow, names.cancel, { id: task.id })
      assert.equal(body.result.status.state, names.states.canceled)
    }
    assert.equal((await send(echo, messageParams('hello'))).status.state, names.states.completed)
  })
}

test('PL-5 ListTasks filters by conversation, state and time, and pages without a gap or a repeat', async () => {
  const contextId = randomUUID()
  const send = async (workspaceId: string, own: object) => {
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hello' }], contextId, ...own }
    const configuration = { returnImmediately: true }
    return (await platform.rpc(workspaceId, 'SendMessage', { message, configuration })).body.result.task.id as string
  }
  const list = async (params: object) => (await platform.rpc(slow, 'ListTasks', params)).body.result
  const ids = async (params: object) => (await list(params)).tasks.map(({ id }: { id: string }) => id).sort()
  const [canceled, open] = [await send(slow, {}), await send(slow, {})]
  const other = await send(slow, { contextId: randomUUID() })
  await platform.rpc(slow, 'CancelTask', { id: canceled })
  const { body } = await platform.rpc(slow, 'GetTask', { id: canceled })
  assert.deepEqual(await ids({ contextId }), [canceled, open].sort())
  assert.deepEqual(await ids({ contextId, status: 'TASK_STATE_CANCELED' }), [canceled])
  assert.ok((await ids({ pageSize: 100 })).includes(other))
  const at = Date.parse(body.result.status.timestamp)
  const since = (ms: number) => ids({ contextId, statusTimestampAfter: new Date(ms).toISOString() })
  assert.ok((await since(at - 1)).includes(canceled))
  assert.deepEqual(await since(Date.now() + 3600_000), [])
  const first = await list({ contextId, pageSize: 1 })
  const second = await list({ contextId, pageSize: 1, pageToken: first.nextPageToken })
  assert.deepEqual([first.tasks[0].id, second.tasks[0].id].sort(), [canceled, open].sort())
  assert.deepEqual([first.totalSize, first.pageSize, second.nextPageToken], [2, 1, ''])
  for (const id of [open, other]) await platform.rpc(slow, 'CancelTask', { id })
})
