import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { leaseOf, letterTo } from '../../../test/fakes/letters.ts'
import { openTestStore } from '../../../test/harness/stores/sqlite-store.ts'
import type { Lease } from '../../inbox/worker.ts'
import type { Brief } from '../../protocol/brief.ts'
import { withBudget } from '../../protocol/delegation.ts'
import { type Store, sql } from '../../store/store.ts'
import { budgetStep } from './budget-check.ts'
import { turnLimitStep } from './turn-limit.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const PLAIN: Brief = { runtime: 'model', options: {}, systemPrompt: '', workingDir: '/', maxAttempts: 1, env: {} }

/** Briefs of a model agent with this limit. `end` stores an ended turn, so many milliseconds ago. */
function setUp(t: TestContext, limit?: number) {
  const { clock, store } = openTestStore(t)
  let given: Brief = { ...PLAIN, options: { cmd: 'x', ...(limit !== undefined && { max_turns_per_hour: `${limit}` }) } }
  const seen = { reads: 0 }
  const read: Store['read'] = (transaction) => {
    seen.reads += 1
    return store.read(transaction)
  }
  const isMetered = (runtime: string) => runtime === 'model'
  const limitTurns = turnLimitStep({ store: { ...store, read }, clock, isMetered })
  const makeBrief = (key: Parameters<typeof limitTurns>[1]) => limitTurns(given, key)
  const brief = (messageId: string, workspaceId = 'ws_1') => makeBrief({ workspaceId, messageId })
  const parkedMs = async (messageId: string, workspaceId?: string) =>
    (await brief(messageId, workspaceId)).parked?.afterMs
  const retry = (messageId: string, attempt: Partial<Lease>) =>
    makeBrief({ workspaceId: 'ws_1', messageId, failures: 0, losses: 0, ...attempt })
  const end = (messageId: string, agoMs = 0, { workspaceId = 'ws_1', epoch = 1 } = {}) =>
    store.write(() =>
      sql(
        `insert into turn_usage (message_id, epoch, workspace_id, task_id, outcome, ended_at)
         values ($1, $4, $2, 't', 'done', now_ms() - $3)`,
        [messageId, workspaceId, agoMs, epoch],
      ),
    )
  const use = (other: Brief) => {
    given = other
  }
  return { clock, brief, retry, parkedMs, end, use, seen }
}

test('RT-13 sixty turns an hour is the default; the next one waits with the reason', async (t) => {
  const { brief, end } = setUp(t)
  for (let count = 0; count < 59; count++) await end(`ended ${count}`, 30 * MINUTE_MS)
  assert.deepEqual(await brief('sixtieth'), { ...PLAIN, options: { cmd: 'x' }, metered: true })
  const reason = 'waiting: the 60 turns an hour of this workspace are used up (max_turns_per_hour), next in 30 min'
  assert.deepEqual(await brief('next'), {
    ...PLAIN,
    options: { cmd: 'x' },
    metered: true,
    parked: { afterMs: 30 * MINUTE_MS, reason, waitsFor: 'turns_per_hour' },
  })
})

test('RT-13 a backend without a model, and a brief that is parked already, keep all options and count nothing', async (t) => {
  const { brief, parkedMs, use } = setUp(t, 1)
  const options = { max_turns_per_hour: '1' }
  const parked = { afterMs: 7, reason: 'budget' }
  for (const given of [
    { ...PLAIN, runtime: 'exec', options },
    { ...PLAIN, options, parked },
  ]) {
    use(given)
    for (const id of ['a', 'b']) assert.equal(await brief(id), given)
  }
  use({ ...PLAIN, options })
  assert.equal(await parkedMs('first'), undefined)
})

test('RT-13 a turn that has ended counts once, and one that still runs counts with the time of its start', async (t) => {
  const { clock, parkedMs, end } = setUp(t, 2)
  assert.equal(await parkedMs('a'), undefined)
  clock.advance(10 * MINUTE_MS)
  await end('a')
  clock.advance(5 * MINUTE_MS)
  assert.equal(await parkedMs('b'), undefined)
  clock.advance(15 * MINUTE_MS)
  assert.equal(await parkedMs('c'), 40 * MINUTE_MS, 'a ended 20 min ago')
  clock.advance(40 * MINUTE_MS)
  assert.equal(await parkedMs('c'), undefined)
  assert.equal(await parkedMs('d'), 5 * MINUTE_MS, 'b began 55 min ago')
})

