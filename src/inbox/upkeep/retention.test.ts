/** Retention: which rows are old enough to go, which of them a person still needs, and what goes with a task. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type ClockedInbox, openInboxOnClock } from '../../../test/harness/inbox-on-clock.ts'
import { ulidFloor } from '../../ids.ts'
import { prune } from './retention.ts'

const HOUR_MS = 3600_000
const DAY_MS = 24 * HOUR_MS
const OPTIONS = { taskMs: 30 * DAY_MS, eventMs: 7 * DAY_MS, deltaMs: HOUR_MS }
/** Far more transactions than any of these tests needs: a prune that never ends fails instead of hanging. */
const WRITES_MAX = 60

function openPruned(t: TestContext) {
  const inbox = openInboxOnClock(t)
  const pruneNow = async (signal = new AbortController().signal) => {
    let writes = 0
    inbox.failWrites(() => (++writes > WRITES_MAX ? new Error('the prune does not end') : undefined))
    try {
      return await prune(inbox.store, OPTIONS, signal)
    } finally {
      inbox.failWrites(() => undefined)
    }
  }
  return { inbox, pruneNow, nowMs: inbox.clock.nowMs() }
}

interface PlantedEvent {
  readonly workspaceId?: string
  readonly seq: number
  readonly atMs: number
  readonly messageId?: string
  readonly delta?: number
}

const plantEvent = (inbox: ClockedInbox, { workspaceId = 'w', seq, atMs, messageId, delta = 0 }: PlantedEvent) =>
  inbox.sql(
    `insert into events (workspace_id, seq, task_id, message_id, at_ms, delta, items) values ($1, $2, null, $3, $4, $5, '[]')`,
    ...[workspaceId, seq, messageId ?? null, atMs, delta],
  )

interface PlantedMessage {
  readonly id: string
  readonly taskId?: string
  readonly conversationId?: string
  readonly state?: string
  readonly settledAtMs?: number | null
  readonly replayedAs?: string
  readonly discardedAtMs?: number
}

function plantMessage(inbox: ClockedInbox, message: PlantedMessage) {
  const { id, taskId = id, conversationId = `c-${taskId}`, state = 'done', settledAtMs = 1 } = message
  return inbox.sql(
    `insert into messages (id, workspace_id, conversation_id, task_id, n, dedupe, content_hash, idempotency_key, envelope,
       sender, state, admitted_at, ready_at, expires_at, settled_at, replayed_as, discarded_at)
     values ($1, 'w', $2, $3, (select count(*) from messages), randomblob(16), '', $1, '{}', '{}', $4, 1, 1, 1, $5, $6, $7)`,
    ...[id, conversationId, taskId, state, settledAtMs, message.replayedAs ?? null, message.discardedAtMs ?? null],
  )
}

test('IN-6 a prune that is stopped deletes nothing more', async (t) => {
  const { inbox, pruneNow } = openPruned(t)
  await plantMessage(inbox, { id: 'm' })
  for (const seq of [1, 2]) await plantEvent(inbox, { seq, atMs: 1, messageId: 'm', delta: seq - 1 })
  await inbox.sql(`insert into turn_usage values ('u', 1, 'w', 'x', 'done', 1, null, null, null, null)`)
  assert.equal(await pruneNow(AbortSignal.abort()), 0)
  assert.equal((await inbox.sql('select seq from events')).length, 2)
  assert.equal((await inbox.sql('select epoch from turn_usage')).length, 1)
  assert.equal(await pruneNow(), 3)
})

test('IN-6 text deltas go when both they and the end of their message are older than an hour', async (t) => {
  const { inbox, pruneNow, nowMs } = openPruned(t)
  const edgeMs = nowMs - HOUR_MS
  await plantMessage(inbox, { id: 'old', settledAtMs: edgeMs - 1 })
  await plantMessage(inbox, { id: 'edge', settledAtMs: edgeMs })
  await plantMessage(inbox, { id: 'open', state: 'leased', settledAtMs: null })
  let seq = 0
  const plant = (messageId: string, atMs: number, delta = 1) =>
    plantEvent(inbox, { seq: ++seq, atMs, messageId, delta })
  await plant('old', edgeMs - 1)
  await plant('old', edgeMs)
  await plant('old', edgeMs - 1, 0)
  await plant('edge', edgeMs - 1)
  await plant('open', edgeMs - 1)
  assert.equal(await pruneNow(), 1)
  const kept = await inbox.sql('select seq from events order by seq')
  assert.deepEqual(
    kept.map((row) => row['seq']),
    [2, 3, 4, 5],
  )
})

