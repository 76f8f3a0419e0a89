import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { countingContext } from '../../../test/fakes/inbox-context.ts'
import { envelopeOf, NOON_MS, openStoredRows, replyOf } from '../../../test/fakes/stored-rows.ts'
import { MoleculeError } from '../../errors.ts'
import { createActivity } from './activity.ts'
import type { LogItem } from './event-log.ts'

async function openActivity(t: TestContext) {
  const rows = await openStoredRows(t)
  const context = countingContext(rows)
  await rows.add({
    workspace_load: [
      { workspace_id: 'ws_1', seq: 9 },
      { workspace_id: 'ws_2', seq: 5 },
    ],
  })
  const activity = createActivity(context)
  /** Stores notes under these numbers. */
  const notes = (seqs: readonly number[], more: object = {}) =>
    rows.add({ events: seqs.map((seq) => ({ seq, items: itemsOf(note(`note ${seq}`)), ...more })) })
  const read = async (query: object) => {
    const { entries, ...page } = await activity.read({ workspaceId: 'ws_1', sinceSeq: 0, limit: 10, ...query })
    return { ...page, seqs: entries.map(({ seq }) => seq) }
  }
  return { ...rows, context, activity, notes, read }
}

const itemsOf = (...items: LogItem[]) => JSON.stringify(items)
const note = (text: string, type = 'note'): LogItem => ({ t: 'note', type, text, by: 'me' })
const hasCode = (code: string) => (error: unknown) => error instanceof MoleculeError && error.code === code
const answerer = { name: 'Ana', principal: 'people', door: 'http' }
const long = 'x'.repeat(501)
const cut = `${'x'.repeat(499)}…`

/** Every kind of item, and the entry that people read. */
const KINDS: readonly (readonly [LogItem, object | undefined])[] = [
  [
    { t: 'status', state: 'TASK_STATE_WORKING' },
    { type: 'status', state: 'TASK_STATE_WORKING' },
  ],
  [
    { t: 'status', state: 'TASK_STATE_FAILED', parts: [{ text: 'it ' }, { data: 1 }, { text: 'broke' }] },
    { type: 'status', state: 'TASK_STATE_FAILED', text: 'it broke' },
  ],
  [{ t: 'reset' }, { type: 'retry' }],
  [{ t: 'reply' }, { type: 'reply', text: 'the reply' }],
  [
    { t: 'late', parts: [{ text: long }] },
    { type: 'late', text: cut },
  ],
  [note('text', 'deployed'), { type: 'deployed', text: 'text', by: 'me' }],
  [
    { t: 'permission', decision: 'denied', tool: 'Bash' },
    { type: 'permission', name: 'Bash', text: 'denied: no answer came in time' },
  ],
  [
    { t: 'permission', decision: 'denied', tool: 'Bash', answerer },
    { type: 'permission', name: 'Bash', text: 'denied', by: 'Ana', principal: 'people', door: 'http' },
  ],
  [
    { t: 'permission', decision: 'allowed', tool: 'Bash', answerer, pattern: long },
    {
      type: 'permission',
      name: 'Bash',
      text: 'allowed by rule',
      subject: cut,
      by: 'Ana',
      principal: 'people',
      door: 'http',
    },
  ],
  [
    { t: 'rule', change: 'made', tool: 'Bash', pattern: long, answerer },
    { type: 'rule', name: 'Bash', subject: cut, text: 'made', by: 'Ana', principal: 'people', door: 'http' },
  ],
  [
    { t: 'delegated', taskId: 't2', workspace: 'painter' },
    { type: 'delegated', name: 'painter', subject: 't2' },
  ],
  [
    { t: 'budget', step: 'asked', text: 'spent' },
    { type: 'budget', name: 'asked', text: 'spent' },
  ],
  [
    { t: 'budget', step: 'raised', text: 'more', by: 'Ana' },
    { type: 'budget', name: 'raised', text: 'more', by: 'Ana' },
  ],
  [
    { t: 'turn', event: { type: 'tool', name: 'Read', state: 'started', subject: 'a' } },
    { type: 'tool', name: 'Read', state: 'started', subject: 'a' },
  ],
  [
    { t: 'turn', event: { type: 'status', text: long } },
    { type: 'progress', text: cut },
  ],
  [
    {
      t: 'turn',
      event: { type: 'artifact', artifact: { artifactId: 'a1', parts: [] }, append: false, lastChunk: true },
    },
    { type: 'artifact', name: 'a1' },
  ],
  [
    {
      t: 'turn',
      event: {
        type: 'artifact',
        artifact: { artifactId: 'a1', name: 'a.txt', parts: [] },
        append: true,
        lastChunk: true,
      },
    },
    { type: 'artifact', name: 'a.txt' },
  ],
  [
    {
      t: 'turn',
      event: { type: 'artifact', artifact: { artifactId: 'a1', parts: [] }, append: false, lastChunk: false },
    },
    undefined,
  ],
]

