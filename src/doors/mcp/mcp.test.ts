import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../test/fakes/platform/fake-platform.ts'
import { openDoor, openStream } from '../../../test/harness/open-door.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import type { Clock } from '../../clock.ts'
import type { TaskState } from '../../protocol/a2a.ts'
import { delegationTools } from './delegation-tools.ts'
import { pagesOf } from './task-result.ts'
import type { ToolCall } from './tool.ts'

const PATH = `/workspaces/${WORKSPACE_ID}/mcp`
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

async function setUp(t: TestContext) {
  const opened = await openDoor(t)
  const peer = await opened.fakePlatform.workspaces.create({ name: 'peer' })
  const post = (message: object) => ({
    method: 'POST',
    token: secretOf('conversation'),
    headers: HEADERS,
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  })
  const delegate = (task: string) => {
    const params = {
      name: 'delegate_task',
      arguments: { workspace_id: peer.id, task },
      _meta: { progressToken: 'p' },
    }
    return post({ id: 1, method: 'tools/call', params })
  }
  return { ...opened, post, delegate, peer }
}

test('TW-1 delegate_task is answered at once with a stream; a client that leaves ends the wait and not the task', async (t) => {
  const { url, delegate, fakePlatform } = await setUp(t)
  const stream = await openStream(url + PATH, delegate('slow'))
  assert.deepEqual([stream.status, stream.headers['content-type']], [200, 'text/event-stream'])
  await waitUntil(() => stream.events.length === 1, 'the first progress')
  assert.match(stream.events[0]?.data.params.message, /has the task task-1$/)
  assert.equal(fakePlatform.waiting(), 1)
  stream.leave()
  await waitUntil(() => fakePlatform.waiting() === 0, 'the end of the wait')
  const task = await fakePlatform.reception.task('task-1')
  assert.equal(task?.status.state, 'TASK_STATE_WORKING')
})

test('TW-1 a call that the stop of the platform breaks off names the task', async (t) => {
  const { url, delegate, door } = await setUp(t)
  const stream = await openStream(url + PATH, delegate('slow'))
  await waitUntil(() => stream.events.length === 1, 'the first progress')
  await door.close()
  await stream.ended
  const { result } = stream.events.at(-1)?.data ?? {}
  assert.equal(result.isError, true)
  assert.match(result.content[0].text, /interrupted; check_task_status shows its result later\)\. Its task is task-1\./)
})

test('TW-1 a batch of revision 2025-03-26 is answered message by message, up to its limit', async (t) => {
  const { url, sendRequest, post, peer, fakePlatform } = await setUp(t)
  const call = (id: number, task: string) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'delegate_task', arguments: { workspace_id: peer.id, task } },
  })
  const batch = (messages: readonly object[]) => ({ ...post({}), body: JSON.stringify(messages) })
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } }
  const list = { jsonrpc: '2.0', id: 3, method: 'tools/list' }
  const stream = await openStream(url + PATH, batch([call(1, 'one'), cancel, call(2, 'two'), list]))
  assert.equal(stream.status, 200)
  await stream.ended
  const byId = (id: number) => stream.events.find(({ data }) => data.id === id)?.data.result
  assert.match(byId(1).content[0].text, /one/)
  assert.match(byId(2).content[0].text, /two/)
  assert.ok(byId(3).tools.length > 5)
  assert.equal(fakePlatform.letters.length, 2)
  const refused = (messages: readonly unknown[]) => sendRequest(PATH, batch(messages as object[]))
  const many = await refused(Array.from({ length: 21 }, (_, id) => call(id, 'x')))
  assert.deepEqual([many.status, many.json.error.message], [400, 'a batch has at most 20 messages'])
  for (const wrong of [[7], [[]], []]) assert.equal((await refused(wrong)).status, 400, JSON.stringify(wrong))
  assert.equal(fakePlatform.letters.length, 2)
})

test('TW-1 a session of an earlier platform and the cancel of a finished call are accepted', async (t) => {
  const { sendRequest, post, delegate } = await setUp(t)
  const old = { ...HEADERS, 'mcp-session-id': 'of-an-earlier-platform' }
  const answer = await sendRequest(PATH, { ...delegate('hello'), headers: old })
  assert.equal(answer.status, 200)
  const cancel = post({ method: 'notifications/cancelled', params: { requestId: 1 } })
  assert.equal((await sendRequest(PATH, cancel)).status, 202)
})