test('IN-6 all old deltas go in one prune, also where they are more than one transaction takes', async (t) => {
  const { inbox, pruneNow } = openPruned(t)
  await plantMessage(inbox, { id: 'm' })
  await inbox.sql(
    `insert into events (workspace_id, seq, task_id, message_id, at_ms, delta, items)
     select 'w', n, null, 'm', n, 1, '[]' from (
       with recursive counted(n) as (select 1 union all select n + 1 from counted where n < 1001) select n from counted)`,
  )
  assert.equal(await pruneNow(), 1001)
  assert.deepEqual(await inbox.sql('select seq from events'), [])
})

test('IN-6 other events go after a week, in each workspace, when their message has ended as long ago', async (t) => {
  const { inbox, pruneNow, nowMs } = openPruned(t)
  const edgeMs = nowMs - 7 * DAY_MS
  await plantMessage(inbox, { id: 'old', settledAtMs: edgeMs - 1 })
  await plantMessage(inbox, { id: 'edge', settledAtMs: edgeMs })
  await plantMessage(inbox, { id: 'open', state: 'leased', settledAtMs: null })
  for (const id of ['w1', 'w2', 'w3', 'w4']) await inbox.workspace({ id })
  await inbox.sql('update workspace_load set pruned_seq = 1 where workspace_id = $1', 'w4')
  const events: PlantedEvent[] = [
    { workspaceId: 'w1', seq: 1, atMs: edgeMs - 1 },
    { workspaceId: 'w1', seq: 2, atMs: edgeMs - 1, messageId: 'old' },
    { workspaceId: 'w1', seq: 3, atMs: edgeMs - 1, messageId: 'edge' },
    { workspaceId: 'w1', seq: 4, atMs: edgeMs - 1, messageId: 'open' },
    { workspaceId: 'w1', seq: 5, atMs: edgeMs - 1, messageId: 'old' },
    { workspaceId: 'w1', seq: 6, atMs: edgeMs, messageId: 'old' },
    { workspaceId: 'w1', seq: 7, atMs: edgeMs - 1, messageId: 'gone' },
    { workspaceId: 'w2', seq: 4, atMs: edgeMs - 1 },
    { workspaceId: 'w3', seq: 2, atMs: edgeMs },
    { workspaceId: 'w4', seq: 3, atMs: edgeMs - 1, messageId: 'open' },
  ]
  for (const event of events) await plantEvent(inbox, event)
  const left = async () => {
    const rows = await inbox.sql('select workspace_id, seq from events order by workspace_id, seq')
    return rows.map((row) => `${row['workspace_id']}:${row['seq']}`)
  }
  const pruned = async () => {
    const rows = await inbox.sql('select pruned_seq from workspace_load order by workspace_id')
    return rows.map((row) => row['pruned_seq'])
  }
  assert.equal(await pruneNow(), 4)
  assert.deepEqual(await left(), ['w1:3', 'w1:4', 'w1:6', 'w1:7', 'w3:2', 'w4:3'])
  // A reader whose cursor is before these is told that they are gone.
  assert.deepEqual(await pruned(), [5, 4, 0, 1])
  assert.equal(await pruneNow(), 0)
  assert.deepEqual(await pruned(), [5, 4, 0, 1])
})

test('IN-6 a long log is read to its first young entry, and an old entry behind that waits for the next time', async (t) => {
  const { inbox, pruneNow, nowMs } = openPruned(t)
  await inbox.workspace({ id: 'w' })
  await plantEvent(inbox, { workspaceId: 'other', seq: 1, atMs: nowMs })
  await inbox.sql(
    `insert into events (workspace_id, seq, task_id, message_id, at_ms, delta, items)
     select 'w', n, null, null, case when n = 1100 then $1 else 1 end, 0, '[]' from (
       with recursive counted(n) as (select 1 union all select n + 1 from counted where n < 1700) select n from counted)`,
    nowMs,
  )
  // The slice with the young entry is the last one that is read.
  assert.equal(await pruneNow(), 1099)
  const kept = await inbox.sql(
    'select count(*) as kept, min(seq) as first, max(seq) as last from events where workspace_id = $1',
    'w',
  )
  assert.deepEqual({ ...kept[0] }, { kept: 601, first: 1100, last: 1700 })
  const [load] = await inbox.sql('select pruned_seq from workspace_load')
  assert.equal(load?.['pruned_seq'], 1099)
})

