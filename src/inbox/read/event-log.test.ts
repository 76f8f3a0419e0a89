import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { NOON_MS, openStoredRows, replyOf } from '../../../test/fakes/stored-rows.ts'
import { together } from '../../store/store.ts'
import { type Change, type LogItem, readLog, recordChange } from './event-log.ts'
import { createLogWire } from './log-wire.ts'

const TASK = { id: 't1', contextId: 'c1' }
const KIB = 1024
const itemsOf = (...items: LogItem[]) => JSON.stringify(items)
const text = (delta: string): LogItem => ({ t: 'turn', event: { type: 'text', delta } })
const working: LogItem = { t: 'status', state: 'TASK_STATE_WORKING' }
/** Items of exactly so many bytes. */
const large = (bytes: number, ...items: LogItem[]) =>
  itemsOf(...items, text('x'.repeat(bytes - itemsOf(...items, text('')).length)))

async function openLog(t: TestContext) {
  const rows = await openStoredRows(t)
  const read = async (afterSeq = 0) => {
    const wire = createLogWire()
    return (await rows.store.read(() => readLog(TASK.id, afterSeq))).map((row) => wire.toEntry(TASK, row))
  }
  const seqs = async (afterSeq = 0) => (await read(afterSeq)).map(({ seq }) => seq)
  const events = (count: number, more: object = {}) =>
    rows.add({
      events: Array.from({ length: count }, (_, index) => ({
        seq: index + 1,
        task_id: 't1',
        message_id: 'm1',
        items: itemsOf(working),
        ...more,
      })),
    })
  return { ...rows, read, seqs, events }
}

test('a change adds to the counters of its workspace, and its rows get the numbers that it took', async (t) => {
  const { add, store, sql } = await openLog(t)
  const load = { running: 1, suspended: 1, waiting: 1, seq: 5 }
  await add({
    workspace_load: [
      { workspace_id: 'ws_0', ...load, seq: 50 },
      { workspace_id: 'ws_1', ...load },
    ],
  })
  const record = (change: Omit<Change, 'workspaceId'>) =>
    store.write(() => together(recordChange({ workspaceId: 'ws_1', ...change })))
  const loads = () => sql('select running, suspended, waiting, seq from workspace_load order by workspace_id')
  await record({})
  assert.deepEqual(await loads(), [{ ...load, seq: 50 }, load])
  await record({ running: 1, suspended: 2, waiting: 3 })
  assert.deepEqual(await loads(), [
    { ...load, seq: 50 },
    { running: 2, suspended: 3, waiting: 4, seq: 5 },
  ])
  await record({
    entries: [
      { taskId: 't1', messageId: 'm1', items: [text('he'), text('llo')] },
      { taskId: 't1', items: [text('he'), working] },
      { items: [{ t: 'turn', event: { type: 'tool', name: 'Read', state: 'started' } }] },
    ],
  })
  assert.deepEqual(
    (await loads()).map(({ seq }) => seq),
    [50, 8],
  )
  const row = { workspace_id: 'ws_1', at_ms: NOON_MS, delta: 0, task_id: 't1', message_id: null }
  assert.deepEqual(
    await sql('select workspace_id, seq, at_ms, delta, task_id, message_id, items from events order by seq'),
    [
      { ...row, seq: 6, delta: 1, message_id: 'm1', items: itemsOf(text('he'), text('llo')) },
      { ...row, seq: 7, items: itemsOf(text('he'), working) },
      {
        ...row,
        seq: 8,
        task_id: null,
        items: '[{"t":"turn","event":{"type":"tool","name":"Read","state":"started"}}]',
      },
    ],
  )
})

const ARTIFACT = { artifactId: 'a1', parts: [{ text: 'file' }] }
const ITEMS: readonly LogItem[] = [
  working,
  { t: 'status', state: 'TASK_STATE_FAILED', parts: [{ text: 'it broke' }], code: 'exit', detail: 'secret' },
  { t: 'reset' },
  text('he'),
  { t: 'turn', event: { type: 'artifact', artifact: ARTIFACT, append: true, lastChunk: false } },
  { t: 'turn', event: { type: 'tool', name: 'Read', state: 'started' } },
  { t: 'turn', event: { type: 'status', text: 'it reads' } },
  { t: 'turn', event: { type: 'status', text: 'it reads', said: { parts: [{ text: 'reading' }] } } },
  { t: 'late', parts: [] },
  { t: 'note', type: 'x', text: 'x', by: 'x' },
  { t: 'reply' },
]