test('RT-13 a turn counts for an hour: its end to the millisecond, its start if it still runs', async (t) => {
  const { clock, parkedMs, end } = setUp(t, 1)
  await end('a', HOUR_MS)
  assert.equal(await parkedMs('b'), undefined, 'it ended an hour ago')
  clock.advance(HOUR_MS - 1)
  assert.equal(await parkedMs('c'), 1000, 'a message is parked for a second at least')
  clock.advance(1)
  assert.equal(await parkedMs('c'), undefined, 'b began an hour ago')
  assert.equal(await parkedMs('d'), HOUR_MS)
})

test('RT-13 the wait ends when the oldest of the last turns is an hour old, and no other workspace counts', async (t) => {
  const { parkedMs, end } = setUp(t, 2)
  await end('oldest', 50 * MINUTE_MS)
  await end('older', 40 * MINUTE_MS)
  await end('newest', 10 * MINUTE_MS)
  for (const [index, ago] of [0, 1, 5].entries()) await end(`other ${index}`, ago * MINUTE_MS, { workspaceId: 'ws_2' })
  assert.equal(await parkedMs('now'), 20 * MINUTE_MS)
  assert.equal(await parkedMs('first', 'ws_3'), undefined)
  assert.equal(await parkedMs('second', 'ws_3'), undefined)
  assert.equal(await parkedMs('third', 'ws_3'), HOUR_MS)
})

test('RT-13 a further attempt at a message is no further turn, and none is counted', async (t) => {
  const { clock, parkedMs, end, retry } = setUp(t, 2)
  assert.equal(await parkedMs('a'), undefined)
  await end('a')
  for (const [epoch, attempt] of [
    { failures: 1 },
    { losses: 1 },
    { interrupted: true },
    { sessionRetried: true },
    { parked: { times: 1, sinceMs: 5 } },
  ].entries()) {
    assert.equal((await retry('a', attempt)).parked, undefined)
    await end('a', 0, { epoch: epoch + 2 })
  }
  assert.equal(await parkedMs('b'), undefined, 'one turn of two is used')
  assert.equal((await retry('a', { failures: 2 })).parked, undefined, 'the hour is used up, and the attempt runs')
  assert.equal((await retry('a', { failures: 2 })).metered, true)
  clock.advance(10 * MINUTE_MS)
  assert.equal(await parkedMs('c'), 50 * MINUTE_MS)
})

test('RT-13 a running turn is not forgotten when another one of its workspace has ended', async (t) => {
  const { clock, parkedMs, end } = setUp(t, 2)
  await parkedMs('ends')
  clock.advance(MINUTE_MS)
  await parkedMs('runs')
  await end('ends')
  assert.equal(await parkedMs('waits'), HOUR_MS)
  clock.advance(MINUTE_MS)
  assert.equal(await parkedMs('waits'), 59 * MINUTE_MS)
})

test('RT-13 a turn below the limit costs one query, whatever ended before the hour or elsewhere', async (t) => {
  const { parkedMs, end, seen } = setUp(t, 1)
  await end('before the hour', HOUR_MS)
  await end('long before', 2 * HOUR_MS)
  await end('elsewhere', 0, { workspaceId: 'ws_2' })
  await end('also elsewhere', 0, { workspaceId: 'ws_2' })
  assert.equal(await parkedMs('a'), undefined)
  assert.equal(seen.reads, 1)
})

test('only a message or a workspace with a budget is checked, and a spent one is parked', async () => {
  const lease = (maxCostUsd?: number): Lease => {
    const { envelope } = letterTo('ws_1')
    return leaseOf({ envelope: { ...envelope, message: { ...envelope.message, ...withBudget(maxCostUsd) } } })
  }
  const checked: unknown[] = []
  let parked: Brief['parked']
  const briefOf = (given: Brief, maxCostUsd?: number) =>
    budgetStep(async (turn) => {
      checked.push([turn.mayHaveMessageBudget, turn.costUsdPerDayMax])
      assert.deepEqual([turn.workspaceId, turn.messageId, turn.taskId], ['ws_1', 'm', 't'])
      return parked
    })(given, lease(maxCostUsd))
  const daily = { ...PLAIN, costUsdPerDayMax: 5 }
  assert.equal(await briefOf(PLAIN), PLAIN)
  assert.deepEqual(checked, [])
  assert.equal(await briefOf(PLAIN, 2), PLAIN)
  assert.equal(await briefOf(daily), daily)
  assert.equal(await briefOf(daily, 2), daily)
  assert.deepEqual(checked, [
    [true, undefined],
    [false, 5],
    [true, 5],
  ])
  parked = { afterMs: 9, reason: 'spent' }
  assert.deepEqual(await briefOf(daily), { ...daily, parked })
})