test('PL-6 each kind of log item is an entry that people can read; text deltas are for followers only', async (t) => {
  const { add, activity } = await openActivity(t)
  const text: LogItem = { t: 'turn', event: { type: 'text', delta: 'he' } }
  await add({
    messages: [
      { id: 't1', reply: replyOf('the reply') },
      { id: 't2', n: 2, reply: replyOf('another reply') },
    ],
    events: [
      { seq: 4, at_ms: 7, task_id: 't1', message_id: 't1', items: itemsOf(...KINDS.map(([item]) => item), text) },
      { seq: 5, at_ms: 8, items: itemsOf({ t: 'reply' }, note('of the workspace')) },
    ],
  })
  const entries = KINDS.flatMap(([, body]) => (body ? [{ seq: 4, atMs: 7, taskId: 't1', ...body }] : []))
  const others = [
    { seq: 5, atMs: 8, type: 'reply' },
    { seq: 5, atMs: 8, type: 'note', text: 'of the workspace', by: 'me' },
  ]
  assert.deepEqual(await activity.read({ workspaceId: 'ws_1', sinceSeq: 0, limit: 100 }), {
    entries: [...entries, ...others],
    nextSeq: 5,
    firstSeq: 4,
  })
  assert.deepEqual(await activity.page('ws_1', 0), [
    { seq: 4, entries: [...entries, { seq: 4, atMs: 7, taskId: 't1', type: 'text', text: 'he' }] },
    { seq: 5, entries: others },
  ])
})

test('PL-6 pages go forward from a cursor or back from the end, and have only rows of that workspace', async (t) => {
  const { notes, read } = await openActivity(t)
  await notes([1, 2, 4, 5])
  await notes([3], { delta: 1 })
  await notes([1, 2, 3, 4, 5, 6, 7], { workspace_id: 'ws_2' })
  assert.deepEqual(await read({}), { seqs: [1, 2, 4, 5], firstSeq: 1, nextSeq: 5 })
  assert.deepEqual(await read({ limit: 2 }), { seqs: [1, 2], firstSeq: 1, nextSeq: 2 })
  assert.deepEqual(await read({ sinceSeq: 2 }), { seqs: [4, 5], firstSeq: 4, nextSeq: 5 })
  assert.deepEqual(await read({ sinceSeq: 5 }), { seqs: [], nextSeq: 5 })
  assert.deepEqual(await read({ beforeSeq: 5 }), { seqs: [1, 2, 4], firstSeq: 1, nextSeq: 4 })
  assert.deepEqual(await read({ newest: true, limit: 2 }), { seqs: [4, 5], firstSeq: 4, nextSeq: 5 })
  assert.deepEqual(await read({ newest: true, limit: 2, beforeSeq: 4 }), { seqs: [1, 2], firstSeq: 1, nextSeq: 2 })
  assert.deepEqual(await read({ newest: true, limit: 9, sinceSeq: 2 }), { seqs: [4, 5], firstSeq: 4, nextSeq: 5 })
})

test('PL-6 entries of one row stay together, and a type is searched in more rows than are shown', async (t) => {
  const { add, read } = await openActivity(t)
  const deployed = note('x', 'deployed')
  await add({
    events: [
      { seq: 1, items: itemsOf(note('x'), deployed, note('x')) },
      { seq: 2, items: itemsOf(note('x')) },
      { seq: 3, items: itemsOf(deployed) },
      { seq: 4, items: itemsOf(deployed) },
    ],
  })
  assert.deepEqual(await read({ limit: 2 }), { seqs: [1, 1, 1], firstSeq: 1, nextSeq: 1 })
  assert.deepEqual(await read({ limit: 4 }), { seqs: [1, 1, 1, 2], firstSeq: 1, nextSeq: 2 })
  assert.deepEqual(await read({ limit: 2, newest: true }), { seqs: [3, 4], firstSeq: 3, nextSeq: 4 })
  assert.deepEqual(await read({ limit: 3, newest: true }), { seqs: [2, 3, 4], firstSeq: 2, nextSeq: 4 })
  assert.deepEqual(await read({ limit: 4, newest: true }), { seqs: [1, 1, 1, 2, 3, 4], firstSeq: 1, nextSeq: 4 })
  assert.deepEqual(await read({ limit: 2, type: 'deployed' }), { seqs: [1, 3], firstSeq: 1, nextSeq: 3 })
  assert.deepEqual(await read({ limit: 2, type: 'text' }), { seqs: [], firstSeq: 1, nextSeq: 4 })
  assert.deepEqual(await read({ limit: 3, type: 'deployed', newest: true }), {
    seqs: [3, 4],
    firstSeq: 2,
    nextSeq: 4,
  })
})

