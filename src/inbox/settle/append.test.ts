/** What a running turn reports, row by row: its begin, its events and notes, and that it is alive. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { keyOf, openInboxRows, START_MS } from '../../../test/harness/inbox-rows.ts'
import type { LeaseKey, NumberedEvents, TurnEvent } from '../inbox.ts'

const text = (delta: string): TurnEvent => ({ type: 'text', delta })

/** A turn in every state, and messages that do not run. */
async function openTurns(t: TestContext) {
  const rows = openInboxRows(t)
  await rows.workspace('w')
  await rows.message('first', { state: 'leased', lease_epoch: 7 })
  await rows.bystanders()
  await rows.message('new', { state: 'leased', begun: 0 })
  await rows.message('begun', { state: 'leased', appended: 1 })
  await rows.message('waiting', { state: 'leased', suspended: 1 })
  await rows.message('stopping', { state: 'stopping', begun: 0 })
  await rows.message('stopped-wait', { state: 'stopping', suspended: 1 })
  let answer: unknown
  const after = (work: () => Promise<unknown>) => rows.changes(async () => (answer = await work()))
  const { inbox } = rows.local
  return {
    ...rows,
    begin: (key: LeaseKey, line?: string) => after(() => inbox.begin(key, line)),
    append: (key: LeaseKey, events: NumberedEvents) => after(() => inbox.append(key, events)),
    extend: (...keys: LeaseKey[]) => after(() => inbox.extend(keys)),
    answer: () => answer,
  }
}

const eventOf = (id: string, { events, delta = 0 }: { events: readonly TurnEvent[]; delta?: number }) => ({
  task_id: id,
  message_id: id,
  at_ms: START_MS,
  delta,
  items: events.map((event) => ({ t: 'turn', event })),
})

test('CN-4 a turn begins once, with a line for the log or without; a cancelled turn does not begin', async (t) => {
  const { begin, answer, message, hints } = await openTurns(t)
  await message('quiet', { state: 'leased', begun: 0 })
  const events = [{ type: 'status', text: 'started on laptop' } as const]
  assert.deepEqual(await begin(keyOf('new'), 'started on laptop'), {
    'workspace_load w': { seq: 1 },
    'messages new': { begun: 1 },
    'events w 1': eventOf('new', { events }),
  })
  assert.deepEqual([answer(), hints()], ['held', ['w']])
  assert.deepEqual(await begin(keyOf('quiet')), { 'messages quiet': { begun: 1 } })
  assert.deepEqual(await begin(keyOf('new'), 'again'), {})
  assert.equal(answer(), 'held')
  assert.deepEqual(await begin(keyOf('stopping'), 'late'), {})
  assert.equal(answer(), 'stop')
})

test('IN-3 every report of a lease with another epoch, or of a message that does not run, is stale', async (t) => {
  const { begin, append, extend, answer } = await openTurns(t)
  for (const key of [keyOf('new', { epoch: 2 }), keyOf('w-queued'), keyOf('w-done'), keyOf('none')]) {
    assert.deepEqual(await begin(key, 'x'), {})
    assert.equal(answer(), 'stale')
    assert.deepEqual(await append(key, { from: 1, events: [text('x')], notes: { a: '1' } }), {})
    assert.equal(answer(), 'stale')
    assert.deepEqual(await extend(key), {})
    assert.deepEqual(answer(), ['stale'])
  }
})

test('IN-10 events that were appended before add nothing, and the first events begin the turn', async (t) => {
  const { append, answer } = await openTurns(t)
  assert.deepEqual(await append(keyOf('new'), { from: 1, events: [text('a'), text('b')] }), {
    'workspace_load w': { seq: 1 },
    'messages new': { begun: 1, appended: 2 },
    'events w 1': eventOf('new', { events: [text('a'), text('b')], delta: 1 }),
  })
  assert.equal(answer(), 'held')
  assert.deepEqual(await append(keyOf('new'), { from: 1, events: [text('a'), text('b')] }), {})
  const more = await append(keyOf('new'), { from: 2, events: [text('b'), text('c')] })
  assert.deepEqual(more, {
    'workspace_load w': { seq: 2 },
    'messages new': { appended: 3 },
    'events w 2': eventOf('new', { events: [text('c')], delta: 1 }),
  })
  const stopped = await append(keyOf('stopping'), { from: 1, events: [] })
  assert.deepEqual(stopped, { 'messages stopping': { begun: 1 } })
  assert.equal(answer(), 'stop')
})

test('IN-10 notes are kept for their message, the last value of each key', async (t) => {
  const { append, plant } = await openTurns(t)
  const note = { message_id: 'other', key: 'a', value: '0', task_id: 'other', workspace_id: 'w' }
  await plant('turn_notes', note)
  const added = await append(keyOf('begun'), { from: 2, events: [], notes: { a: '1', b: '2' } })
  assert.deepEqual(added, {
    'turn_notes begun a': { value: '1', task_id: 'begun', workspace_id: 'w' },
    'turn_notes begun b': { value: '2', task_id: 'begun', workspace_id: 'w' },
  })
  const replaced = await append(keyOf('begun'), { from: 2, events: [], notes: { a: '3' } })
  assert.deepEqual(replaced, { 'turn_notes begun a': { value: '3' } })
})

test('IN-3 a renewal moves the end of its own lease, and says whether the turn waits or must stop', async (t) => {
  const { extend, answer, clock } = await openTurns(t)
  clock.advance(7)
  const keys = ['begun', 'waiting', 'stopping', 'stopped-wait'].map((id) => keyOf(id))
  const until = { lease_until: START_MS + 30_007 }
  const renewed = Object.fromEntries(keys.map(({ conversationId }) => [`conversations ${conversationId}`, until]))
  assert.deepEqual(await extend(...keys), renewed)
  assert.deepEqual(answer(), ['held', 'waiting', 'stop', 'stop'])
})
