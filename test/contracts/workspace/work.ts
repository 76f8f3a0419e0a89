/** What a workspace and its card show of its messages: the running turn, what waits, what needs a person, what today cost. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Outcome } from '../../../src/inbox/worker.ts'
import { createCardReader, type ReadCards, type WorkspaceCard } from '../../../src/views/workspace-cards.ts'
import { letterTo } from '../../fakes/letters.ts'
import { insertWorkspace } from '../../harness/stores/insert-workspace.ts'
import { done, failure } from '../inbox/harness.ts'
import type { WorkspacesUnderTest } from './under-test.ts'

export function workTests(opened: WorkspacesUnderTest): void {
  test('RT-4 a workspace shows its running turn, since when, and nothing of another workspace', async () => {
    const { make, seen, inbox } = opened
    const [id, other] = [await make({ runtime: 'external', maxConcurrentTasks: 2 }), await make()]
    await inbox.withWorker(id, async (worker) => {
      for (const text of ['the  work', 'more', 'later']) await inbox.local.reception.admit(letterTo(id, { text }))
      const first = await worker.lease()
      const second = await worker.lease()
      const busy = await seen(id)
      assert.deepEqual([busy.currentTask, busy.running, busy.queueDepth], ['2 turns running', 2, 1])
      await inbox.local.inbox.settle(second, done('ok'))
      const third = await worker.lease()
      await inbox.local.inbox.settle(third, done('ok'))
      const one = await seen(id)
      assert.deepEqual([one.currentTask, one.currentSinceMs !== undefined], ['the work', true])
      await inbox.local.inbox.settle(first, done('ok'))
    })
    for (const each of [id, other])
      assert.deepEqual([(await seen(each)).currentTask, (await seen(each)).currentSinceMs], [undefined, undefined])
  })

  test('PL-23 a list shows of a large running message only its size', async () => {
    const { make, workspaces, inbox } = opened
    const id = await make({ runtime: 'external' })
    await inbox.withWorker(id, async (worker) => {
      await inbox.local.reception.admit(letterTo(id, { text: 'x'.repeat(16 * 1024) }))
      const lease = await worker.lease()
      const listed = (await workspaces.all()).find((one) => one.id === id)
      assert.equal(listed?.currentTask, 'a message of 17 KB')
      await inbox.local.inbox.settle(lease, done('ok'))
    })
  })

  test('PL-4 AG-16 a workspace counts the permissions it asks for; one that takes no message although it could is degraded', async () => {
    const { make, seen, inbox, registry } = opened
    const [id, other] = [await make({ runtime: 'external' }), await make({ runtime: 'external' })]
    for (const each of [id, other]) await registry.heartbeat(each, {})
    await inbox.withWorker(id, async (worker) => {
      for (let n = 0; n < 2; n++) await inbox.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      const older = 'update conversations set ready_at = ready_at - 61500 where workspace_id = $1'
      await inbox.sql(older, id)
      assert.equal((await seen(id)).status, 'online', 'its one slot is in use')
      await inbox.local.inbox.ask(lease, { kind: 'permission', id: '1', parts: [], tool: 'Bash', subject: 'make' })
      assert.deepEqual([(await seen(id)).permissionsAsked, (await seen(other)).permissionsAsked], [1, undefined])
      await inbox.local.reception.cancel(lease.taskId)
      await inbox.local.inbox.settle(lease, { type: 'stopped' })
      await inbox.local.inbox.settle(await worker.lease(), done('ok'))
      assert.equal((await seen(id)).permissionsAsked, undefined)
    })
    await inbox.local.reception.admit(letterTo(id))
    await inbox.sql('update conversations set ready_at = ready_at - 61500 where workspace_id = $1', id)
    const { status, statusReason } = await seen(id)
    assert.deepEqual([status, statusReason], ['degraded', 'it is alive and takes no messages: one has waited for 1m1s'])
    assert.equal((await seen(other)).status, 'online')
  })

  test('RT-14 of several parked messages the one that is tried next is the reason; a plain retry is none', async () => {
    const { make, seen, inbox } = opened
    const [id, other] = [await make(), await make()]
    const retry = { type: 'retry', reason: 'failure', interrupted: false } as const
    const park = (sentence: string, afterMs: number): Outcome => ({
      ...retry,
      failure: { code: 'rate_limited', message: 'HTTP 429', sentence },
      afterMs,
      parked: true,
    })
    await inbox.run(letterTo(id), park('the later one', 900_000))
    await inbox.run(letterTo(id), park('the next one', 60_000))
    await inbox.run(letterTo(other), { ...retry, failure, afterMs: 9000 })
    assert.match((await seen(id)).statusReason ?? '', /^a message waits: .*the next one/)
    assert.equal((await seen(other)).statusReason, undefined)
  })
}

export function cardTests(opened: WorkspacesUnderTest): void {
  let readCards: ReadCards | undefined
  /** One reader for all tests: it keeps what it has read until the log of the workspace grows. */
  const cardOf = async (id: string): Promise<WorkspaceCard> => {
    readCards ??= createCardReader(opened.inbox.store)
    const workspace = await opened.seen(id)
    return (await readCards([workspace])).get(id) ?? assert.fail('no card')
  }
  const needsOf = async (id: string) => (await cardOf(id)).needs_you
  const run = (id: string, outcome: Outcome, more: object = {}): Promise<Lease> =>
    opened.inbox.run({ ...letterTo(id), ...more }, outcome)
  const asking: Outcome = { ...(done('which?') as Outcome & { type: 'done' }), finality: 'input_required' }

  test('CV-1 a card counts what waits for a person, until a person has handled it, and nothing of another workspace', async () => {
    const { make, inbox } = opened
    const [id, other] = [await make(), await make()]
    const empty = await cardOf(other)
    assert.deepEqual(empty, {
      last_answered_at: undefined,
      today: { turns: 0, unknown_turns: 0, cost_usd: null },
      needs_you: null,
    })
    const [dead, replayed] = [await run(id, { type: 'dead', failure }), await run(id, { type: 'dead', failure })]
    const asked = await run(id, asking, { principal: 'people' })
    await run(id, asking, { principal: 'token:1' })
    const door = `card-${id}`
    await run(id, done('hi'), { replyTo: { door, channel: 'c' } })
    const delivery = (await inbox.local.deliveries.take(door))?.id ?? ''
    await inbox.local.deliveries.finish(delivery, { type: 'unknown', error: 'lost' })
    assert.deepEqual(await needsOf(id), { count: 4, reason: 'a message asks you a question' })
    await inbox.local.reception.cancel(asked.taskId)
    assert.deepEqual(await needsOf(id), { count: 3, reason: '2 messages failed for good' })
    await inbox.local.deadLetters.discard(id, dead.messageId)
    assert.deepEqual(await needsOf(id), { count: 2, reason: 'a message failed for good' })
    await inbox.local.deadLetters.replay(id, replayed.messageId)
    assert.deepEqual(await needsOf(id), { count: 1, reason: 'an answer may not have arrived' })
    await inbox.local.deliveries.resolve(delivery, 'dismiss', 'Ana')
    assert.equal(await needsOf(id), null)
    assert.deepEqual(await cardOf(other), empty)
  })

  test('CV-1 AG-16 a permission is no question of a card', async () => {
    const { make, inbox } = opened
    const id = await make({ runtime: 'external' })
    await inbox.withWorker(id, async (worker) => {
      await inbox.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      await inbox.local.inbox.ask(lease, { kind: 'permission', id: '1', parts: [], tool: 'Bash', subject: 'make' })
      assert.deepEqual(await needsOf(id), { count: 1, reason: 'a turn waits for your permission' })
      await inbox.local.inbox.settle(lease, done('ok'))
    })
  })

  test('CV-1 TW-10 a card counts a spent budget while a message waits for it, and that of a day only on that day', async () => {
    const { make, inbox, seen } = opened
    const id = await make({ runtime: 'external' })
    await opened.registry.heartbeat(id, {})
    const { inbox: worker, reception, budgets } = inbox.local
    await run(id, { ...done('ok'), usage: { costUsd: 2 } })
    await inbox.withWorker(id, async (leases) => {
      const { taskId } = await reception.admit(letterTo(id))
      const lease = await leases.lease()
      const parked = await budgets.check({ ...lease, mayHaveMessageBudget: false, costUsdPerDayMax: 1 })
      const { afterMs = 0, reason = '' } = parked ?? {}
      const said = { parts: [{ text: reason }] }
      await worker.settle(lease, { type: 'released', interrupted: false, parked: { afterMs, said } })
      assert.deepEqual(await needsOf(id), { count: 1, reason: 'a budget is spent' })
      assert.match((await seen(id)).statusReason ?? '', /^a message waits: today's budget/)
      await inbox.sql('update budgets set day = day - 1 where workspace_id = $1', id)
      await inbox.local.activity.addNote(id, { type: 'note', text: 'the log grows', by: 'me' })
      assert.equal(await needsOf(id), null)
      await inbox.sql('update budgets set day = day + 1 where workspace_id = $1', id)
      await reception.cancel(taskId)
      assert.equal(await needsOf(id), null)
    })
  })

  test('CV-1 a card has the last answer among the last 50 tasks, and the turns and the cost of today', async () => {
    const { make, inbox } = opened
    const id = await make()
    const answered = await run(id, { ...done('ok'), usage: { costUsd: 0.5 } })
    const yesterday = await run(id, { ...done('ok'), usage: { costUsd: 4 } })
    await inbox.sql('update turn_usage set ended_at = ended_at - 86400000 where message_id = $1', yesterday.messageId)
    await run(id, { type: 'dead', failure, usage: { durationMs: 1 } })
    await inbox.sql('update tasks set updated_at = 1000 where workspace_id = $1', id)
    await inbox.sql('update tasks set updated_at = 2000 where id = $1', answered.taskId)
    await inbox.local.activity.addNote(id, { type: 'note', text: 'the log grows', by: 'me' })
    const { today, last_answered_at } = await cardOf(id)
    assert.deepEqual(today, { turns: 2, unknown_turns: 1, cost_usd: 0.5 })
    assert.equal(Date.parse(last_answered_at ?? ''), 2000)
    for (let n = 0; n < 50; n++) await inbox.local.reception.admit(letterTo(id))
    assert.equal((await cardOf(id)).last_answered_at, undefined)
  })

  test('PL-23 the cards of more workspaces than are read at once are each their own', async () => {
    const { workspaces, inbox } = opened
    const ids = Array.from({ length: 102 }, (_, n) => `ws_0000000000000000000000A${String(n).padStart(3, '0')}`)
    for (const id of ids) await insertWorkspace(inbox.store, { id, name: 'many' })
    const dead = [ids[0], ids[99], ids[101]].map(String)
    for (const id of dead) await run(id, { type: 'dead', failure })
    const all = await workspaces.all()
    const cards = await createCardReader(inbox.store)(all)
    const failed = ({ id }: { readonly id: string }) => cards.get(id)?.needs_you?.reason === 'a message failed for good'
    const shown = all.filter((each) => ids.includes(each.id) && failed(each))
    assert.deepEqual(
      shown.map(({ id }) => id),
      dead,
    )
  })
}
