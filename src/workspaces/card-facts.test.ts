import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openTestStore, START_MS } from '../../test/harness/sqlite-store.ts'
import type { Value } from '../store/store.ts'
import { createCardFacts, type NumberedWorkspace } from './card-facts.ts'

const DAY_MS = 24 * 3600_000
const MIDNIGHT_MS = START_MS - DAY_MS / 2
const NONE = {
  deadLetters: 0,
  questions: 0,
  deliveries: 0,
  damagedReplies: 0,
  budgets: 0,
  today: { turns: 0, unknownTurns: 0, costUsd: null },
}
function openFacts(t: TestContext) {
  const opened = openTestStore(t)
  let reads = 0
  const store: typeof opened.store = {
    ...opened.store,
    read(transaction) {
      reads += 1
      return opened.store.read(transaction)
    },
  }
  const insert = async (table: string, ...rows: Record<string, Value>[]) => {
    for (const row of rows) await opened.insert(table, row)
  }
  const add = createCardFacts(store)
  const numbered = (id: string, seq = 1): NumberedWorkspace => ({
    workspace: { id } as NumberedWorkspace['workspace'],
    seq,
    nowMs: opened.clock.nowMs(),
  })
  const card = async (id: string, seq?: number) => (await add([numbered(id, seq)]))[0]?.card
  return { ...opened, insert, add, numbered, card, countReads: () => reads }
}

test('CV-1 the card of a workspace without messages shows nothing', async (t) => {
  const { card } = openFacts(t)
  assert.deepEqual(await card('w'), NONE)
})

test('CV-1 a card counts the dead letters of its workspace that no person has handled', async (t) => {
  const { card, insert } = openFacts(t)
  const dead = { workspace_id: 'w', state: 'dead' }
  await insert('messages', dead, dead, { ...dead, workspace_id: 'other' }, { ...dead, state: 'done' })
  await insert('messages', { ...dead, replayed_as: 'm' }, { ...dead, discarded_at: 1 })
  assert.deepEqual(await card('w'), { ...NONE, deadLetters: 2 })
})

test('CV-1 a card counts the tasks of people that ask for an answer or a log-in, without the permissions', async (t) => {
  const { card, insert } = openFacts(t)
  const asking = { workspace_id: 'w', state: 'TASK_STATE_INPUT_REQUIRED' }
  await insert('tasks', { ...asking, id: 't1' }, { ...asking, id: 't2', state: 'TASK_STATE_AUTH_REQUIRED' })
  await insert('tasks', { ...asking, id: 't3', workspace_id: 'other' }, { ...asking, id: 't4', principal: 'token:1' })
  await insert('tasks', { ...asking, id: 't5', state: 'TASK_STATE_WORKING' }, { ...asking, id: 'permission' })
  await insert('asks', { message_id: 'm1', task_id: 'permission', state: 'open', tool: 'shell' })
  assert.deepEqual(await card('w'), { ...NONE, questions: 2 })
  // A permission that is answered, and a question without a tool, leave the task on the list.
  await insert('asks', { message_id: 'm2', task_id: 't1', state: 'answered', tool: 'shell' })
  await insert('asks', { message_id: 'm3', task_id: 't2', state: 'open' })
  assert.deepEqual(await card('w', 2), { ...NONE, questions: 2 })
})

test('CV-1 a card counts the answers that may not have arrived and that no person has handled', async (t) => {
  const { card, insert } = openFacts(t)
  const failed = { workspace_id: 'w', state: 'failed' }
  await insert('deliveries', { ...failed, id: '1' }, { ...failed, id: '2', state: 'unknown' })
  await insert('deliveries', { ...failed, id: '3', workspace_id: 'other' }, { ...failed, id: '4', state: 'sent' })
  await insert('deliveries', { ...failed, id: '5', finished_at: 1 })
  assert.deepEqual(await card('w'), { ...NONE, deliveries: 2 })
})

test('CV-1 a card counts the spent budgets of today and of messages for which an unsettled message waits', async (t) => {
  const { card, insert, clock } = openFacts(t)
  const today = MIDNIGHT_MS / DAY_MS
  const asked = { workspace_id: 'w', state: 'asked' }
  await insert('messages', { id: 'waits', workspace_id: 'x', state: 'queued', conversation_id: 'a' })
  const budget = async (id: string, row: Record<string, Value>, message: Record<string, Value> = {}) => {
    await insert('budgets', { id, ...asked, ...row })
    await insert('messages', { id, workspace_id: 'x', state: 'queued', conversation_id: id, ...message })
    await insert('budget_waits', { message_id: id, budget_id: id })
  }
  await budget('tree', {})
  await budget('today', { day: today })
  await budget('yesterday', { day: today - 1 })
  await budget('answered', { state: 'raised' })
  await budget('elsewhere', { workspace_id: 'other' })
  await budget('settled', {}, { settled_at: 1 })
  await insert('budgets', { id: 'no message', ...asked })
  assert.deepEqual(await card('w'), { ...NONE, budgets: 2 })
  clock.advance(DAY_MS / 2 - 1)
  assert.equal((await card('w', 2))?.budgets, 2, 'the last moment of the day')
  clock.advance(1)
  assert.equal((await card('w'))?.budgets, 1)
})