test('PL-6 a search by type looks at 2000 rows, and the reader goes on from there', async (t) => {
  const { notes, read, sql } = await openActivity(t)
  await sql(
    `insert into events (workspace_id, seq, at_ms, items) with recursive k (seq) as
       (select 1 union all select seq + 1 from k where seq < 2000) select 'ws_1', seq, 0, $1 from k`,
    itemsOf({ t: 'reset' }),
  )
  await notes([2001, 2002])
  assert.deepEqual(await read({ type: 'note' }), { seqs: [], firstSeq: 1, nextSeq: 2000 })
  assert.deepEqual(await read({ type: 'note', sinceSeq: 2000 }), { seqs: [2001, 2002], firstSeq: 2001, nextSeq: 2002 })
})

test('PL-6 a page has the first words of the message of each task where they are wanted', async (t) => {
  const { add, notes, activity } = await openActivity(t)
  await add({ messages: [{ id: 't1', envelope: envelopeOf('paint\n it') }] })
  await notes([1, 2], { task_id: 't1' })
  await notes([3])
  const query = { workspaceId: 'ws_1', sinceSeq: 0, limit: 10 }
  const { titles } = await activity.read({ ...query, withTitles: true })
  assert.deepEqual([...(titles ?? [])], [['t1', 'paint it']])
  assert.equal((await activity.read({ ...query, withTitles: false })).titles, undefined)
  assert.equal((await activity.read(query)).titles, undefined)
})

test('PL-6 a cursor is valid from the pruned number on, and 0 always is', async (t) => {
  const { activity, sql, read } = await openActivity(t)
  await sql(`update workspace_load set pruned_seq = 4 where workspace_id = 'ws_1'`)
  const resolved = (afterSeq?: number) => activity.resolveCursor('ws_1', afterSeq)
  assert.deepEqual([await resolved(), await resolved(0), await resolved(4), await resolved(5)], [9, 0, 4, 5])
  for (const seq of [1, 3]) {
    await assert.rejects(resolved(seq), {
      code: 'pruned',
      details: { prunedSeq: 4 },
      message: `the log is no longer kept from ${seq} to 4: start again without since`,
    })
  }
  await assert.rejects(read({ sinceSeq: 3 }), hasCode('pruned'))
  assert.equal(await activity.resolveCursor('ws_2', 3), 3)
  await assert.rejects(activity.resolveCursor('ws_9', 0), hasCode('not_found'))
  assert.deepEqual([...(await activity.heads())].sort(), [
    ['ws_1', 9],
    ['ws_2', 5],
  ])
})

test('PL-6 a note gets the next number of its workspace and wakes readers here and in other processes', async (t) => {
  const { activity, context, sql } = await openActivity(t)
  const changed: (string | undefined)[] = []
  const stop = activity.onChange((id) => changed.push(id))
  assert.equal(await activity.addNote('ws_1', { type: 'deployed', text: 'x', by: 'ci' }), 10)
  assert.deepEqual([changed, context.hints], [['ws_1'], [['ws_1']]])
  const [event] = await sql('select workspace_id, seq, at_ms, task_id, delta, items from events')
  assert.deepEqual(event, {
    workspace_id: 'ws_1',
    seq: 10,
    at_ms: NOON_MS,
    task_id: null,
    delta: 0,
    items: '[{"t":"note","type":"deployed","text":"x","by":"ci"}]',
  })
  assert.deepEqual([...(await activity.heads())].sort(), [
    ['ws_1', 10],
    ['ws_2', 5],
  ])
  context.watchers.changed('a task')
  context.watchers.changedElsewhere()
  assert.deepEqual(changed, ['ws_1', undefined])
  stop()
  context.watchers.changed('ws_1')
  assert.equal(changed.length, 2)
  await assert.rejects(activity.addNote('ws_9', { type: 'x', text: 'x', by: 'x' }), hasCode('not_found'))
})
