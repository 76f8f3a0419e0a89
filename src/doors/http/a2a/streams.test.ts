import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFakePlatform, secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams, sendParamsV03 } from '../../../../test/harness/open-door.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import type { Letter, Reception, TaskView } from '../../../inbox/reception.ts'
import type { StreamResponse } from '../../../protocol/a2a.ts'
import { type OpenStreamOptions, openStream, type TaskStream, taskEvents } from './streams.ts'

const delta = (text: string): StreamResponse => ({
  artifactUpdate: {
    taskId: 'task-1',
    contextId: 'context-task-1',
    artifact: { artifactId: 'reply', parts: [{ text }] },
    append: true,
    lastChunk: false,
  },
})

/** A short name for the kind of each event. */
const kinds = (events: readonly { data: { result: object } }[]) =>
  events.map(({ data }) => Object.keys(data.result)[0] ?? '')

test('PL-5 a streamed send begins with the task, shows every event in order and ends with the task', async (t) => {
  const { stream, fakePlatform } = await openDoor(t)
  const opened = await stream('SendStreamingMessage', sendParams('slow'))
  assert.equal(opened.status, 200)
  assert.match(String(opened.headers['content-type']), /^text\/event-stream/)
  assert.equal(opened.headers['cache-control'], 'no-store')
  assert.equal(opened.headers['x-accel-buffering'], 'no')
  await waitUntil(() => opened.events.length === 1, 'the task arrives')
  fakePlatform.addLogRow('task-1', [delta('a'), delta('b')])
  fakePlatform.finish('task-1')
  assert.equal(await opened.ended, 'ended')
  assert.deepEqual(kinds(opened.events), ['task', 'artifactUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate'])
  assert.deepEqual(
    opened.events.map(({ id }) => id),
    ['2.0', '2.1', '2.2', '3.1', '3.2'],
  )
  for (const { data } of opened.events) assert.deepEqual([data.jsonrpc, data.id], ['2.0', 7])
  assert.equal(opened.events.at(-1)?.data.result.statusUpdate.status.state, 'TASK_STATE_COMPLETED')
})

test('PL-5 message/stream and tasks/resubscribe use the 0.3 format: kinds, and final only on the last event', async (t) => {
  const { stream, fakePlatform } = await openDoor(t)
  const sent = await stream('message/stream', sendParamsV03('slow'))
  await waitUntil(() => sent.events.length === 1, 'the task arrives')
  const again = await stream('tasks/resubscribe', { id: 'task-1' })
  await waitUntil(() => again.events.length === 1, 'the task arrives')
  fakePlatform.addLogRow('task-1', [delta('a')])
  fakePlatform.finish('task-1')
  await Promise.all([sent.ended, again.ended])
  const kindsOf03 = sent.events.map(({ data }) => data.result.kind)
  assert.deepEqual(kindsOf03, ['task', 'artifact-update', 'artifact-update', 'status-update'])
  assert.equal(sent.events.at(-1)?.data.result.final, true)
  assert.deepEqual(again.events, sent.events)
})

test('PL-5 the stream of a send ends when its task asks for input', async (t) => {
  const { stream } = await openDoor(t)
  const opened = await stream('SendStreamingMessage', sendParams('ask'))
  assert.equal(await opened.ended, 'ended')
  assert.equal(opened.events.at(-1)?.data.result.task.status.state, 'TASK_STATE_INPUT_REQUIRED')
})

test('PL-5 Last-Event-ID resumes after that event, in the middle of a row, also when the task has ended', async (t) => {
  const { stream, fakePlatform } = await openDoor(t)
  const first = await stream('SendStreamingMessage', sendParams('slow'))
  fakePlatform.addLogRow('task-1', [delta('a'), delta('b'), delta('c')])
  fakePlatform.finish('task-1')
  await first.ended
  for (let seen = 0; seen < first.events.length; seen++) {
    const headers = { 'last-event-id': first.events[seen]?.id ?? '' }
    for (const [method, params] of [
      ['SubscribeToTask', { id: 'task-1' }],
      ['SendStreamingMessage', sendParams('slow')],
    ] as const) {
      const rest = await stream(method, params, { headers })
      await rest.ended
      assert.deepEqual(rest.events, first.events.slice(seen + 1), `${method} after ${headers['last-event-id']}`)
    }
  }
})

