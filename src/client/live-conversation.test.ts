import assert from 'node:assert/strict'
import { test } from 'node:test'
import { present } from '../../test/harness/present.ts'
import {
  applyEvents,
  type ChatMessageView,
  ENTRIES_MAX,
  withNewer,
  withNewest,
  withOlder,
  withRefreshed,
} from './live-conversation.ts'
import type { ChatView } from './views.ts'

const message = (n: number, more: Partial<ChatMessageView> = {}): ChatMessageView => ({
  id: `m${n}`,
  task_id: `t${n}`,
  n,
  sender_message_id: `s${n}`,
  sender: { kind: 'person', id: 'p', name: 'Ana', door: 'http' },
  text: `text ${n}`,
  attachments: [],
  state: 'answered',
  sent_at: '2026-11-16T10:00:00.000Z',
  tools: [],
  ...more,
})

const page = (messages: readonly ChatMessageView[], seq: number): ChatView => ({
  id: 'c1',
  context_id: 'x',
  principal: 'people',
  messages,
  seq,
  has_newer: false,
  ...((messages[0]?.n ?? 1) > 1 && { before: messages[0]?.n ?? 1 }),
})

const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_each, index) => message(first + index))

const at = '2026-11-16T10:00:01.000Z'
const textEvent = (seq: number, text: string) => ({ seq, at, type: 'text', task_id: 't1', text })

test('CV-2 pieces of an answer are applied once, also when the page was read between them', () => {
  const read = withNewest(undefined, page([message(1, { state: 'running' })], 10))
  const events = [textEvent(9, 'old '), textEvent(11, 'a'), textEvent(11, 'b'), textEvent(12, 'c')]
  const { entries, isStale, changes } = applyEvents(read, events)
  const history = { ...read, entries }
  assert.equal(history.entries[0]?.reply?.text, 'abc')
  assert.equal(isStale, false)
  assert.deepEqual(
    changes,
    ['a', 'b', 'c'].map((delta) => ({ type: 'text', delta })),
  )
  assert.equal(applyEvents(history, events).entries[0]?.reply?.text, 'abc')
  const partial = { text: 'ab', partial: true, artifacts: [] }
  const again = withNewest(history, page([message(1, { state: 'running', reply: partial })], 11))
  assert.equal(applyEvents(again, events).entries[0]?.reply?.text, 'abc')
})

test('CV-2 a new attempt removes the text so far, and any other event asks to read the page again', () => {
  const read = withNewest(undefined, page([message(1, { state: 'running' })], 10))
  const { entries } = applyEvents(read, [textEvent(11, 'half'), { seq: 12, at, type: 'retry', task_id: 't1' }])
  assert.equal(entries[0]?.reply, undefined)
  for (const type of ['status', 'reply', 'artifact', 'permission', 'delegated']) {
    assert.equal(applyEvents(read, [{ seq: 11, at, type, task_id: 't1' }]).isStale, true, type)
  }
  assert.equal(applyEvents(read, [{ seq: 11, at, type: 'note' }]).isStale, false)
})

test('CV-2 only an event of this conversation that its newest page does not contain asks to read the page again', () => {
  const read = withNewest(undefined, page([message(1)], 10))
  const isStale = (conversation_id: string | undefined, seq: number) =>
    applyEvents(read, [{ seq, at, type: 'status', task_id: 'unknown', conversation_id }]).isStale
  assert.deepEqual([isStale('c1', 11), isStale('c2', 11), isStale(undefined, 11)], [true, false, false])
  // A message far before the newest ones is on no page: reading again would bring nothing.
  assert.equal(isStale('c1', 10), false)
  assert.equal(applyEvents({ ...read, id: undefined }, [textEvent(11, 'a')]).isStale, false)
})

test('CV-2 a tool ends where it began, with its duration, and the message still waits for a person', () => {
  const read = withNewest(undefined, page([message(1, { state: 'waiting_for_you' })], 10))
  const tool = { at, type: 'tool', task_id: 't1', name: 'Bash', subject: 'make' }
  const { entries } = applyEvents(read, [
    { ...tool, seq: 11, state: 'started' },
    { ...tool, seq: 12, state: 'finished', at: '2026-11-16T10:00:03.500Z' },
  ])
  assert.deepEqual(present(entries[0]?.tools), [
    { name: 'Bash', subject: 'make', state: 'finished', at, duration_ms: 2500 },
  ])
  assert.equal(entries[0]?.state, 'waiting_for_you')
})

test('CV-2 pages join without a gap, and the number of messages on the page is bounded', () => {
  let history = withNewest(undefined, page(range(281, 300), 1))
  for (let first = 261; first > 100; first -= 20) history = withOlder(history, page(range(first, first + 19), 1))
  assert.equal(history.entries.length, ENTRIES_MAX)
  assert.deepEqual([history.hasOlder, history.hasNewer], [true, true])
  const numbers = () => history.entries.map(({ n }) => n)
  assert.deepEqual(
    numbers(),
    Array.from({ length: ENTRIES_MAX }, (_each, index) => 101 + index),
  )
  history = withNewer(history, page(range(251, 270), 2), false)
  assert.deepEqual([numbers().at(0), numbers().at(-1), history.hasNewer], [121, 270, true])
  history = withNewer(history, page(range(271, 300), 2), true)
  assert.deepEqual([numbers().at(-1), history.hasNewer], [300, false])
  history = withNewest(history, page(range(291, 310), 3))
  assert.deepEqual([numbers().at(0), numbers().at(-1)], [161, 310])
  // A gap is not shown as if there were none.
  history = withNewest(history, page(range(381, 400), 4))
  assert.deepEqual([numbers().at(0), history.hasOlder], [381, true])
  const refreshed = withRefreshed(history, page([message(390, { state: 'failed' }), message(500)], 9))
  assert.deepEqual([refreshed.entries.length, refreshed.entries[9]?.state], [20, 'failed'])
})
