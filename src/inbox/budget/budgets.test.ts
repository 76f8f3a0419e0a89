/** Budgets: which of them are asked about, and what an answer does to the messages that wait, and to no other message. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { childOf } from '../../../test/contracts/inbox/team.ts'
import { letterTo } from '../../../test/fakes/letters.ts'
import { openBudgets, withMax } from '../../../test/harness/budgets.ts'
import { hasCodeAndText } from '../../../test/harness/check-error.ts'
import { keyOf, leasesIn, openInboxOnClock } from '../../../test/harness/inbox-on-clock.ts'
import { MoleculeError } from '../../errors.ts'
import type { BudgetAsk } from '../owners.ts'

const ana = { name: 'Ana', principal: 'token:ana', door: 'http' }
const HOUR_MS = 3600_000
const DAY_MS = 24 * HOUR_MS
const SWEEP_MS = 5000

test('TW-10 the list has each spent budget that a message waits for, the oldest first', async (t) => {
  const inbox = openInboxOnClock(t)
  const [a, b] = [await inbox.workspace(), await inbox.workspace()]
  const nowMs = inbox.clock.nowMs()
  const today = Math.floor(nowMs / DAY_MS)
  const plant = (
    id: string,
    workspaceId: string,
    { state = 'asked', askedAtMs = 1, day = null as number | null } = {},
  ) =>
    inbox.sql(
      `insert into budgets (id, workspace_id, root_id, task_id, day, limit_usd, state, asked_at)
       values ($1, $2, $3, $4, $5, 0.5, $6, $7)`,
      ...[id, workspaceId, day === null ? id : null, day === null ? `task-${id}` : null, day, state, askedAtMs],
    )
  const wait = async (workspaceId: string, budgetId: string) => {
    const { taskId } = await inbox.local.reception.admit(letterTo(workspaceId))
    await inbox.sql('insert into budget_waits values ($1, $2, $3, now_ms())', taskId, workspaceId, budgetId)
    return taskId
  }
  await plant('two', a, { askedAtMs: 2 })
  await plant('one', b, { askedAtMs: 2 })
  await plant('first', a)
  await plant('open', a, { state: 'open' })
  await plant('stopped', a, { state: 'stopped' })
  await plant('left', a)
  await plant('ended', a)
  await plant('day', a, { day: today, askedAtMs: 3 })
  await plant('yesterday', a, { day: today - 1 })
  for (const id of ['two', 'two', 'first', 'open', 'stopped', 'day', 'yesterday']) await wait(a, id)
  await wait(b, 'one')
  await inbox.local.reception.cancel(await wait(a, 'ended'))
  await inbox.sql(
    `insert into turn_usage (message_id, epoch, workspace_id, task_id, outcome, ended_at, cost_usd)
     values ('u1', 1, $1, 'x', 'done', now_ms(), 0.25), ('u2', 1, $1, 'x', 'done', now_ms(), null),
       ('u3', 1, $2, 'x', 'done', now_ms(), 9)`,
    ...[a, b],
  )
  const list = async (query = {}) => await inbox.local.budgets.list(query)
  const ask = (id: string, values: Partial<BudgetAsk>): BudgetAsk => ({
    id,
    workspaceId: a,
    taskId: `task-${id}`,
    limitUsd: 0.5,
    spentUsd: 0,
    unknownTurns: 0,
    waiting: 1,
    text: 'the budget of this message, $0.50, is spent ($0.00); 1 message waits',
    askedAtMs: 1,
    ...values,
  })
  const twice = 'the budget of this message, $0.50, is spent ($0.00); 2 messages wait'
  const { taskId: _none, ...ofDay } = ask('day', {
    spentUsd: 0.25,
    unknownTurns: 1,
    askedAtMs: 3,
    text: "today's budget of this workspace, $0.50, is spent (≥ $0.25, 1 turn of unknown cost); 1 message waits",
  })
  const expected = [
    ask('first', {}),
    ask('one', { workspaceId: b, askedAtMs: 2 }),
    ask('two', { waiting: 2, text: twice, askedAtMs: 2 }),
    ofDay,
  ]
  const idsOf = async (query: object) => (await list(query)).map(({ id }) => id)
  assert.deepEqual(await list(), expected)
  assert.deepEqual(await idsOf({ workspaceId: a }), ['first', 'two', 'day'])
  assert.deepEqual(await idsOf({ workspaceId: b }), ['one'])
  assert.deepEqual(await idsOf({ id: 'two' }), ['two'])
  assert.deepEqual(await idsOf({ workspaceId: b, id: 'two' }), [])
  assert.deepEqual(await idsOf({ id: 'left' }), [])
  // Budgets that no message waits for do not hide the others.
  await Promise.all(
    Array.from({ length: 201 }, async (_, count) => {
      await plant(`left${count}`, b)
      await plant(`n${count}`, b, { askedAtMs: 9 })
      await wait(b, `n${count}`)
    }),
  )
  assert.equal((await list()).length, 200)
})

test('TW-10 a task waits for the budget of its open message that has waited longest, as long as an owner has not raised it', async (t) => {
  const { inbox, a } = await openBudgets(t)
  const budget = (id: string, state: string) =>
    inbox.sql(
      `insert into budgets (id, workspace_id, root_id, limit_usd, state, asked_at) values ($1, 'w', $1, 1, $2, $3)`,
      ...[id, state, id.length],
    )
  const wait = (messageId: string, budgetId: string, since: number) =>
    inbox.sql('insert into budget_waits values ($1, $2, $3, $4)', messageId, a, budgetId, since)
  for (const [id, state] of [
    ['asked', 'asked'],
    ['stopped', 'stopped'],
    ['open', 'open'],
  ] as const)
    await budget(id, state)
  const { waitOf } = inbox.local.budgets
  const admit = async (taskId?: string) => {
    const letter = letterTo(a, { ...(taskId !== undefined && { taskId }) })
    const id = `01MESSAGE${(await inbox.sql('select id from messages')).length}`
    return { ...(await inbox.local.reception.admit({ ...letter, id })), id }
  }
  const [first, other, stopped, open, ended] = [
    await admit(),
    await admit(),
    await admit(),
    await admit(),
    await admit(),
  ]
  const later = await admit(first.taskId)
  await wait(first.id, 'asked', 20)
  assert.deepEqual(await waitOf(first.taskId), { budgetId: 'asked', askedAtMs: 5, isAsked: true })
  assert.equal(await waitOf(other.taskId), undefined)
  await wait(later.id, 'stopped', 10)
  assert.deepEqual(await waitOf(first.taskId), { budgetId: 'stopped', askedAtMs: 7, isAsked: false })
  await wait(stopped.id, 'stopped', 1)
  await wait(open.id, 'open', 1)
  await wait(ended.id, 'asked', 1)
  await inbox.sql(`update messages set settled_at = 1, state = 'done' where id = $1`, ended.id)
  assert.deepEqual(await waitOf(stopped.taskId), { budgetId: 'stopped', askedAtMs: 7, isAsked: false })
  assert.deepEqual([await waitOf(open.taskId), await waitOf(ended.taskId)], [undefined, undefined])
})

test('TW-10 a raise wakes the messages that wait for that budget at once, and no message that waits for something else', async (t) => {
  const { inbox, a, b, workerA, workerB, begin, settle, check, park, budgets } = await openBudgets(t)
  // Another tree waits for its own budget, and a message waits for its next attempt.
  const [root, other] = [await begin(withMax(letterTo(a), 0.01)), await begin(withMax(letterTo(a), 0.01))]
  const failed = await begin(letterTo(a))
  const failure = { code: 'exit', message: 'it broke' }
  const retry = { type: 'retry', failure, afterMs: HOUR_MS, reason: 'failure', interrupted: false } as const
  await inbox.local.inbox.settle(failed, { ...retry, usage: { durationMs: 1, costUsd: 5 } })
  const [cheap, child, second] = [
    await begin(childOf(root, b)),
    await begin(childOf(root, b)),
    await begin(childOf(root, b)),
  ]
  const stranger = await begin(childOf(other, b))
  await settle(await begin(childOf(other, b)), 0.03)
  await settle(cheap, 0.02)
  inbox.notified.length = 0
  assert.deepEqual(await park(child), {
    afterMs: HOUR_MS,
    reason: 'waiting: the budget of this message, $0.01, is spent ($0.02); the owner is asked to raise it or to stop',
  })
  assert.deepEqual(inbox.notified.slice(0, 1), [a])
  await park(second)
  await park(stranger)
  const readyAt = async () =>
    await inbox.sql('select id, ready_at from messages where state = $1 order by id', 'queued')
  const before = await readyAt()
  const { raise } = inbox.local.budgets
  const refused = (usd: number, code: string, text: RegExp) =>
    assert.rejects(raise(root.messageId, usd, ana), hasCodeAndText(code, text))
  await refused(0.02, 'invalid_request', /^\$0\.02 is spent already \(\$0\.02\); give more$/)
  await refused(0, 'invalid_request', /^max_cost_usd must be a number above 0 and up to 1000000$/)
  await refused(1_000_001, 'invalid_request', /^max_cost_usd must be/)
  await assert.rejects(
    raise('none', 1, ana),
    hasCodeAndText('not_found', /^no budget with the id "none" was asked about$/),
  )
  assert.deepEqual(await readyAt(), before)
  inbox.clock.advance(1000)
  inbox.notified.length = 0
  await raise(root.messageId, 0.05, ana)
  assert.deepEqual(inbox.notified, [a, b, b])
  const woken = leasesIn(await workerB.take())
  assert.deepEqual(woken.map(({ messageId }) => messageId).sort(), [child.messageId, second.messageId].sort())
  assert.deepEqual(await workerA.take(), [])
  const kept = (rows: typeof before) => rows.filter(({ id }) => id === failed.messageId || id === stranger.messageId)
  assert.deepEqual(await readyAt(), kept(before))
  assert.deepEqual(await budgets(), [
    [root.messageId, 'open', 0.05],
    [other.messageId, 'asked', 0.01],
  ])
  const waits = async () => (await inbox.sql('select message_id from budget_waits')).map((row) => row['message_id'])
  assert.deepEqual(await waits(), [stranger.messageId])
  const steps = await inbox.local.activity.read({ workspaceId: a, sinceSeq: 0, type: 'budget', limit: 10 })
  const spent = 'the budget of this message, $0.01, is spent'
  assert.deepEqual(
    steps.entries.map(({ taskId, name, text, by }) => [taskId, name, text, by]),
    [
      [root.taskId, 'asked', `${spent} ($0.02): the owner is asked`, undefined],
      [other.taskId, 'asked', `${spent} ($0.03): the owner is asked`, undefined],
      [root.taskId, 'raised', 'the budget was raised from $0.01 to $0.05', 'Ana'],
    ],
  )
  // The same answer again changes nothing; a smaller one, or a stop, is too late.
  inbox.notified.length = 0
  await raise(root.messageId, 0.05, ana)
  assert.deepEqual(inbox.notified, [])
  await refused(0.04, 'unsupported_operation', /^this budget was raised to \$0\.05 already$/)
  const late = hasCodeAndText('unsupported_operation', /^this budget was raised to \$0\.05 already$/)
  await assert.rejects(inbox.local.budgets.stop(root.messageId, ana), late)
  assert.equal(await check(woken[0]), undefined)
  assert.deepEqual(await waits(), [stranger.messageId])
})

test('TW-10 a stop cancels what waits for that budget, and what it has delegated', async (t) => {
  const { inbox, a, b, begin, settle, park, budgets } = await openBudgets(t)
  const [root, other] = [await begin(withMax(letterTo(a), 0.01)), await begin(withMax(letterTo(a), 0.015))]
  const [child, stranger] = [await begin(childOf(root, b)), await begin(childOf(other, b))]
  // The child has delegated before it was parked.
  const third = await inbox.workspace()
  const workerC = inbox.worker([third])
  const grandchild = await inbox.local.reception.admit(childOf(child, third))
  const running = await workerC.lease()
  await settle(await begin(childOf(root, b)), 0.02)
  await settle(await begin(childOf(other, b)), 0.02)
  await park(child)
  await park(stranger)
  inbox.notified.length = 0
  await inbox.local.budgets.stop(root.messageId, ana)
  assert.ok(inbox.notified.includes(a) && inbox.notified.includes(b))
  assert.deepEqual(await workerC.take(), [{ type: 'stop', key: keyOf(running) }])
  const canceled = await inbox.local.reception.task(child.taskId)
  assert.equal(canceled?.status.state, 'TASK_STATE_CANCELED')
  const reason = 'the budget of this message, $0.01, is spent ($0.02), and the owner stopped it'
  assert.deepEqual(canceled?.status.message?.parts, [{ text: reason }])
  const [stored] = await inbox.sql('select status_message from tasks where id = $1', child.taskId)
  assert.equal(JSON.parse(String(stored?.['status_message'])).code, 'canceled')
  assert.equal(await inbox.state(grandchild.taskId), 'TASK_STATE_CANCELED')
  assert.notEqual(await inbox.state(stranger.taskId), 'TASK_STATE_CANCELED')
  assert.deepEqual(await budgets(), [
    [root.messageId, 'stopped', 0.01],
    [other.messageId, 'asked', 0.015],
  ])
  const waits = await inbox.sql('select message_id from budget_waits')
  assert.deepEqual(
    waits.map((row) => row['message_id']),
    [stranger.messageId],
  )
  const steps = await inbox.local.activity.read({ workspaceId: a, sinceSeq: 0, type: 'budget', limit: 10 })
  const spent = 'the budget of this message, $0.01, is spent ($0.02)'
  assert.deepEqual(
    steps.entries.slice(2).map(({ taskId, name, text, by }) => [taskId, name, text, by]),
    [[root.taskId, 'stopped', `${spent}: what waits for it is cancelled`, 'Ana']],
  )
  inbox.notified.length = 0
  await inbox.local.budgets.stop(root.messageId, ana)
  assert.deepEqual(inbox.notified, [])
  const late = hasCodeAndText('unsupported_operation', /^this budget was stopped already$/)
  await assert.rejects(inbox.local.budgets.raise(root.messageId, 1, ana), late)
})

test('TW-10 a stop also ends a running turn of the task that waits', async (t) => {
  const { inbox, a, workerA, begin } = await openBudgets(t)
  const root = await begin(withMax(letterTo(a), 0.01))
  const id = '01LATER0000000000000000000'
  await inbox.local.reception.admit({ ...letterTo(a, { taskId: root.taskId }), id })
  await inbox.sql('insert into budget_waits values ($1, $2, $3, now_ms())', id, a, root.messageId)
  await inbox.sql(`update budgets set state = 'asked', asked_at = 1`)
  await inbox.local.budgets.stop(root.messageId, ana)
  assert.deepEqual(await workerA.take(), [{ type: 'stop', key: keyOf(root) }])
  assert.equal(await inbox.state(root.taskId), 'TASK_STATE_CANCELED')
})

test('TW-10 the sweep forgets waits whose message has ended or is gone, or whose budget is gone, and wakes the latter', async (t) => {
  const { inbox, a, b, begin, park, workerB, settle } = await openBudgets(t)
  const root = await begin(withMax(letterTo(a), 0.01))
  await settle(await begin(childOf(root, b)), 0.02)
  const child = await begin(childOf(root, b))
  await park(child)
  const wait = (messageId: string, budgetId: string) =>
    inbox.sql('insert into budget_waits values ($1, $2, $3, now_ms())', messageId, a, budgetId)
  await wait('gone', root.messageId)
  await wait(root.messageId, root.messageId)
  const waits = async () =>
    (await inbox.sql('select message_id from budget_waits')).map((row) => row['message_id']).sort()
  await inbox.pass(SWEEP_MS)
  // A running message keeps its wait: it is about to be parked.
  assert.deepEqual(await waits(), [root.messageId, child.messageId].sort())
  await settle(root)
  await inbox.pass(SWEEP_MS)
  assert.deepEqual(await waits(), [child.messageId])
  await inbox.sql('delete from budgets')
  await inbox.pass(SWEEP_MS)
  assert.deepEqual(await waits(), [])
  assert.equal((await workerB.lease()).messageId, child.messageId)
})

test('TW-10 a wait that cannot be handled is tried again with the next sweep, and named once in the log', async (t) => {
  const { inbox, a, b, workerB, begin, settle, park } = await openBudgets(t)
  const root = await begin(withMax(letterTo(a), 0.01))
  const child = await begin(childOf(root, b))
  await settle(await begin(childOf(root, b)), 0.02)
  await park(child)
  let writes = 0
  inbox.failWrites(() => (++writes > 1 ? new Error('the disk is away') : undefined))
  await inbox.local.budgets.raise(root.messageId, 1, ana)
  assert.deepEqual(
    inbox.warnings.map(({ fields, message }) => [fields['messageId'], message]),
    [[child.messageId, 'a message that waits for a budget could not go on']],
  )
  assert.deepEqual(await workerB.take(), [])
  inbox.failWrites(() => undefined)
  await inbox.pass(SWEEP_MS)
  assert.equal((await workerB.lease()).messageId, child.messageId)
})

test('TW-10 a stop that meets a task which has just ended changes nothing; one that fails is tried again', async (t) => {
  const { inbox, a, b, begin, settle, park } = await openBudgets(t)
  const root = await begin(withMax(letterTo(a), 0.01))
  const [ended, child] = [await begin(childOf(root, b)), await begin(childOf(root, b))]
  await settle(await begin(childOf(root, b)), 0.02)
  await park(ended)
  await park(child)
  await inbox.sql(`update tasks set state = 'TASK_STATE_COMPLETED' where id = $1`, ended.taskId)
  // The answer is stored, the ended task is left alone and forgotten, and then the store fails once.
  let writes = 0
  inbox.failWrites(() => (++writes === 4 ? new MoleculeError('store_unavailable', 'the disk is away') : undefined))
  await inbox.local.budgets.stop(root.messageId, ana)
  assert.deepEqual(
    inbox.warnings.map(({ fields }) => fields['messageId']),
    [child.messageId],
  )
  assert.deepEqual(await inbox.sql('select message_id from budget_waits'), [])
  const states = [await inbox.state(ended.taskId), await inbox.state(child.taskId)]
  assert.deepEqual(states, ['TASK_STATE_COMPLETED', 'TASK_STATE_CANCELED'])
})