test('PL-5 with a cursor of another task, or an unknown one, the stream begins with the task again', async (t) => {
  const { stream, rpc } = await openDoor(t)
  await rpc('SendMessage', sendParams('other'))
  await rpc('SendMessage', sendParams('hello'))
  for (const id of ['1.1', '2.1', '99.1', '5.0', 'garbage', '-1.0', '0.0', '1.0', '99999999999999999999.1']) {
    const opened = await stream('SubscribeToTask', { id: 'task-2' }, { headers: { 'last-event-id': id } })
    await opened.ended
    assert.deepEqual(kinds(opened.events), id === '5.0' ? [] : ['task'], id)
  }
})

test('PL-5 without a cursor a subscription to an ended task is refused, and to an unknown task not found', async (t) => {
  const { rpc } = await openDoor(t)
  await rpc('SendMessage', sendParams('hello'))
  for (const method of ['SubscribeToTask', 'tasks/resubscribe']) {
    const ended = await rpc(method, { id: 'task-1' })
    assert.deepEqual([ended.status, ended.json.error.code], [200, -32004])
    const unknown = await rpc(method, { id: 'nope' })
    assert.deepEqual([unknown.status, unknown.json.error.code], [200, -32001])
    const stranger = await rpc(method, { id: 'task-1' }, { token: secretOf('caller') })
    assert.deepEqual([stranger.status, stranger.json.error.code], [200, -32001])
  }
})

test('PL-5 when a reader disconnects its stream ends and the task goes on', async (t) => {
  const { stream, fakePlatform, rpc } = await openDoor(t)
  const opened = await stream('SendStreamingMessage', sendParams('slow'))
  await waitUntil(() => fakePlatform.following() === 1, 'the stream begins')
  opened.leave()
  await waitUntil(() => fakePlatform.following() === 0, 'the stream ends')
  assert.equal((await rpc('GetTask', { id: 'task-1' })).json.result.status.state, 'TASK_STATE_WORKING')
})

test('closing the door ends its streams', async (t) => {
  const { stream, fakePlatform, door } = await openDoor(t)
  const opened = await stream('SendStreamingMessage', sendParams('slow'))
  await waitUntil(() => fakePlatform.following() === 1, 'the stream begins')
  await door.close()
  assert.equal(await opened.ended, 'ended')
  assert.equal(fakePlatform.following(), 0)
})

test('comments keep a quiet stream alive', async (t) => {
  const { stream, fakePlatform } = await openDoor(t, {
    sseLimits: { keepAliveMs: 5, unsentBytesMax: 1000, unsentMs: 1000 },
  })
  const opened = await stream('SendStreamingMessage', sendParams('slow'))
  await waitUntil(() => opened.comments() >= 3, 'comments arrive')
  fakePlatform.finish('task-1')
  assert.equal(await opened.ended, 'ended')
})

test('RE-3 a reader that reads nothing is disconnected, and gets the rest when it reconnects', async (t) => {
  const limits = { keepAliveMs: 15_000, unsentBytesMax: 1024 * 1024, unsentMs: 500 }
  const { stream, fakePlatform } = await openDoor(t, { sseLimits: limits })
  const opened = await stream('SendStreamingMessage', sendParams('slow'))
  await waitUntil(() => opened.events.length === 1, 'the task arrives')
  opened.pause()
  const chunk = 'x'.repeat(4 * 1024 * 1024)
  for (let count = 0; count < 8; count++) fakePlatform.addLogRow('task-1', [delta(`${count}${chunk}`)])
  await waitUntil(() => fakePlatform.following() === 0, 'the stream ends')
  opened.leave()
  fakePlatform.finish('task-1')
  const headers = { 'last-event-id': opened.events.at(-1)?.id ?? '' }
  const rest = await stream('SubscribeToTask', { id: 'task-1' }, { headers })
  assert.equal(await rest.ended, 'ended')
  const texts = rest.events.flatMap(({ data }) => data.result.artifactUpdate?.artifact.parts[0].text[0] ?? [])
  assert.deepEqual(texts.join(''), '01234567s')
})

