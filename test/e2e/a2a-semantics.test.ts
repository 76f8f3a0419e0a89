/** The rules of A2A that clients and their test suites look for, as a table, in both versions, on the real platform. */
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

/** How each version says the same. */
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
    // biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
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
    // biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
    task: (result: any) => result,
    states: { completed: 'completed', canceled: 'canceled' },
  },
} as const

const codeOf = ({ body }: PlatformResponse): number | undefined => body.error?.code

for (const [version, words] of Object.entries(DIALECTS)) {
  const say = (text: string, message: object = {}, configuration?: object) => ({
    message: { messageId: randomUUID(), role: words.role, parts: [words.part(text)], ...message },
    ...(configuration && { configuration }),
  })
  const send = async (workspaceId: string, params: object) => {
    const { body } = await platform.rpc(workspaceId, words.send, params)
    assert.ok(body.result, JSON.stringify(body))
    return words.task(body.result)
  }

  test(`PL-5 what is wrong has its code (${version})`, async () => {
    const ended = await send(echo, say('hello'))
    const running = await send(slow, say('hello', {}, words.now))
    const table: readonly [string, number, string, string, object][] = [
      ['a task id of the client', -32001, echo, words.send, say('x', { taskId: randomUUID() })],
      ['a task of another workspace', -32001, slow, words.send, say('x', { taskId: ended.id })],
      ['another context than the task has', -32602, slow, words.send, say('x', { taskId: running.id, contextId: 'c' })],
      ['a message to an ended task', -32004, echo, words.send, say('x', { taskId: ended.id })],
      ['the same to be streamed', -32004, echo, words.stream, say('x', { taskId: ended.id })],
      ['no parts', -32602, echo, words.send, say('x', { parts: [] })],
      ['a part that says nothing', -32602, echo, words.send, say('x', { parts: [{}] })],
      ['no message id', -32602, echo, words.send, say('x', { messageId: '' })],
      ['an unknown role', -32602, echo, words.send, say('x', { role: 'system' })],
      ['a negative historyLength', -32602, echo, words.send, say('x', {}, { historyLength: -1 })],
      ['the same of a get', -32602, echo, words.get, { id: ended.id, historyLength: -1 }],
      ['no task of this id', -32001, echo, words.get, { id: randomUUID() }],
      ['a get without id', -32602, echo, words.get, {}],
      ['a cancel of an ended task', -32002, echo, words.cancel, { id: ended.id }],
      ['a cancel of nothing', -32001, echo, words.cancel, { id: randomUUID() }],
      ['a subscription to an ended task', -32004, echo, words.subscribe, { id: ended.id }],
      ['a subscription to nothing', -32001, echo, words.subscribe, { id: randomUUID() }],
      ['a method of nobody', -32601, echo, 'tasks/dance', {}],
    ]
    for (const [what, code, workspaceId, method, params] of table) {
      assert.equal(codeOf(await platform.rpc(workspaceId, method, params)), code, what)
    }
    await platform.rpc(slow, words.cancel, { id: running.id })
  })

  test(`PL-5 ids: tasks are named by the server, contexts kept or made, inferred from the task (${version})`, async () => {
    const [one, other] = [await send(echo, say('hello')), await send(echo, say('hello'))]
    assert.notEqual(one.id, other.id)
    assert.notEqual(one.contextId, other.contextId)
    const contextId = randomUUID()
    assert.equal((await send(echo, say('hello', { contextId }))).contextId, contextId)
    const running = await send(slow, say('hello', { contextId }, words.now))
    const more = await send(slow, say('more', { taskId: running.id }, words.now))
    assert.deepEqual([more.id, more.contextId], [running.id, contextId])
    await platform.rpc(slow, words.cancel, { id: running.id })
  })

  test(`PL-5 the same message is the same task, other content a conflict (${version})`, async () => {
    const params = say('hello')
    assert.equal((await send(echo, params)).id, (await send(echo, params)).id)
    const { messageId } = params.message
    const conflict = await platform.rpc(echo, words.send, say('other', { messageId }))
    assert.deepEqual([codeOf(conflict), conflict.body.error.data[0].reason], [-32602, 'IDEMPOTENCY_CONFLICT'])
  })

  test(`PL-5 historyLength: unset is all, 0 none, N the last (${version})`, async () => {
    const task = await send(slow, say('first', {}, words.now))
    for (const text of ['second', 'third']) await send(slow, say(text, { taskId: task.id }, words.now))
    const texts = async (more: object) => {
      const { body } = await platform.rpc(slow, words.get, { id: task.id, ...more })
      return (body.result.history ?? []).map((message: { parts: { text: string }[] }) => message.parts[0]?.text)
    }
    assert.deepEqual(await texts({}), ['first', 'second', 'third'])
    assert.deepEqual(await texts({ historyLength: 0 }), [])
    assert.deepEqual(await texts({ historyLength: 2 }), ['second', 'third'])
    assert.deepEqual(await texts({ historyLength: 99 }), ['first', 'second', 'third'])
    await platform.rpc(slow, words.cancel, { id: task.id })
  })

  test(`PL-5 cancel answers the cancelled task, as often as it is asked (${version})`, async () => {
    const task = await send(slow, say('hello', {}, words.now))
    for (let times = 0; times < 3; times++) {
      const { body } = await platform.rpc(slow, words.cancel, { id: task.id })
      assert.equal(body.result.status.state, words.states.canceled)
    }
    assert.equal((await send(echo, say('hello'))).status.state, words.states.completed)
  })
}
