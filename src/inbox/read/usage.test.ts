import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { NOON_MS, openStoredRows } from '../../../test/fakes/stored-rows.ts'
import { together } from '../../store/store.ts'
import type { Outcome } from '../inbox.ts'
import { createUsageReader, USAGE_PRUNED, usageRows } from './usage.ts'

const DAY_MS = 86_400_000
const MIDNIGHT_MS = NOON_MS - DAY_MS / 2
const KEY = { messageId: 'm1', epoch: 2, workspaceId: 'ws_1', taskId: 't1', conversationId: 'c1' }
const NOTHING = {
  turns: 0,
  unknownTurns: 0,
  unknownCostTurns: 0,
  inputTokens: null,
  outputTokens: null,
  costUsd: null,
  durationMs: null,
}
const KNOWN = { input_tokens: 1, output_tokens: 2, cost_usd: 0.5, duration_ms: 4 }
/** The sum of so many turns with these numbers. */
const sum = (turns: number) => ({
  turns,
  unknownTurns: 0,
  unknownCostTurns: 0,
  inputTokens: turns,
  outputTokens: 2 * turns,
  costUsd: turns / 2,
  durationMs: 4 * turns,
})

async function openUsage(t: TestContext) {
  const rows = await openStoredRows(t)
  await rows.add({ workspace_load: [{ workspace_id: 'ws_1' }, { workspace_id: 'ws_2' }] })
  const usage = createUsageReader(rows.store)
  const read = (query: object = {}) => usage.read({ workspaceId: 'ws_1', days: 2, messages: 10, ...query })
  return { ...rows, usage, read }
}

test('RT-13 the usage of a turn is stored once, in whole tokens; what is no amount is unknown', async (t) => {
  const { store, sql } = await openUsage(t)
  const settle = (epoch: number, usage: object | undefined) => {
    const outcome = { type: 'stopped', ...(usage && { usage }) } as Outcome
    return store.write(() => together(usageRows({ ...KEY, epoch }, outcome)))
  }
  assert.deepEqual(usageRows(KEY, { type: 'stopped' }), [])
  const max = Number.MAX_SAFE_INTEGER
  await settle(1, { inputTokens: 1.4, outputTokens: 1.5, costUsd: 0.25, durationMs: 3.6 })
  await settle(1, { inputTokens: 9 })
  await settle(2, { inputTokens: -1, outputTokens: 0, costUsd: Number.NaN, durationMs: max })
  await settle(3, { inputTokens: '5', outputTokens: max + 1, costUsd: 0 })
  const stored = await sql(
    `select epoch, message_id, workspace_id, task_id, outcome, ended_at, duration_ms, input_tokens, output_tokens, cost_usd
     from turn_usage order by epoch`,
  )
  const row = { message_id: 'm1', workspace_id: 'ws_1', task_id: 't1', outcome: 'stopped', ended_at: NOON_MS }
  assert.deepEqual(stored, [
    { epoch: 1, ...row, duration_ms: 4, input_tokens: 1, output_tokens: 2, cost_usd: 0.25 },
    { epoch: 2, ...row, duration_ms: max, input_tokens: null, output_tokens: 0, cost_usd: null },
    { epoch: 3, ...row, duration_ms: null, input_tokens: null, output_tokens: null, cost_usd: 0 },
  ])
})

test('RT-13 usage is kept for 91 days', async (t) => {
  const { add, sql } = await openUsage(t)
  const ended = (id: string, ms: number) => ({ message_id: id, ended_at: NOON_MS - 91 * DAY_MS + ms })
  await add({ turn_usage: [ended('old', -1), ended('kept', 0)] })
  assert.deepEqual(await sql(`select message_id from turn_usage where ${USAGE_PRUNED}`), [{ message_id: 'old' }])
})

test('RT-13 a report has today and the days before it, from midnight UTC, the latest first; unknown is not 0', async (t) => {
  const { add, read } = await openUsage(t)
  const turn = (epoch: number, endedAt: number, more: object = KNOWN) => ({
    message_id: 'm1',
    epoch,
    ended_at: endedAt,
    ...more,
  })
  assert.deepEqual(await read(), { total: NOTHING, days: [], conversations: [], messages: [] })
  await add({
    tasks: [{ id: 't1' }],
    turn_usage: [
      ...[turn(1, MIDNIGHT_MS), turn(2, NOON_MS), turn(3, MIDNIGHT_MS - 1), turn(4, MIDNIGHT_MS - DAY_MS)],
      turn(5, MIDNIGHT_MS - DAY_MS - 1),
      turn(6, NOON_MS, { workspace_id: 'ws_2', ...KNOWN }),
    ],
  })
  const { total, days } = await read()
  assert.deepEqual(
    [total, days],
    [
      sum(4),
      [
        { day: '2026-11-15', ...sum(2) },
        { day: '2026-11-14', ...sum(2) },
      ],
    ],
  )
  assert.deepEqual((await read({ days: 1 })).total, sum(2))
  assert.deepEqual((await read({ days: 3 })).total, sum(5))
  await add({
    turn_usage: [turn(7, NOON_MS, { input_tokens: 1 }), turn(8, NOON_MS, { output_tokens: 1, cost_usd: 0 })],
  })
  assert.deepEqual((await read({ days: 1 })).total, {
    turns: 4,
    unknownTurns: 2,
    unknownCostTurns: 1,
    inputTokens: 3,
    outputTokens: 5,
    costUsd: 1,
    durationMs: 8,
  })
  await assert.rejects(read({ workspaceId: 'ws_9' }), { code: 'not_found' })
})