test('IN-6 a message that is sent while old tasks are deleted waits for some of them only', async (t) => {
  const { inbox } = openPruned(t)
  await inbox.sql(
    `insert into tasks (id, workspace_id, conversation_id, context_id, principal, state, created_at, updated_at)
     select '00' || n, 'w', 'c', 'c', 'people', 'TASK_STATE_COMPLETED', 1, 1 from (
       with recursive counted(n) as (select 1 union all select n + 1 from counted where n < 400) select n from counted)`,
  )
  const countTasks = async () => Number((await inbox.sql('select count(*) as tasks from tasks'))[0]?.['tasks'])
  let isPruning = true
  const pruning = prune(inbox.store, OPTIONS, new AbortController().signal).finally(() => {
    isPruning = false
  })
  const steps: number[] = []
  for (let before = await countTasks(); isPruning; ) {
    const after = await countTasks()
    steps.push(before - after)
    before = after
  }
  assert.equal(await pruning, 400)
  assert.ok(Math.max(...steps) <= 40, `a write waited for ${Math.max(...steps)} tasks`)
})

test('IN-6 usage goes after 91 days, and the budget of a day after the next day', async (t) => {
  const { inbox, pruneNow, nowMs } = openPruned(t)
  const today = Math.floor(nowMs / DAY_MS)
  const usage = (id: string, endedAtMs: number) =>
    inbox.sql(`insert into turn_usage values ($1, 1, 'w', 'x', 'done', $2, null, null, null, null)`, id, endedAtMs)
  await usage('edge', nowMs - 91 * DAY_MS)
  await usage('old', nowMs - 91 * DAY_MS - 1)
  for (const [id, day] of [
    ['today', today],
    ['yesterday', today - 1],
    ['before', today - 2],
    ['message', null],
  ] as const) {
    await inbox.sql(
      `insert into budgets (id, workspace_id, day, limit_usd, state) values ($1, 'w', $2, 1, 'open')`,
      id,
      day,
    )
  }
  assert.equal(await pruneNow(), 1)
  const idsIn = async (table: string, column: string) =>
    (await inbox.sql(`select ${column} as id from ${table} order by 1`)).map((row) => row['id'])
  assert.deepEqual(await idsIn('turn_usage', 'message_id'), ['edge'])
  assert.deepEqual(await idsIn('budgets', 'id'), ['message', 'today', 'yesterday'])
})

const TABLES = ['events', 'asks', 'deliveries', 'turn_notes', 'push_configs', 'budgets', 'messages'] as const

interface PlantedTask {
  readonly id: string
  readonly state?: string
  readonly updatedAtMs?: number
  readonly message?: Partial<PlantedMessage>
  /** The second message of the task. */
  readonly later?: Partial<PlantedMessage>
  readonly conversationId?: string
  readonly worker?: string
  readonly finishedAtMs?: number | null
}