test('PL-12 revoking a token ends its streams', async (t) => {
  const { stream, fakePlatform } = await openDoor(t)
  const { id, secret } = await fakePlatform.tokens.create({ name: 'gone', role: 'member' })
  const opened = await stream('SendStreamingMessage', sendParams('slow'), { token: secret })
  await waitUntil(() => opened.events.length === 1, 'the task arrives')
  await fakePlatform.tokens.revoke(id)
  await opened.ended
  assert.equal(opened.events.length, 1)
})

const READER = { principal: 'people' }
const chunk = (text: string): StreamResponse => ({
  artifactUpdate: {
    taskId: 'task-1',
    contextId: 'c',
    append: true,
    lastChunk: false,
    artifact: { artifactId: 'reply', parts: [{ text }] },
  },
})

/** Tasks in memory; the first has the number 1 for its first row. */
function openTasks() {
  const { reception, addLogRow, finish, readResults } = createFakePlatform()
  const admit = (text: string) =>
    reception.admit({
      id: text,
      workspaceId: WORKSPACE_ID,
      principal: 'people',
      bytes: 1,
      envelope: { message: { messageId: text, role: 'ROLE_USER', parts: [{ text }] } },
    } as unknown as Letter)
  const open = (changes: Partial<OpenStreamOptions> = {}, of: Reception = reception) =>
    openStream(of, {
      taskId: 'task-1',
      reader: READER,
      view: {},
      lastEventId: undefined,
      isSubscription: false,
      ...changes,
    })
  return { reception, admit, addLogRow, finish, readResults, open }
}

async function eventsOf(stream: TaskStream, reception: Reception, signal = new AbortController().signal) {
  const make = (event: StreamResponse, seq: number, seen: number) =>
    `${seq}.${seen} ${Object.keys(event)[0]} ${event.artifactUpdate?.artifact.parts[0]?.text ?? ''}`.trim()
  const events: string[] = []
  for await (const event of taskEvents(stream, make, { reception, signal })) events.push(event)
  return events
}

test('PL-5 a cursor before the rows that are kept begins the stream anew', async () => {
  const { admit, open, addLogRow, reception } = openTasks()
  await admit('slow')
  for (const text of ['a', 'b', 'c']) addLogRow('task-1', [chunk(text)])
  const from = (firstSeq: number, lastSeq?: number): Reception => ({
    ...reception,
    async snapshot(id, view) {
      const found = await reception.snapshot(id, view)
      return found && { ...found, firstSeq, ...(lastSeq !== undefined && { lastSeq }) }
    },
  })
  const resumes = async (lastEventId: string, of: Reception) => (await open({ lastEventId }, of)).snapshot === undefined
  assert.deepEqual(
    [await resumes('2.1', from(3)), await resumes('3.1', from(3)), await resumes('3.0', from(3))],
    [...[false, true, false]],
  )
  assert.deepEqual([await resumes('3.1', from(0, 2)), await resumes('2.1', from(0, 2))], [false, true])
})

test('BK-2 the reader of a whole stream has read the result; one that left has not', async () => {
  const { admit, open, reception, readResults } = openTasks()
  await admit('hello')
  const views: (TaskView | undefined)[] = []
  const noting: Reception = {
    ...reception,
    task(id, view) {
      views.push(view)
      return reception.task(id, view)
    },
  }
  await eventsOf(await open(), noting)
  assert.deepEqual([readResults, views], [[], []])
  const conversation = await open({ reader: { principal: 'ws:a/c', conversationId: 'c' } })
  await eventsOf(conversation, noting, AbortSignal.abort())
  assert.deepEqual([readResults, views], [[], []])
  await eventsOf(conversation, noting)
  assert.deepEqual(
    [readResults.map(([taskId]) => taskId), views],
    [['task-1'], [{ historyLength: 0, artifacts: false }]],
  )
  const pruned: Reception = { ...reception, task: async () => undefined }
  await eventsOf(conversation, pruned)
  assert.equal(readResults.length, 1)
})
