import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFakePlatform, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import type { Letter, Reception, TaskView } from '../../../inbox/reception.ts'
import type { StreamResponse } from '../../../protocol/a2a.ts'
import { type OpenStreamOptions, openStream, type TaskStream, taskEvents } from './streams.ts'

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

test('PL-5 a stream begins with the task and goes on after the rows that the task contains', async () => {
  const { admit, open, addLogRow, finish, reception } = openTasks()
  await admit('slow')
  const stream = await open()
  assert.deepEqual([stream.from, stream.untilFinal, stream.snapshot?.id], [{ seq: 2, seen: 0 }, false, 'task-1'])
  addLogRow('task-1', [chunk('a'), chunk('b')])
  addLogRow('task-1', [chunk('c')])
  finish('task-1')
  assert.deepEqual(await eventsOf(stream, reception), [
    ...['2.0 task', '2.1 artifactUpdate a', '2.2 artifactUpdate b', '3.1 artifactUpdate c'],
    ...['4.1 artifactUpdate slow', '4.2 statusUpdate'],
  ])
})

test('PL-5 a reader resumes after each event that it has seen, and gets no task again', async () => {
  const { admit, open, addLogRow, finish, reception } = openTasks()
  await admit('slow')
  addLogRow('task-1', [chunk('a'), chunk('b')])
  addLogRow('task-1', [chunk('c')])
  finish('task-1')
  const all = ['1.1', '2.1', '2.2', '3.1', '4.1', '4.2']
  for (const [index, lastEventId] of all.entries())
    for (const isSubscription of [true, false]) {
      const stream = await open({ lastEventId, isSubscription })
      assert.deepEqual([stream.snapshot, stream.untilFinal], [undefined, isSubscription])
      const ids = (await eventsOf(stream, reception)).map((event) => event.split(' ')[0])
      assert.deepEqual(ids, all.slice(index + 1), lastEventId)
    }
  const atStart = await open({ lastEventId: '5.0', isSubscription: true })
  assert.deepEqual([atStart.snapshot, await eventsOf(atStart, reception)], [undefined, []])
})

test('PL-5 a cursor that is not in the log of the task begins the stream anew', async () => {
  const { admit, open } = openTasks()
  await admit('slow')
  await admit('other')
  const unknown = [
    '0.0',
    '0.1',
    '1.0',
    '2.1',
    '3.1',
    '9.1',
    '3.0',
    'x',
    '1',
    '1.1x',
    '-1.1',
    '1234567890123456.1',
    '1.1234567890',
  ]
  for (const lastEventId of unknown) {
    const stream = await open({ lastEventId })
    assert.deepEqual([stream.snapshot?.id, stream.from], ['task-1', { seq: 2, seen: 0 }], lastEventId)
  }
  for (const lastEventId of ['1.1', '2.0', '1.123456789'])
    assert.equal((await open({ lastEventId })).snapshot, undefined, lastEventId)
})

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

test('PL-5 without a cursor a subscription to an ended task is refused; a send to one shows it', async () => {
  const { admit, open } = openTasks()
  await admit('hello')
  await assert.rejects(open({ isSubscription: true }), {
    code: 'unsupported_operation',
    message: 'task task-1 has ended; there is nothing to subscribe to',
  })
  assert.equal((await open()).snapshot?.status.state, 'TASK_STATE_COMPLETED')
  await assert.rejects(open({ taskId: 'nope' }), { code: 'not_found', message: 'there is no task nope' })
  await admit('slow')
  assert.equal((await open({ taskId: 'task-2', isSubscription: true })).untilFinal, true)
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