test('RT-13 a report has the latest conversations and messages, each with the sum of its turns', async (t) => {
  const { add, read } = await openUsage(t)
  const turn = (taskId: string, id: string, ...[epoch, ms = 0]: [number, number?]) => ({
    message_id: id,
    task_id: taskId,
    epoch,
    ended_at: NOON_MS + ms,
    ...KNOWN,
  })
  await add({
    tasks: [
      { id: 't1' },
      { id: 't2' },
      { id: 't3', conversation_id: 'c2', context_id: 'named' },
      { id: 't4', conversation_id: 'c4' },
    ],
    turn_usage: [
      ...[turn('t1', 'm1', 1, -9), turn('t1', 'm1', 2, 5), turn('t2', 'm2', 1, 1), turn('t3', 'm3', 1, 4)],
      turn('t3', 'm4', 1, 4),
      turn('t3', 'old', 1, -2 * DAY_MS),
      { ...turn('t4', 'm9', 1), workspace_id: 'ws_2' },
    ],
  })
  const conversations = [
    { conversationId: 'c1', contextId: 'c1', ...sum(3) },
    { conversationId: 'c2', contextId: 'named', ...sum(2) },
  ]
  const messages = [
    { messageId: 'm1', taskId: 't1', ...sum(2) },
    { messageId: 'm4', taskId: 't3', ...sum(1) },
    { messageId: 'm3', taskId: 't3', ...sum(1) },
    { messageId: 'm2', taskId: 't2', ...sum(1) },
  ]
  const report = await read()
  assert.deepEqual([report.conversations, report.messages], [conversations, messages])
  const short = await read({ messages: 1 })
  assert.deepEqual([short.conversations, short.messages], [conversations.slice(0, 1), messages.slice(0, 1)])
})

test('RT-13 the use of the platform has its days and its workspaces, the most expensive first, then the busiest', async (t) => {
  const { add, usage } = await openUsage(t)
  const turn = (workspaceId: string, id: string, more: object = {}) => ({
    message_id: id,
    workspace_id: workspaceId,
    ended_at: NOON_MS,
    ...more,
  })
  assert.deepEqual(await usage.readAll(2), { total: NOTHING, days: [], workspaces: [] })
  await add({
    workspaces: [
      { id: 'ws_1', name: 'one' },
      { id: 'ws_2', name: 'two', deleted_at: NOON_MS },
      { id: 'ws_3', name: 'three' },
      { id: 'ws_4', name: 'four' },
    ],
    turn_usage: [
      ...[turn('ws_1', '1'), turn('ws_2', '2', { ended_at: MIDNIGHT_MS - DAY_MS, ...KNOWN }), turn('ws_3', '3')],
      ...[turn('ws_3', '4', { ended_at: MIDNIGHT_MS }), turn('ws_4', '5', { ended_at: MIDNIGHT_MS - 1, ...KNOWN })],
      ...[turn('ws_4', '6', KNOWN), turn('ws_1', '7', { ended_at: MIDNIGHT_MS - DAY_MS - 1 })],
      turn('ws_1', '8', { ended_at: MIDNIGHT_MS + DAY_MS }),
      ...['a', 'b', 'c'].map((id) => turn('ws_0', id, { cost_usd: 0 })),
    ],
  })
  const unknown = (turns: number) => ({ ...NOTHING, turns, unknownTurns: turns, unknownCostTurns: turns })
  assert.deepEqual(await usage.readAll(2), {
    total: { ...sum(3), turns: 9, unknownTurns: 6, unknownCostTurns: 3 },
    days: [
      { day: '2026-11-15', ...sum(1), turns: 7, unknownTurns: 6, unknownCostTurns: 3 },
      { day: '2026-11-14', ...sum(2) },
    ],
    workspaces: [
      { workspaceId: 'ws_4', name: 'four', ...sum(2) },
      { workspaceId: 'ws_2', ...sum(1) },
      { workspaceId: 'ws_0', ...unknown(3), unknownCostTurns: 0, costUsd: 0 },
      { workspaceId: 'ws_3', name: 'three', ...unknown(2) },
      { workspaceId: 'ws_1', name: 'one', ...unknown(1) },
    ],
  })
  assert.deepEqual(
    (await usage.readAll(4)).days.map(({ day }) => day),
    ['2026-11-15', '2026-11-14', '2026-11-13'],
  )
})

test('PL-23 other callers run between two days of the use of the platform', async (t) => {
  const { usage } = await openUsage(t)
  const turns = async (days: number) => {
    let count = 0
    const tick = () => {
      count += 1
      next = setImmediate(tick)
    }
    let next = setImmediate(tick)
    await usage.readAll(days)
    clearImmediate(next)
    return count
  }
  assert.equal(await turns(1), 0)
  assert.ok((await turns(3)) >= 2)
})
