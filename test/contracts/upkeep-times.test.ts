/**
 * The default times of upkeep, as the inbox applies them by itself: a real store, the real sweep, and a clock that leaps.
 * No test here names a constant of the code.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Clock } from '../../src/clock.ts'
import type { Outcome } from '../../src/inbox/worker.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { sql } from '../../src/store/store.ts'
import { letterTo } from '../fakes/letters.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { openLocalInbox } from '../harness/stores/local-inbox.ts'
import { waitUntil } from '../harness/wait.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const STEP_MS = 4 * MINUTE_MS

/** A clock whose time leaps: each timer that is due then runs once. */
function leapingClock() {
  let elapsedMs = 0
  const startMs = Date.now()
  const timers = new Set<{ atMs: number; callback: () => void }>()
  const clock: Clock = {
    nowMs: () => startMs + elapsedMs,
    monotonicMs: () => elapsedMs,
    after(delayMs, callback) {
      const timer = { atMs: elapsedMs + delayMs, callback }
      timers.add(timer)
      return () => timers.delete(timer)
    },
  }
  const leap = (ms: number) => {
    elapsedMs += ms
    for (const timer of [...timers].filter(({ atMs }) => atMs <= elapsedMs)) {
      timers.delete(timer)
      timer.callback()
    }
  }
  return { clock, leap }
}

async function openInbox(t: TestContext) {
  const { clock, leap } = leapingClock()
  const store = openSqlite({ path: join(temporaryDir(t), 'molecule.db'), clock })
  const local = openLocalInbox(store, clock)
  await store.write(() => sql(`insert into workspace_load (workspace_id, hosted, slots) values ('w', 1, 1)`))
  await local.recover()
  const stop = new AbortController()
  t.after(async () => {
    stop.abort()
    local.close()
    await store.close()
  })
  const ask = async (statementText: string) => (await store.read(() => sql(statementText))).length
  /** At least an hour passes. Upkeep has then ended: it removes the marker, an old usage row, as its last step. */
  const pass = async (ms: number) => {
    await store.write(() =>
      sql(`insert into turn_usage (message_id, epoch, workspace_id, task_id, outcome, ended_at)
           values ('marker', 1, 'w', 'none', 'done', 0)`),
    )
    leap(ms)
    const marked = () => ask(`select 1 as found from turn_usage where message_id = 'marker'`)
    await waitUntil(async () => (await marked()) === 0, 'upkeep has ended')
  }
  /** Time passes in steps, with a sweep after each: a longer gap would count as time without a platform. */
  const live = async (ms: number) => {
    for (let livedMs = 0; livedMs < ms; livedMs += STEP_MS) {
      leap(STEP_MS)
      const unseen = `select 1 as found from messages where state = 'queued'
        and not exists (select 1 from upkeep_clock where at_ms >= now_ms() - 1000)`
      await waitUntil(async () => (await ask(unseen)) === 0, 'a sweep has seen the waiting message')
    }
  }
  const run = async (outcome: Outcome) => {
    const worker = { id: 'host.1', workspaces: 'hosted' as const }
    const directives = local.inbox.leases(worker, stop.signal)[Symbol.asyncIterator]()
    const { value } = await directives.next()
    assert.equal(value?.type, 'lease')
    await local.inbox.begin(value.lease)
    await local.inbox.append(value.lease, { from: 1, events: [{ type: 'text', delta: 'hel' }] })
    await local.inbox.settle(value.lease, outcome)
    void directives.return?.()
  }
  return { local, pass, live, run, ask }
}

const DONE: Outcome = { type: 'done', finality: 'completed', parts: [{ text: 'hello' }], artifacts: [] }

test('IN-6 by default deltas stay an hour, other events 7 days, tasks and their keys 30 days', async (t) => {
  const { local, pass, run, ask } = await openInbox(t)
  const letter = letterTo('w', { messageId: 'kept', text: 'x' })
  const { taskId } = await local.reception.admit(letter)
  await run(DONE)
  const deltas = () => ask('select seq from events where delta = 1')
  const events = () => ask('select seq from events')
  assert.ok((await deltas()) > 0)
  await pass(2.5 * HOUR_MS)
  assert.equal(await deltas(), 0)
  await pass(6 * DAY_MS)
  assert.ok((await events()) > 0, 'events are kept for a week')
  await pass(DAY_MS + 2 * HOUR_MS)
  assert.equal(await events(), 0)
  await pass(22 * DAY_MS)
  assert.ok(await local.reception.task(taskId), 'a task is kept for 29 days')
  assert.equal((await local.reception.admit(letter)).duplicate, true)
  await pass(DAY_MS + 2 * HOUR_MS)
  assert.equal(await local.reception.task(taskId), undefined)
})

test('IN-7 by default a message that no worker takes fails as expired after 24 hours', async (t) => {
  const { local, live } = await openInbox(t)
  const { taskId } = await local.reception.admit(letterTo('w'))
  const state = async () => (await local.reception.task(taskId))?.status.state
  await live(23.5 * HOUR_MS)
  assert.equal(await state(), 'TASK_STATE_SUBMITTED')
  await live(HOUR_MS)
  await waitUntil(async () => (await state()) === 'TASK_STATE_FAILED', 'the message expires', 20_000)
})
