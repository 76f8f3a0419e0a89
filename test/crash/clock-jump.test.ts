/**
 * The wall clock jumps while a platform runs, or between two platforms, as when a time server corrects it. Stored
 * times are the store's: wall time at its start plus monotonic time. So no message is due too early or waits an hour
 * too long. (On PostgreSQL the time is the server's.)
 */

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Clock } from '../../src/clock.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { sql } from '../../src/store/store.ts'
import { letterTo } from '../fakes/letters.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { openLocalInbox } from '../harness/stores/local-inbox.ts'
import { waitUntil } from '../harness/wait.ts'

const START_MS = 1_800_000_000_000
const HOUR_MS = 3_600_000

/** A clock whose wall time and monotonic time can be moved apart. */
function jumpingClock() {
  const times = { wallMs: START_MS, monotonicMs: 5000 }
  const clock: Clock = {
    nowMs: () => times.wallMs,
    monotonicMs: () => times.monotonicMs,
    after: () => () => undefined,
  }
  const pass = (ms: number) => {
    times.wallMs += ms
    times.monotonicMs += ms
  }
  return { clock, times, pass }
}

function openStore(t: TestContext, clock: Clock) {
  const store = openSqlite({ path: join(temporaryDir(t), 'molecule.db'), clock })
  t.after(() => store.close())
  const now = async () => {
    const [row] = await store.write(() => sql<{ ms: number }>('select now_ms() as ms'))
    return row?.ms ?? 0
  }
  return { store, now }
}

test('RE-3 when the wall clock jumps back an hour, the time of the store continues', async (t) => {
  const { clock, times, pass } = jumpingClock()
  const { now } = openStore(t, clock)
  assert.equal(await now(), START_MS)
  pass(1000)
  times.wallMs -= HOUR_MS
  assert.equal(await now(), START_MS + 1000)
  pass(1)
  assert.equal(await now(), START_MS + 1001)
})

test('RE-3 when the wall clock jumps forward a day, no message is due a day too early', async (t) => {
  const { clock, times, pass } = jumpingClock()
  const { store, now } = openStore(t, clock)
  times.wallMs += 24 * HOUR_MS
  pass(5)
  assert.equal(await now(), START_MS + 5)
  const [read] = await store.read(() => sql<{ ms: number }>('select now_ms() as ms'))
  assert.equal(read?.ms, START_MS + 5, 'readers and writers have different times')
})

function openPlatform(path: string, clock: Clock) {
  const store = openSqlite({ path, clock })
  const local = openLocalInbox(store, clock)
  const close = async () => {
    local.close()
    await store.close()
  }
  return { store, local, close }
}

const WAITING = `select ready_at - now_ms() as wait_ms, expires_at - now_ms() as left_ms, now_ms() - parked_at as parked_ms
  from messages order by n, id`

test('RE-3 IN-7 when the wall clock is set back an hour between two platforms, waiting messages, retries and expiries keep their remaining time', async (t) => {
  const path = join(temporaryDir(t), 'molecule.db')
  const first = openPlatform(path, jumpingClock().clock)
  await first.store.write(() => sql(`insert into workspace_load (workspace_id, hosted, slots) values ('w', 1, 1)`))
  const { taskId } = await first.local.reception.admit(letterTo('w'))
  const { taskId: retried } = await first.local.reception.admit(letterTo('w'))
  const moved = 'ready_at = ready_at + 5000, parks = 1, parked_at = ready_at - 60000'
  await first.store.write(() => sql(`update messages set ${moved} where task_id = $1`, [retried]))
  const waiting = await first.store.read(() => sql(WAITING))
  await first.close()

  const { clock, times } = jumpingClock()
  times.wallMs -= HOUR_MS
  for (let start = 2; start <= 3; start++) {
    const { store, local, close } = openPlatform(path, clock)
    await local.recover()
    assert.deepEqual(await store.read(() => sql(WAITING)), waiting, `after start ${start}`)
    await close()
  }
  const { local, close } = openPlatform(path, clock)
  const stop = new AbortController()
  const directives = local.inbox.leases({ id: 'host.1', workspaces: 'hosted' }, stop.signal)[Symbol.asyncIterator]()
  const { value } = await directives.next()
  assert.equal(value?.type === 'lease' && value.lease.taskId, taskId)
  stop.abort()
  await directives.return?.()
  await close()
})

/** As `jumpingClock`, but timers fire when time passes. */
function tickingClock(wallMs: number) {
  const times = { wallMs, monotonicMs: 5000 }
  const timers = new Set<{ atMs: number; callback: () => void }>()
  const clock: Clock = {
    nowMs: () => times.wallMs,
    monotonicMs: () => times.monotonicMs,
    after(delayMs, callback) {
      const timer = { atMs: times.monotonicMs + delayMs, callback }
      timers.add(timer)
      return () => timers.delete(timer)
    },
  }
  const pass = (ms: number) => {
    times.wallMs += ms
    times.monotonicMs += ms
    for (const timer of timers) {
      if (timer.atMs > times.monotonicMs) continue
      timers.delete(timer)
      timer.callback()
    }
  }
  return { clock, pass }
}

const SWEEP_MS = 5000
const DAY_MS = 24 * HOUR_MS
const MARK_AGE = 'select now_ms() - at_ms as age_ms from upkeep_clock'

test('RE-3 IN-7 a wall clock that is 400 days ahead at the next start expires no waiting message; elapsed time still does', async (t) => {
  const path = join(temporaryDir(t), 'molecule.db')
  /** Lets a sweep run and waits for its mark. */
  const sweep = async ({ store }: ReturnType<typeof openPlatform>, passTime: (ms: number) => void) => {
    passTime(SWEEP_MS)
    await waitUntil(async () => {
      const [mark] = await store.read(() => sql<{ age_ms: number }>(MARK_AGE))
      return mark?.age_ms === 0
    }, 'the mark of a sweep')
  }
  const before = tickingClock(START_MS)
  const first = openPlatform(path, before.clock)
  await first.store.write(() => sql(`insert into workspace_load (workspace_id, hosted, slots) values ('w', 1, 1)`))
  const { taskId } = await first.local.reception.admit({ ...letterTo('w'), expiresInMs: 3 * 60_000 })
  await sweep(first, before.pass)
  await first.close()

  const { clock, pass } = tickingClock(START_MS + 400 * DAY_MS)
  const second = openPlatform(path, clock)
  const state = async () => (await second.local.reception.task(taskId))?.status.state
  await second.local.recover()
  await sweep(second, pass)
  assert.equal(await state(), 'TASK_STATE_SUBMITTED')
  const [left] = await second.store.read(() => sql<{ left_ms: number }>(WAITING))
  assert.ok(left !== undefined && Math.abs(left.left_ms - 3 * 60_000) <= 2 * SWEEP_MS, JSON.stringify(left))
  let passedMs = 0
  await waitUntil(async () => {
    pass(20_000)
    passedMs += 20_000
    return (await state()) === 'TASK_STATE_FAILED'
  }, 'the message expires after its time')
  assert.ok(passedMs >= 160_000, `expired after ${passedMs} ms`)
  await second.close()
})