test('CV-1 a card without an unsettled message that waits has no budget', async (t) => {
  const { card, insert } = openFacts(t)
  await insert('budgets', { id: 'b', workspace_id: 'w', state: 'asked' })
  await insert('messages', { id: 'm', workspace_id: 'w', state: 'done', settled_at: 1 })
  await insert('messages', { id: 'other', workspace_id: 'w', state: 'queued', conversation_id: 'other' })
  await insert('budget_waits', { message_id: 'm', budget_id: 'b' })
  assert.equal((await card('w'))?.budgets, 0)
})

test('CV-1 the last answer is that of the latest completed task among the last 50', async (t) => {
  const { card, insert } = openFacts(t)
  const task = (n: number, state: string) => ({ id: `t${n}`, workspace_id: 'w', state, updated_at: n })
  await insert('tasks', task(1, 'TASK_STATE_COMPLETED'), task(2, 'TASK_STATE_COMPLETED'))
  for (let n = 3; n < 52; n++) await insert('tasks', task(n, 'TASK_STATE_FAILED'))
  await insert('tasks', { ...task(99, 'TASK_STATE_COMPLETED'), workspace_id: 'other' })
  assert.deepEqual(await card('w'), { ...NONE, lastAnsweredAtMs: 2 })
  await insert('tasks', task(53, 'TASK_STATE_FAILED'))
  assert.deepEqual(await card('w', 2), NONE)
})

test('CV-1 a card sums up the turns of its workspace since midnight, and the turns without a cost', async (t) => {
  const { card, insert } = openFacts(t)
  const turn = (id: string, row: Record<string, Value>) => ({
    message_id: id,
    workspace_id: 'w',
    ended_at: MIDNIGHT_MS,
    cost_usd: 1,
    ...row,
  })
  await insert('turn_usage', turn('midnight', {}), turn('now', { ended_at: START_MS, cost_usd: 0.5 }))
  await insert('turn_usage', turn('yesterday', { ended_at: MIDNIGHT_MS - 1 }), turn('other', { workspace_id: 'x' }))
  assert.deepEqual((await card('w'))?.today, { turns: 2, unknownTurns: 0, costUsd: 1.5 })
  await insert('turn_usage', turn('unknown', { cost_usd: null }))
  assert.deepEqual((await card('w', 2))?.today, { turns: 3, unknownTurns: 1, costUsd: 1.5 })
})

test('CV-1 the facts are read again when the log of the workspace grows or a day ends, and not before', async (t) => {
  const { card, insert, clock, countReads } = openFacts(t)
  await card('w', 1)
  await insert('messages', { workspace_id: 'w', state: 'dead' })
  clock.advance(DAY_MS / 2 - 1)
  assert.deepEqual([(await card('w', 1))?.deadLetters, countReads()], [0, 1])
  assert.deepEqual([(await card('w', 2))?.deadLetters, countReads()], [1, 2])
  clock.advance(1)
  await card('w', 2)
  assert.equal(countReads(), 3)
  await card('w', 2)
  assert.equal(countReads(), 3)
})

test('PL-23 the cards of many workspaces are read a hundred at a time, and other work runs between', async (t) => {
  const { add, numbered, insert, countReads } = openFacts(t)
  const ids = Array.from({ length: 200 }, (_, n) => `w${n}`)
  for (const id of ['w0', 'w99', 'w100', 'w199']) await insert('messages', { workspace_id: id, state: 'dead' })
  let turns = 0
  const count = () => {
    turns += 1
    counting = setImmediate(count)
  }
  let counting = setImmediate(count)
  const cards = await add(ids.map((id) => numbered(id)))
  clearImmediate(counting)
  assert.deepEqual([countReads(), turns > 0], [2, true])
  const dead = cards.filter(({ card }) => card?.deadLetters === 1)
  assert.deepEqual([cards.length, dead.map(({ id }) => id)], [200, ['w0', 'w99', 'w100', 'w199']])
  assert.deepEqual(await add([]), [])
  assert.equal(countReads(), 2)
})

test('CV-1 the card of one workspace waits for no turn of the event loop', async (t) => {
  const { card } = openFacts(t)
  let turned = false
  const turn = setImmediate(() => {
    turned = true
  })
  await card('w')
  clearImmediate(turn)
  assert.equal(turned, false)
})
