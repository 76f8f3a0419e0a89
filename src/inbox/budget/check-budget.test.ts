/** The check before a turn begins: which budgets cover it, what was spent of them, when the owner is asked, and until when it waits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { childOf } from '../../../test/contracts/inbox/team.ts'
import { letterTo } from '../../../test/fakes/letters.ts'
import { openBudgets, withMax } from '../../../test/harness/budgets.ts'
import { leasesIn } from '../../../test/harness/inbox-on-clock.ts'
import type { Lease } from '../inbox.ts'

const ana = { name: 'Ana', principal: 'token:ana', door: 'http' }
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

const moneyOf = ({ envelope }: Lease) => {
  const limits = envelope.message.metadata?.['molecule_delegation'] as Record<string, unknown> | undefined
  return { left: limits?.['cost_left_usd'], max: limits?.['max_cost_usd'], budgets: limits?.['budgets'] }
}

test('TW-10 a budget counts its own message and everything below it, to the cent, and no other tree', async (t) => {
  const { inbox, a, b, begin, settle, check, park } = await openBudgets(t)
  const [root, other] = [await begin(withMax(letterTo(a), 0.8)), await begin(withMax(letterTo(a), 0.8))]
  assert.equal(await check(root), undefined, 'nothing is spent')
  const limited = await begin(withMax(childOf(root, b), 0.5))
  assert.deepEqual(moneyOf(limited), { left: 0.5, max: 0.5, budgets: [root.messageId] })
  const sibling = await begin(childOf(root, b))
  assert.deepEqual(moneyOf(sibling), { left: 0.8, max: undefined, budgets: [root.messageId] })
  await settle(await begin(childOf(other, b)), 0.7)
  await settle(sibling, 0.1)
  assert.equal(await check(limited), undefined)
  await settle(await begin(childOf(root, b)), 0.6)
  assert.equal(await check(limited), undefined, 'siblings count for the root only')
  const next = await begin(childOf(root, b))
  assert.ok(Math.abs(Number(moneyOf(next).left) - 0.1) < 1e-9)
  assert.equal(await check(next), undefined)
  // 0.1 + 0.6 + 0.1 is a little less than 0.8 as a sum of floating point numbers.
  await settle(await begin(childOf(root, b)), 0.1)
  assert.equal((await park(next)).reason.includes('$0.80, is spent ($0.80)'), true)
  assert.deepEqual(moneyOf(await begin(childOf(root, b))), { left: 0, max: undefined, budgets: [root.messageId] })
  assert.equal(await check(other), undefined)
  const story = await inbox.local.stories.find({ id: other.taskId, scopeOf: () => ({ detail: true }) })
  assert.deepEqual(story?.budgets, [
    { limitUsd: 0.8, state: 'open', taskId: other.taskId, costUsd: 0.7, unknownTurns: 0 },
  ])
})

test('TW-10 the budget of a delegation is spent by what it delegates itself', async (t) => {
  const { inbox, a, b, begin, settle, check } = await openBudgets(t)
  const third = await inbox.workspace({ slots: 9 })
  const worker = inbox.worker([third])
  const root = await begin(withMax(letterTo(a), 5))
  const limited = await begin(withMax(childOf(root, b), 0.5))
  const delegate = async () => {
    await inbox.local.reception.admit(childOf(limited, third))
    return await worker.lease()
  }
  const [first, second] = [await delegate(), await delegate()]
  await settle(first, 0.6)
  assert.match((await check(second))?.reason ?? '', /the budget of this message, \$0\.50, is spent \(\$0\.60\)/)
  assert.equal(await check(root), undefined)
})

test('TW-10 turns of unknown cost add nothing to the sum and are named', async (t) => {
  const { a, b, begin, settle, park } = await openBudgets(t)
  const root = await begin(withMax(letterTo(a), 0.2))
  for (const cost of [undefined, 0.1, undefined, 0.1]) await settle(await begin(childOf(root, b)), cost)
  const parked = await park(await begin(childOf(root, b)))
  assert.equal(
    parked.reason,
    'waiting: the budget of this message, $0.20, is spent (≥ $0.20, 2 turns of unknown cost); the owner is asked to raise it or to stop',
  )
})

test('TW-10 a raise that comes between the look and the hold lets the turn begin, and the owner is not asked', async (t) => {
  const { inbox, a, b, begin, settle, check, budgets } = await openBudgets(t)
  const [root, other] = [await begin(withMax(letterTo(a), 0.01)), await begin(withMax(letterTo(a), 0.01))]
  await settle(await begin(childOf(root, b)), 0.02)
  const child = await begin(childOf(root, b))
  // The check reads at once and writes after the raise.
  const [raised, checked] = [inbox.local.budgets.raise(root.messageId, 0.05, ana), check(child)]
  await raised
  assert.equal(await checked, undefined)
  assert.deepEqual(await budgets(), [
    [root.messageId, 'open', 0.05],
    [other.messageId, 'open', 0.01],
  ])
  assert.deepEqual(await inbox.sql('select message_id from budget_waits'), [])
})

test('TW-10 a message that waited before begins without its wait, and another wait stays', async (t) => {
  const { inbox, a, begin, check } = await openBudgets(t)
  const [lease, other] = [await begin(withMax(letterTo(a), 1)), await begin(withMax(letterTo(a), 1))]
  for (const { messageId } of [lease, other]) {
    await inbox.sql('insert into budget_waits values ($1, $2, $3, 1)', messageId, a, messageId)
  }
  assert.equal(await check(lease), undefined)
  const waits = await inbox.sql('select message_id from budget_waits')
  assert.deepEqual(
    waits.map((row) => row['message_id']),
    [other.messageId],
  )
  assert.equal(await check(other), undefined)
  assert.deepEqual(await inbox.sql('select message_id from budget_waits'), [])
  // A turn that does not wait writes nothing.
  inbox.failWrites(() => new Error('no write is needed'))
  assert.equal(await check(other), undefined)
})

test('TW-10 a reader of the first task sees at once that its owner is asked', async (t) => {
  const { inbox, a, b, begin, settle, check } = await openBudgets(t)
  const root = await begin(withMax(letterTo(a), 0.01))
  const child = await begin(childOf(root, b))
  await settle(await begin(childOf(root, b)), 0.02)
  const { seq: afterSeq = 0 } = (await inbox.local.reception.snapshot(root.taskId)) ?? {}
  const stop = new AbortController()
  let entries = 0
  const followed = (async () => {
    for await (const _ of inbox.local.reception.follow(root.taskId, { afterSeq }, stop.signal)) entries += 1
  })()
  await inbox.pass()
  assert.equal(entries, 0)
  assert.ok(await check(child))
  await inbox.pass()
  assert.equal(entries, 1)
  stop.abort()
  await followed
})

test('TW-10 a message keeps the time since when it waits for one budget, and begins anew with another one', async (t) => {
  const { inbox, a, b, begin, settle, check } = await openBudgets(t)
  const root = await begin(withMax(letterTo(a), 0.01))
  const child = await begin(childOf(root, b))
  await settle(await begin(childOf(root, b)), 0.02)
  const startMs = inbox.clock.nowMs()
  const wait = async () => {
    const [row] = await inbox.sql('select budget_id, since from budget_waits where message_id = $1', child.messageId)
    return [row?.['budget_id'], Number(row?.['since']) - startMs]
  }
  assert.ok(await check(child))
  inbox.clock.advance(MINUTE_MS)
  assert.ok(await check(child))
  assert.deepEqual(await wait(), [root.messageId, 0])
  await inbox.local.budgets.raise(root.messageId, 1, ana)
  assert.ok(await check(child, 0.02))
  assert.deepEqual(await wait(), [`${b}.${Math.floor(startMs / DAY_MS)}`, MINUTE_MS])
})

test('TW-10 a stopped tree is held with the sentence of the stop, and asks no further time', async (t) => {
  const { inbox, a, b, begin, settle, check, park } = await openBudgets(t)
  const root = await begin(withMax(letterTo(a), 0.01))
  const [child, later] = [await begin(childOf(root, b)), await begin(childOf(root, b))]
  await settle(await begin(childOf(root, b)), 0.02)
  await park(child)
  await inbox.local.budgets.stop(root.messageId, ana)
  // A stop counts also where a turn that was counted before is forgotten.
  await inbox.sql('delete from turn_usage')
  inbox.notified.length = 0
  assert.deepEqual(await check(later), {
    afterMs: HOUR_MS,
    reason: 'the budget of this message, $0.01, is spent ($0.00), and the owner stopped it',
  })
  assert.deepEqual(inbox.notified, [])
  await inbox.sql('delete from workspace_load where workspace_id = $1', a)
})

test('TW-10 a budget of a workspace that is deleted is asked about without an entry in its activity', async (t) => {
  const { inbox, a, b, begin, settle, check } = await openBudgets(t)
  const root = await begin(withMax(letterTo(a), 0.01))
  const child = await begin(childOf(root, b))
  await settle(await begin(childOf(root, b)), 0.02)
  const events = async () => (await inbox.sql('select seq from events where workspace_id = $1', a)).length
  const before = await events()
  await inbox.sql('delete from workspace_load where workspace_id = $1', a)
  assert.ok(await check(child))
  assert.equal(await events(), before)
})

test('TW-10 the budget of a day has the turns of that UTC day and that workspace, from its first moment to its last', async (t) => {
  const { inbox, a, b, begin, check } = await openBudgets(t)
  const midnightMs = Math.floor(inbox.clock.nowMs() / DAY_MS) * DAY_MS
  let turns = 0
  const spend = (workspaceId: string, endedAtMs: number, costUsd: number | null) =>
    inbox.sql(
      `insert into turn_usage (message_id, epoch, workspace_id, task_id, outcome, ended_at, cost_usd)
       values ($1, 1, $2, 'x', 'done', $3, $4)`,
      ...[`u${++turns}`, workspaceId, endedAtMs, costUsd],
    )
  const lease = await begin(letterTo(a))
  assert.match((await check(await begin(letterTo(b)), 0))?.reason ?? '', /\$0\.00, is spent \(\$0\.00\);/)
  await spend(a, midnightMs - 1, 50)
  await spend(a, midnightMs + DAY_MS, 50)
  await spend(b, midnightMs + 1, 50)
  await spend(a, midnightMs, 0.5)
  await spend(a, midnightMs + DAY_MS - 1, 0.25)
  await spend(a, midnightMs + 5, null)
  assert.equal(await check(lease), undefined, 'this workspace has no budget')
  assert.equal(await check(lease, 0.76), undefined)
  inbox.notified.length = 0
  const reason =
    "waiting: today's budget of this workspace, $0.75, is spent (≥ $0.75, 1 turn of unknown cost); the owner is asked to raise it or to stop; it goes on at midnight UTC at the latest"
  assert.deepEqual(await check(lease, 0.75), { afterMs: 10 * MINUTE_MS, reason })
  assert.deepEqual(inbox.notified, [a])
  const steps = async () => {
    const { entries } = await inbox.local.activity.read({ workspaceId: a, sinceSeq: 0, type: 'budget', limit: 10 })
    return entries.map(({ taskId, name, text }) => [taskId, name, text])
  }
  const isAsked =
    "today's budget of this workspace, $0.75, is spent (≥ $0.75, 1 turn of unknown cost): the owner is asked"
  assert.deepEqual(await steps(), [[lease.taskId, 'asked', isAsked]])
  // It is asked once; near the end of the day a message comes back just after midnight.
  inbox.clock.advance(midnightMs + DAY_MS - 5 * MINUTE_MS - inbox.clock.nowMs())
  inbox.notified.length = 0
  assert.deepEqual(await check(lease, 0.75), { afterMs: 5 * MINUTE_MS + 100, reason })
  assert.deepEqual([inbox.notified, (await steps()).length], [[], 1])
})

test('TW-10 a day that an owner raised is asked about again when that is spent, and a larger limit of the workspace counts at once', async (t) => {
  const { inbox, a, workerA, begin, settle, check, park } = await openBudgets(t)
  const [lease, other] = [await begin(letterTo(a)), await begin(letterTo(a))]
  await settle(await begin(letterTo(a)), 1)
  await park(lease, 1)
  const asks = async () => (await inbox.local.budgets.list({})).map(({ limitUsd, askedAtMs }) => [limitUsd, askedAtMs])
  const id = (await inbox.local.budgets.list({}))[0]?.id ?? ''
  const startMs = inbox.clock.nowMs()
  assert.deepEqual(await asks(), [[1, startMs]])
  inbox.clock.advance(1000)
  await park(other, 1)
  assert.deepEqual(await asks(), [[1, startMs]])
  await inbox.local.budgets.raise(id, 1.5, ana)
  const [woken, second] = leasesIn(await workerA.take()) as [Lease, Lease]
  assert.equal(await check(woken, 1), undefined)
  await settle(await begin(letterTo(a)), 0.5)
  assert.match((await park(woken, 1)).reason, /today's budget of this workspace, \$1\.50, is spent \(\$1\.50\)/)
  assert.deepEqual(await asks(), [[1.5, startMs + 1000]])
  // config.yaml is changed to 2: the day goes on, and is asked about at 2.
  assert.equal(await check(second, 2), undefined)
  await settle(await begin(letterTo(a)), 0.5)
  inbox.clock.advance(1000)
  await park(second, 2)
  assert.deepEqual(await asks(), [[2, startMs + 2000]])
  const steps = await inbox.local.activity.read({ workspaceId: a, sinceSeq: 0, type: 'budget', limit: 10 })
  assert.deepEqual(
    steps.entries.map(({ taskId, name, by }) => [taskId, name, by]),
    [
      [lease.taskId, 'asked', undefined],
      [lease.taskId, 'raised', 'Ana'],
      [woken.taskId, 'asked', undefined],
      [second.taskId, 'asked', undefined],
    ],
  )
})

test('TW-10 a raise of a day between the look and the hold lets the turn begin', async (t) => {
  const { inbox, a, begin, settle, check, park } = await openBudgets(t)
  const [lease, waiting] = [await begin(letterTo(a)), await begin(letterTo(a))]
  await settle(await begin(letterTo(a)), 1)
  await park(waiting, 1)
  const [asked] = await inbox.local.budgets.list({})
  const [raised, checked] = [inbox.local.budgets.raise(asked?.id ?? '', 1.5, ana), check(lease, 1)]
  await raised
  assert.equal(await checked, undefined)
  assert.deepEqual(await inbox.local.budgets.list({}), [])
})

test('TW-10 the stop of a day cancels what waited then; what comes later waits for the next day', async (t) => {
  const { inbox, a, workerA, begin, settle, park } = await openBudgets(t)
  const [first, later] = [await begin(letterTo(a)), await begin(letterTo(a))]
  await settle(await begin(letterTo(a)), 1)
  await park(first, 1)
  const [asked] = await inbox.local.budgets.list({})
  await inbox.local.budgets.stop(asked?.id ?? '', ana)
  assert.equal(await inbox.state(first.taskId), 'TASK_STATE_CANCELED')
  inbox.clock.advance(1)
  const reason =
    "waiting: today's budget of this workspace, $1.00, is spent ($1.00); it goes on at midnight UTC at the latest"
  assert.deepEqual(await park(later, 1), { afterMs: 10 * MINUTE_MS, reason })
  await inbox.pass(5000)
  assert.equal(await inbox.state(later.taskId), 'TASK_STATE_WORKING')
  assert.deepEqual(await inbox.local.budgets.waitOf(later.taskId), {
    budgetId: asked?.id,
    askedAtMs: asked?.askedAtMs,
    isAsked: false,
  })
  const { entries } = await inbox.local.activity.read({ workspaceId: a, sinceSeq: 0, type: 'budget', limit: 10 })
  assert.deepEqual(
    entries.map(({ taskId, name, by }) => [taskId, name, by]),
    [
      [first.taskId, 'asked', undefined],
      [first.taskId, 'stopped', 'Ana'],
    ],
  )
  assert.deepEqual(await workerA.take(), [])
})