test('the items of a row become events on the wire, numbered by their place in the row', async (t) => {
  const { add, read } = await openLog(t)
  const metadata = { model: 'm' }
  await add({
    messages: [
      { id: 'm1', reply: JSON.stringify({ parts: [{ text: 'hello' }], artifacts: [], metadata }) },
      { id: 'm2', n: 2, reply: JSON.stringify({ parts: [], artifacts: [ARTIFACT] }) },
      { id: 'm3', n: 3 },
    ],
    events: [
      { seq: 4, task_id: 't1', message_id: 'm1', items: itemsOf(...ITEMS) },
      { seq: 5, task_id: 't1', message_id: 'm2', items: itemsOf({ t: 'reply' }) },
      { seq: 6, task_id: 't1', message_id: 'm3', items: itemsOf({ t: 'reply' }) },
    ],
  })
  const ids = { taskId: 't1', contextId: 'c1' }
  const timestamp = new Date(NOON_MS).toISOString()
  const agent = (index: number, words: string) => ({
    messageId: `t1.4.${index}`,
    ...ids,
    role: 'ROLE_AGENT',
    parts: [{ text: words }],
  })
  const status = (state: string, message?: object) => ({
    statusUpdate: { ...ids, status: { state, ...(message && { message }), timestamp } },
  })
  const reply = (more: object, append: boolean, lastChunk: boolean) => ({
    artifactUpdate: { ...ids, artifact: { artifactId: 'reply-m1', ...more }, append, lastChunk },
  })
  const wire = [
    status('TASK_STATE_WORKING'),
    status('TASK_STATE_FAILED', { ...agent(1, 'it broke'), metadata: { code: 'exit' } }),
    reply({ parts: [] }, false, false),
    reply({ parts: [{ text: 'he' }] }, false, false),
    { artifactUpdate: { ...ids, artifact: ARTIFACT, append: true, lastChunk: false } },
    status('TASK_STATE_WORKING', agent(7, 'reading')),
    reply({ parts: [{ text: 'llo' }], metadata }, true, true),
  ]
  assert.deepEqual(await read(), [
    { seq: 4, atMs: NOON_MS, wire },
    { seq: 5, atMs: NOON_MS, wire: [] },
    { seq: 6, atMs: NOON_MS, wire: [] },
  ])
})

test('a page of a task has 256 of its own rows after the cursor', async (t) => {
  const { add, events, seqs } = await openLog(t)
  await add({ messages: [{ id: 'm1' }, { id: 'm2', n: 2 }] })
  await events(258)
  await events(3, { task_id: 't2', workspace_id: 'ws_2' })
  assert.deepEqual(
    await seqs(),
    Array.from({ length: 256 }, (_, index) => index + 1),
  )
  assert.deepEqual([await seqs(256), await seqs(257), await seqs(258)], [[257, 258], [258], []])
})

test('a page of a task has at most 256 KiB of rows and replies, and at least one row', async (t) => {
  const { add, events, seqs, sql } = await openLog(t)
  await add({ messages: [{ id: 'm1' }, { id: 'm2', n: 2, reply: replyOf('x'.repeat(200 * KIB)) }] })
  await events(3, { items: large(128 * KIB) })
  assert.deepEqual(await seqs(), [1, 2])
  await sql('update events set items = $1 where seq < 3', large(128 * KIB, { t: 'reply' }))
  assert.deepEqual(await seqs(), [1, 2])
  await sql('update events set items = $1', large(300 * KIB))
  assert.deepEqual(await seqs(), [1])
  await sql('update events set message_id = $1, items = $2', 'm2', itemsOf({ t: 'reply' }))
  assert.deepEqual([await seqs(), await seqs(1)], [[1], [2]])
  // Rows that do not show the reply of their message are small.
  await sql('update events set items = $1', itemsOf(working))
  assert.deepEqual(await seqs(), [1, 2, 3])
})