test('TW-3 delegate_task and check_task_status mark the result as read; delegate_task_async, the list and a cancelled call do not', async (t) => {
  const { url, post, delegate, fakePlatform, peer } = await setUp(t)
  const call = async (name: string, given: object) => {
    const stream = await openStream(
      url + PATH,
      post({ id: 1, method: 'tools/call', params: { name, arguments: given } }),
    )
    await stream.ended
  }
  const read = () => fakePlatform.readResults.map(([taskId]) => taskId)
  await call('delegate_task_async', { workspace_id: peer.id, task: 'hello' })
  await call('check_task_status', {})
  assert.deepEqual(read(), [])
  await call('check_task_status', { task_id: 'task-1' })
  assert.deepEqual(fakePlatform.readResults, [['task-1', fakePlatform.letters[0]?.principal]])
  await (await openStream(url + PATH, delegate('hello again'))).ended
  assert.deepEqual(read(), ['task-1', 'task-2'])
  const slow = await openStream(url + PATH, delegate('slow'))
  await waitUntil(() => fakePlatform.waiting() === 1)
  const cancel = post({ method: 'notifications/cancelled', params: { requestId: 1 } })
  await (await openStream(url + PATH, cancel)).ended
  fakePlatform.finish('task-3')
  await slow.ended
  assert.deepEqual(read(), ['task-1', 'task-2'], 'its connection was open')
})

test('TW-1 a delegation comes from the door mcp, with the turn of the token as its parent', async (t) => {
  const { sendRequest, delegate, fakePlatform, peer } = await setUp(t)
  await sendRequest(PATH, delegate('hello'))
  const [letter] = fakePlatform.letters
  assert.deepEqual([letter?.workspaceId, letter?.sender.door, letter?.sender.id], [peer.id, 'mcp', WORKSPACE_ID])
  assert.deepEqual(letter?.parent, { workspaceId: WORKSPACE_ID, conversationId: 'conversation-1' })
})

test('TW-1 a question of the peer comes with the way to answer it', async (t) => {
  const { url, delegate } = await setUp(t)
  const stream = await openStream(url + PATH, delegate('ask'))
  await stream.ended
  const { result } = stream.events.at(-1)?.data ?? {}
  assert.equal(result.isError, undefined)
  assert.match(result.content[0].text, /asks before it goes on[\s\S]*task_id "task-1"/)
})

/** A clock whose timers are due at once; its time moves by their delays. */
function hurriedClock(): Clock {
  let nowMs = 0
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    after(delayMs, callback) {
      nowMs += delayMs
      setImmediate(callback)
      return () => undefined
    },
  }
}

/** Delegates to a peer whose task is in these states, one for each look at it. */
async function delegateThrough(states: readonly TaskState[]) {
  let looks = 0
  const peer = { id: 'ws_2', name: 'peer' }
  const call = {
    workspaceId: 'ws_1',
    identity: { principal: 'people', sender: {} },
    bytes: 1,
    taskViews: [],
    registry: { peers: async () => [peer] },
    reception: {
      admit: async () => ({ taskId: 't', contextId: 'c', duplicate: false }),
      markRead: async () => undefined,
      async waitForResult() {
        const state = states[Math.min(looks, states.length - 1)]
        looks += 1
        return { id: 't', contextId: 'c', status: { state } }
      },
    },
    store: { read: async () => ({ workspaceId: peer.id, isRunning: true }) },
    clock: hurriedClock(),
    report: () => undefined,
    wait: <T>(work: (signal: AbortSignal) => Promise<T>) => work(new AbortController().signal),
    isGivenUp: () => false,
    refuse: String,
  }
  const tool = delegationTools.find(({ name }) => name === 'delegate_task')
  const result = await tool?.run({ workspace_id: 'peer', task: 'x' } as never, call as unknown as ToolCall)
  return { isError: result?.isError === true, looks }
}

test('TW-1 delegate_task waits while an owner decides on a permission, and gives up a peer that stays unavailable', async () => {
  const asking: TaskState[] = Array.from({ length: 100 }, () => 'TASK_STATE_AUTH_REQUIRED')
  assert.deepEqual(await delegateThrough([...asking, 'TASK_STATE_COMPLETED']), { isError: false, looks: 101 })
  const unavailable = await delegateThrough(['TASK_STATE_SUBMITTED'])
  assert.ok(unavailable.isError && unavailable.looks > 30 && unavailable.looks < 35, String(unavailable.looks))
})

test('TW-1 pages are cut between characters and lose nothing', () => {
  assert.deepEqual(pagesOf(''), [''])
  const text = 'a€😀'.repeat(10_000)
  const pages = pagesOf(text)
  assert.equal(pages.join(''), text)
  assert.ok(pages.length > 1 && pages.every((page) => Buffer.byteLength(page) <= 24_000))
})