/** A task with a row in every table. */
async function plantTask(inbox: ClockedInbox, task: PlantedTask) {
  const { id, state = 'TASK_STATE_COMPLETED', updatedAtMs = 1, conversationId = `c-${id}`, finishedAtMs = 1 } = task
  await inbox.sql(
    `insert into tasks values ($1, 'w', $2, 'c', 'people', $3, null, 1, $4)`,
    id,
    conversationId,
    state,
    updatedAtMs,
  )
  await plantMessage(inbox, { id, conversationId, ...task.message })
  await plantMessage(inbox, { id: `${id}-later`, taskId: id, conversationId, ...task.later })
  await inbox.sql(
    `insert into conversations (id, workspace_id, principal, context_id, worker) values ($1, 'w', 'people', $1, $2)
     on conflict (id) do nothing`,
    ...[conversationId, task.worker ?? null],
  )
  await inbox.sql(`insert into sessions values ($1, 'w', 'h', 'r', 't', 1) on conflict do nothing`, conversationId)
  const seq = (await inbox.sql('select seq from events')).length + 1
  await inbox.sql(`insert into events values ('w', $2, $1, $1, now_ms(), 0, '[]')`, id, seq)
  await inbox.sql(
    `insert into asks (message_id, id, workspace_id, task_id, epoch, state, question, asked_at, expires_at)
     values ($1, 'q', 'w', $1, 1, 'answered', '[]', 1, 1)`,
    id,
  )
  await inbox.sql(
    `insert into deliveries (id, workspace_id, task_id, message_id, door, channel, body, state, next_at, created_at, finished_at)
     values ('d-' || $1, 'w', $1, $1, 'http', 'c', '{}', 'sent', 1, 1, $2)`,
    ...[id, finishedAtMs],
  )
  await inbox.sql(
    `insert into delivery_parts (delivery_id, n, content, state) values ('d-' || $1, 1, '{}', 'sent')`,
    id,
  )
  await inbox.sql(`insert into turn_notes values ($1, 'k', 'v', $1, 'w')`, id)
  await inbox.sql(
    `insert into push_configs (task_id, id, workspace_id, version, config, state, next_at, created_at)
     values ($1, 'p', 'w', '1.0', '{}', 'open', 1, 1)`,
    id,
  )
  await inbox.sql(
    `insert into budgets (id, workspace_id, task_id, limit_usd, state) values ($1, 'w', $1, 1, 'open')`,
    id,
  )
}

test('IN-6 an ended task goes after 30 days with all of its rows; one that is open, young or needs a person stays whole', async (t) => {
  const { inbox, pruneNow, nowMs } = openPruned(t)
  const edgeMs = nowMs - 30 * DAY_MS
  const dead = { state: 'dead' }
  const edgeId = ulidFloor(edgeMs)
  const kept: PlantedTask[] = [
    { id: '00young', updatedAtMs: edgeMs },
    { id: edgeId },
    { id: '00working', state: 'TASK_STATE_WORKING' },
    { id: '00open', message: { state: 'queued', settledAtMs: null } },
    { id: '00later-open', later: { state: 'leased', settledAtMs: null } },
    { id: '00dead', state: 'TASK_STATE_FAILED', message: dead },
    { id: '00later-dead', state: 'TASK_STATE_FAILED', later: dead },
    { id: '00undelivered', finishedAtMs: null },
    { id: '00neighbour', conversationId: 'shared', updatedAtMs: nowMs },
  ]
  const gone: PlantedTask[] = [
    { id: '00old', updatedAtMs: edgeMs - 1 },
    { id: '00canceled', state: 'TASK_STATE_CANCELED' },
    { id: '00rejected', state: 'TASK_STATE_REJECTED' },
    { id: '00replayed', state: 'TASK_STATE_FAILED', message: { ...dead, replayedAs: 'x' } },
    { id: '00discarded', state: 'TASK_STATE_FAILED', later: { ...dead, discardedAtMs: 1 } },
    { id: '00shared', conversationId: 'shared' },
    { id: '00leased', worker: 'host.1' },
  ]
  for (const task of [...kept, ...gone]) await plantTask(inbox, task)
  assert.equal(await pruneNow(), gone.length)
  const ids = kept.map(({ id }) => id).sort()
  const idsIn = async (table: string, column: string) =>
    (await inbox.sql(`select distinct ${column} as id from ${table} order by 1`)).map((row) => row['id'])
  assert.deepEqual(await idsIn('tasks', 'id'), ids)
  for (const table of TABLES) assert.deepEqual(await idsIn(table, 'task_id'), ids, table)
  assert.equal((await inbox.sql('select id from messages')).length, 2 * kept.length)
  assert.deepEqual(
    await idsIn('delivery_parts', 'delivery_id'),
    ids.map((id) => `d-${id}`),
  )
  const conversations = kept.map(({ id, conversationId = `c-${id}` }) => conversationId).sort()
  assert.deepEqual(await idsIn('sessions', 'conversation_id'), conversations)
  // A worker still holds the conversation of a task that is gone.
  assert.deepEqual(await idsIn('conversations', 'id'), [...conversations, 'c-00leased'].sort())
})
