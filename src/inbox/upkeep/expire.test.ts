/** Expiry of messages that no worker began, and the waiting time that counts towards it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../../test/fakes/letters.ts'
import { done, openInboxOnClock } from '../../../test/harness/inbox-on-clock.ts'
import { expire } from './expire.ts'

const SWEEP_MS = 5000
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

test('IN-7 a message that was not begun in time fails with its task, and the next one of its conversation is ready', async (t) => {
  const inbox = openInboxOnClock(t)
  const [id, other] = [await inbox.workspace(), await inbox.workspace()]
  const admit = (expiresInMs: number, contextId: string, taskId?: string) =>
    inbox.local.reception.admit({
      ...letterTo(id, { contextId, ...(taskId !== undefined && { taskId }) }),
      expiresInMs,
    })
  const first = await admit(SWEEP_MS - 1, 'c')
  await admit(MINUTE_MS, 'c', first.taskId)
  const behind = await admit(MINUTE_MS, 'c')
  const edge = await admit(SWEEP_MS, 'edge')
  const elsewhere = await inbox.local.reception.admit(letterTo(other))
  inbox.notified.length = 0
  await inbox.pass(SWEEP_MS)
  const task = await inbox.local.reception.task(first.taskId)
  assert.equal(task?.status.state, 'TASK_STATE_FAILED')
  assert.deepEqual(task?.status.message?.parts, [{ text: 'the message was not started in time' }])
  assert.deepEqual(inbox.notified, [id])
  for (const { taskId } of [behind, edge, elsewhere]) assert.equal(await inbox.state(taskId), 'TASK_STATE_SUBMITTED')
  assert.deepEqual(await inbox.load(id), { running: 0, waiting: 2, suspended: 0 })
  const [letter, second, ...more] = (await inbox.local.deadLetters.list(id)).rows
  assert.deepEqual([letter?.code, second?.code, more], ['expired', 'expired', []])
  const { entries } = await inbox.local.activity.read({ workspaceId: id, sinceSeq: 0, limit: 50 })
  assert.ok(entries.some(({ taskId, text }) => taskId === first.taskId && text?.includes('was not started in time')))
  const worker = inbox.worker([id])
  assert.equal((await worker.lease()).taskId, behind.taskId)
})

test('IN-7 only a message without an attempt expires: one that failed, was lost, parked or interrupted does not', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace()
  const tried = ['failures', 'losses', 'interrupted', 'parks']
  const tasks: string[] = []
  for (const column of tried) {
    const { taskId } = await inbox.local.reception.admit({ ...letterTo(id), expiresInMs: 1 })
    await inbox.sql(`update messages set ${column} = 1 where id = $1`, taskId)
    tasks.push(taskId)
  }
  const fresh = await inbox.local.reception.admit({ ...letterTo(id), expiresInMs: 1 })
  const later = await inbox.local.reception.admit({ ...letterTo(id), expiresInMs: HOUR_MS })
  await inbox.pass(SWEEP_MS)
  assert.equal(await inbox.state(fresh.taskId), 'TASK_STATE_FAILED')
  for (const taskId of [...tasks, later.taskId]) assert.equal(await inbox.state(taskId), 'TASK_STATE_SUBMITTED')
})

test('IN-7 while another message of its task runs, or when a worker has just leased it, a message does not expire', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 2 })
  const worker = inbox.worker([id])
  const first = await inbox.local.reception.admit(letterTo(id))
  const lease = await worker.lease()
  await inbox.local.reception.admit({ ...letterTo(id, { taskId: first.taskId }), expiresInMs: 1 })
  await inbox.pass(SWEEP_MS)
  assert.equal(await inbox.state(first.taskId), 'TASK_STATE_WORKING')
  const { workspaceId, conversationId, taskId, messageId } = lease
  const isExpired = await inbox.store.write(() => expire({ id: messageId, workspaceId, conversationId, taskId }))
  assert.equal(isExpired, false)
  // A running message of another task changes nothing.
  await inbox.local.queues.pause(id, { now: false })
  const other = await inbox.local.reception.admit({ ...letterTo(id), expiresInMs: 1 })
  await inbox.pass(SWEEP_MS)
  assert.equal(await inbox.state(other.taskId), 'TASK_STATE_FAILED')
})

test('IN-7 a message that has just ended does not expire, whatever else waits', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace()
  const worker = inbox.worker([id])
  await inbox.local.reception.admit(letterTo(id))
  const lease = await worker.lease()
  await inbox.local.queues.pause(id, { now: false })
  await inbox.local.reception.admit(letterTo(id))
  await inbox.local.inbox.settle(lease, done('ok'))
  const { workspaceId, conversationId, taskId, messageId } = lease
  const isExpired = await inbox.store.write(() => expire({ id: messageId, workspaceId, conversationId, taskId }))
  assert.deepEqual([isExpired, await inbox.state(taskId)], [false, 'TASK_STATE_COMPLETED'])
})

test('IN-7 a sweep expires 100 messages, the oldest first, and the next one the rest', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace()
  const letters = Array.from({ length: 101 }, (_, count) => ({ ...letterTo(id), expiresInMs: 200 - count }))
  const admitted = await Promise.all(letters.map(inbox.local.reception.admit))
  const expired = async () => (await inbox.sql(`select id from messages where state = 'dead'`)).length
  await inbox.pass(SWEEP_MS)
  for (let turn = 0; turn < 5; turn++) await inbox.pass()
  assert.equal(await expired(), 100)
  assert.equal(await inbox.state(admitted[0]?.taskId ?? ''), 'TASK_STATE_SUBMITTED')
  await inbox.pass(SWEEP_MS)
  assert.equal(await expired(), 101)
})

test('IN-7 a gap of more than five minutes between two sweeps does not count as waiting time', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace()
  const mark = async () => (await inbox.sql('select at_ms from upkeep_clock'))[0]?.['at_ms']
  await inbox.pass(SWEEP_MS)
  assert.equal(await mark(), undefined, 'no message waits')
  const startMs = inbox.clock.nowMs()
  const first = await inbox.local.reception.admit({ ...letterTo(id), expiresInMs: 10 * MINUTE_MS })
  const left = async (taskId: string) => {
    const [row] = await inbox.sql('select expires_at from messages where id = $1', taskId)
    return Number(row?.['expires_at']) - inbox.clock.nowMs()
  }
  await inbox.pass(SWEEP_MS)
  assert.equal(await mark(), startMs + SWEEP_MS)
  // A mark is written each minute.
  await inbox.pass(MINUTE_MS - 1)
  assert.equal(await mark(), startMs + SWEEP_MS)
  await inbox.pass(SWEEP_MS)
  const markMs = startMs + MINUTE_MS - 1 + 2 * SWEEP_MS
  assert.equal(await mark(), markMs)
  await inbox.pass(MINUTE_MS)
  assert.equal(await mark(), markMs + MINUTE_MS)
  // Five minutes are a restart or a slow sweep, and count.
  await inbox.pass(5 * MINUTE_MS)
  assert.equal(await left(first.taskId), 10 * MINUTE_MS - (inbox.clock.nowMs() - startMs))
  // A longer gap is time without a platform. A message that was admitted after the mark has waited since then only.
  const before = await left(first.taskId)
  inbox.clock.advance(3000)
  const admit = () => inbox.local.reception.admit({ ...letterTo(id), expiresInMs: 10 * MINUTE_MS })
  const [second, future, ended] = [await admit(), await admit(), await admit()]
  await inbox.sql('update messages set admitted_at = now_ms() + $2 where id = $1', future.taskId, HOUR_MS)
  await inbox.local.reception.cancel(ended.taskId)
  await inbox.pass(5 * MINUTE_MS)
  assert.equal(await left(first.taskId), before)
  assert.equal(await left(second.taskId), 10 * MINUTE_MS)
  assert.equal(await left(future.taskId), 5 * MINUTE_MS)
  assert.equal(await left(ended.taskId), 5 * MINUTE_MS)
})

test('IN-7 a mark of the future, from a clock that was wrong, is replaced', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace()
  await inbox.sql(`insert into upkeep_clock values ('waiting', now_ms() + $1), ('other', 1)`, HOUR_MS)
  const { taskId } = await inbox.local.reception.admit({ ...letterTo(id), expiresInMs: HOUR_MS })
  const [before] = await inbox.sql('select expires_at from messages where id = $1', taskId)
  await inbox.pass(SWEEP_MS)
  const marks = await inbox.sql('select name, at_ms from upkeep_clock order by name')
  assert.deepEqual(
    marks.map((row) => [row['name'], row['at_ms']]),
    [
      ['other', 1],
      ['waiting', inbox.clock.nowMs()],
    ],
  )
  const [after] = await inbox.sql('select expires_at from messages where id = $1', taskId)
  assert.deepEqual(after, before)
})
