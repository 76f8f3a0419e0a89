/** Usage of turns, and turns that must wait for the hourly limit, on every engine. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiAnswer } from '../../../../src/api/api.ts'
import { systemClock } from '../../../../src/clock.ts'
import { prune, RETENTION } from '../../../../src/inbox/upkeep/retention.ts'
import type { Lease, Outcome } from '../../../../src/inbox/worker.ts'
import type { Brief } from '../../../../src/protocol/brief.ts'
import { readSessions } from '../../../../src/views/conversations.ts'
import { readDeadLetters } from '../../../../src/views/needs/dead-letters.ts'
import { readOverview } from '../../../../src/views/overview.ts'
import { readChatUsage, readPlatformUsage, readUsage } from '../../../../src/views/usage.ts'
import { historyStep } from '../../../../src/workspaces/brief/history.ts'
import { turnLimitStep } from '../../../../src/workspaces/brief/turn-limit.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

type Overview = ApiAnswer<'GET /overview'>

export function usageTests(harness: InboxHarness): void {
  const read = (workspaceId: string) => readUsage(harness.local.store, { workspaceId, days: 7, messages: 5 })

  test('RT-13 the usage of every attempt is stored once and deleted when it is old', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id, { contextId: 'x' }))
      const first = await worker.lease()
      const retry = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false } as const
      await harness.local.inbox.settle(first, { ...retry, usage: { durationMs: 1.4 } })
      const second = await worker.lease()
      const used = { inputTokens: 10, outputTokens: 2, costUsd: 0.125, durationMs: 20 }
      await harness.local.inbox.settle(second, { ...done('ok'), usage: used })
      await harness.local.inbox.settle(second, { ...done('ok'), usage: used })
      const amounts = { input_tokens: 10, output_tokens: 2, cost_usd: 0.125, duration_ms: 21 }
      const sum = { turns: 2, unknown_turns: 1, unknown_cost_turns: 1, ...amounts }
      const { messageId: message_id, taskId: task_id, conversationId: conversation_id } = first
      const { total, days, messages, conversations } = await read(id)
      assert.deepEqual(total, sum)
      assert.deepEqual(messages, [{ message_id, task_id, ...sum }])
      assert.deepEqual(conversations, [{ conversation_id, context_id: 'x', ...sum }])
      assert.deepEqual(days, [{ day: new Date(systemClock.nowMs()).toISOString().slice(0, 10), ...sum }])
      await harness.sql('update turn_usage set ended_at = ended_at - 8640000000 where workspace_id = $1', id)
      assert.equal((await read(id)).total.turns, 0)
      await prune(harness.store, RETENTION, AbortSignal.timeout(60_000))
      assert.deepEqual(await harness.sql('select 1 as kept from turn_usage where workspace_id = $1', id), [])
    })
    await assert.rejects(read('ws_nobody'), hasCode('not_found'))
  })

  test('GW-7 RT-13 what a workspace used today, and what one conversation of one chat used', async () => {
    const id = await harness.workspace()
    const [chat, other] = ['discord:1', 'discord:2']
    const use = async (principal: string, contextId: string, costUsd: number | undefined) => {
      await harness.local.reception.admit({ ...letterTo(id, { contextId }), principal })
      await harness.withWorker(id, async (worker) => {
        const usage = { inputTokens: 10, outputTokens: 2, costUsd }
        await harness.local.inbox.settle(await worker.lease(), { ...done('ok'), usage })
      })
    }
    await use(chat, 'a', 0.5)
    await use(chat, 'a', undefined)
    await use(chat, 'b', 1)
    await use(other, 'a', 2)
    const readChat = (contextId: string) =>
      readChatUsage(harness.local.store, { workspaceId: id, principal: chat, contextId })
    const { today, conversation } = await readChat('a')
    assert.deepEqual([today.turns, today.cost_usd, today.unknown_cost_turns], [4, 3.5, 1])
    assert.deepEqual([conversation.turns, conversation.cost_usd, conversation.input_tokens], [2, 0.5, 20])
    assert.deepEqual((await readChat('none')).conversation.cost_usd, null)
    await harness.sql('update turn_usage set ended_at = ended_at - 86400000 where workspace_id = $1', id)
    const later = await readChat('a')
    assert.deepEqual([later.today.turns, later.today.cost_usd, later.conversation.turns], [0, null, 2])
    const sessions = await readSessions(harness.local.store, { workspaceId: id, principal: chat, limit: 10 })
    assert.deepEqual(
      sessions.map(({ contextId }) => contextId),
      ['b', 'a'],
    )
  })

  test('CL-7 the overview has what each workspace used today, its dead letters and its questions, by pages', async () => {
    const id = await harness.workspace()
    const idle = await harness.workspace()
    const all = async (limit: number) => {
      const found: Overview['workspaces'][number][] = []
      for (let after: string | undefined = ''; after !== undefined; ) {
        const page: Overview = await readOverview(harness.local.store, { after, limit })
        assert.ok(page.workspaces.length <= limit)
        found.push(...page.workspaces)
        after = page.next
      }
      return found.filter((one) => one.id === id || one.id === idle)
    }
    await harness.withWorker(id, async (worker) => {
      const settleNext = async (outcome: Outcome) => {
        await harness.local.reception.admit(letterTo(id))
        await harness.local.inbox.settle(await worker.lease(), outcome)
      }
      await settleNext({ ...done('ok'), usage: { inputTokens: 3, outputTokens: 1, costUsd: 0.5, durationMs: 7 } })
      await settleNext({ type: 'dead', failure })
      await settleNext({ ...done('which one?'), finality: 'input_required' } as Outcome)
    })
    const amounts = { input_tokens: 3, output_tokens: 1, cost_usd: 0.5, duration_ms: 7 }
    const used = { turns: 1, unknown_turns: 0, unknown_cost_turns: 0, ...amounts }
    const unknown = { input_tokens: null, output_tokens: null, cost_usd: null, duration_ms: null }
    const none = { turns: 0, unknown_turns: 0, unknown_cost_turns: 0, ...unknown }
    const expected = [
      { id, dead_letters: 1, questions: 1, today: used },
      { id: idle, dead_letters: 0, questions: 0, today: none },
    ].sort((a, b) => (a.id < b.id ? -1 : 1))
    assert.deepEqual(await all(1), expected)
    assert.deepEqual(await all(1000), expected)
    const [dead] = (await readDeadLetters(harness.local.store, { workspaceId: id, detail: true })).dead_letters
    await harness.local.deadLetters.discard(id, dead?.id ?? '')
    await harness.sql('update turn_usage set ended_at = ended_at - 86400000 where workspace_id = $1', id)
    const later = (await all(1000)).find((one) => one.id === id)
    assert.deepEqual(later, { id, dead_letters: 0, questions: 1, today: none })
  })

  test('RT-13 a value that is no amount is stored as unknown', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      const said = { inputTokens: 'many' as never, outputTokens: -1, costUsd: Number.NaN, durationMs: 1e300 }
      await harness.local.inbox.settle(lease, { ...done('ok'), usage: said })
      const { total } = await read(id)
      const none = { input_tokens: null, output_tokens: null, cost_usd: null, duration_ms: null }
      assert.deepEqual(total, { turns: 1, unknown_turns: 1, unknown_cost_turns: 1, ...none })
    })
  })

  test('RT-13 RT-3 the turns of the last hour are counted, the history is read, and a parked message waits', async () => {
    const id = await harness.workspace()
    const plain: Brief = { runtime: 'x', options: {}, systemPrompt: '', workingDir: '/', maxAttempts: 1, env: {} }
    const options = { max_turns_per_hour: '1' }
    const { store } = harness
    const addHistory = historyStep({ store, usesHistory: () => true })
    const limitTurns = turnLimitStep({ store, clock: systemClock, isMetered: () => true })
    const brief = async (lease: Lease) => limitTurns(await addHistory({ ...plain, options }, lease), lease)
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id, { text: 'one', contextId: 'c' }))
      const first = await worker.lease()
      const begun = await brief(first)
      assert.deepEqual([begun.metered, begun.parked, begun.options, begun.history], [true, undefined, {}, undefined])
      await harness.local.inbox.settle(first, { ...done('1'), usage: { durationMs: 1 } })
      const { taskId } = await harness.local.reception.admit(letterTo(id, { text: 'two', contextId: 'c' }))
      const second = await worker.lease()
      const held = await brief(second)
      assert.deepEqual(
        held.history?.map(({ parts }) => parts[0]?.text),
        ['one', '1'],
      )
      assert.ok(held.parked !== undefined && held.parked.afterMs > 3_500_000)
      const said = { parts: [{ text: held.parked.reason }] }
      const parked = { afterMs: held.parked.afterMs, said }
      await harness.local.inbox.settle(second, { type: 'released', interrupted: false, parked })
      assert.ok(await worker.idle())
      const task = await harness.local.reception.task(taskId)
      assert.match(task?.status.message?.parts[0]?.text ?? '', /turns an hour/)
      assert.deepEqual(await harness.load(id), { running: 0, waiting: 1 })
      await harness.local.reception.cancel(taskId)
    })
  })

  /** As if the usage of a message had been stored so many days ago. */
  const age = (messageId: string, days: number) =>
    harness.sql('update turn_usage set ended_at = ended_at - $2 where message_id = $1', messageId, days * 86_400_000)
  const spend = (id: string, contextId: string, costUsd: number) =>
    harness.run(letterTo(id, { contextId }), { ...done('ok'), usage: { costUsd, durationMs: 1 } })

  test('RT-13 a report has the days before today, the latest first, and the latest conversations and messages', async () => {
    const id = await harness.workspace()
    const [oldest, old] = [await spend(id, 'a', 8), await spend(id, 'b', 4)]
    await age(oldest.messageId, 2)
    await age(old.messageId, 1)
    const [first, last] = [await spend(id, 'a', 2), await spend(id, 'a', 1)]
    await spend(await harness.workspace(), 'a', 16)
    const report = async (days: number, messages = 10) => {
      const used = await readUsage(harness.local.store, { workspaceId: id, days, messages })
      return {
        total: used.total.cost_usd,
        days: used.days.map((each) => each.cost_usd),
        conversations: used.conversations.map((each) => [each.context_id, each.cost_usd, each.turns]),
        messages: used.messages.map((each) => each.message_id),
      }
    }
    const ids = [last, first, old, oldest].map(({ messageId }) => messageId)
    const b = ['b', 4, 1]
    assert.deepEqual(await report(1), { total: 3, days: [3], conversations: [['a', 3, 2]], messages: ids.slice(0, 2) })
    assert.deepEqual(await report(2), {
      total: 7,
      days: [3, 4],
      conversations: [['a', 3, 2], b],
      messages: ids.slice(0, 3),
    })
    assert.deepEqual(await report(3), { total: 15, days: [3, 4, 8], conversations: [['a', 11, 3], b], messages: ids })
    assert.deepEqual((await report(3, 1)).messages, ids.slice(0, 1))
  })

  test('RT-13 the use of the platform has its days and its workspaces, the most expensive first, then the busiest', async () => {
    const [cheap, dear, busy, idle] = [
      ...[await harness.workspace(), await harness.workspace(), await harness.workspace(), await harness.workspace()],
    ] as [string, string, string, string]
    const before = (await readPlatformUsage(harness.local.store, 2)).total
    await spend(cheap, 'a', 1)
    await age((await spend(dear, 'a', 5)).messageId, 1)
    const unknown = { ...done('ok'), usage: { durationMs: 1 } }
    for (const id of [busy, busy, idle]) await harness.run(letterTo(id), unknown)
    await harness.sql('update workspaces set deleted_at = now_ms() where id = $1', dear)
    const { total, workspaces } = await readPlatformUsage(harness.local.store, 2)
    assert.equal(total.turns - before.turns, 5)
    assert.ok(Math.abs((total.cost_usd ?? 0) - (before.cost_usd ?? 0) - 6) < 1e-6)
    const own = workspaces.filter((each) => [cheap, dear, busy, idle].includes(each.workspace_id))
    assert.deepEqual(
      own.map((each) => [each.workspace_id, each.name, each.cost_usd, each.unknown_cost_turns]),
      [
        [dear, null, 5, 0],
        [cheap, 'test', 1, 0],
        [busy, 'test', null, 2],
        [idle, 'test', null, 1],
      ],
    )
    const today = (await readPlatformUsage(harness.local.store, 1)).workspaces
    assert.ok(!today.some((each) => each.workspace_id === dear))
  })

  test('CL-7 the overview counts no permission as a question, and looks at the last 100 tasks', async () => {
    const id = await harness.workspace()
    const questions = async () =>
      (await readOverview(harness.local.store, { limit: 1000 })).workspaces.find((one) => one.id === id)?.questions
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      await harness.local.inbox.ask(lease, { kind: 'permission', id: '1', parts: [], tool: 'Bash', subject: 'make' })
      assert.equal(await questions(), 0)
      await harness.local.inbox.settle(lease, { ...done('which?'), finality: 'input_required' } as Outcome)
    })
    assert.equal(await questions(), 1)
    await harness.sql('update tasks set updated_at = updated_at - 1000 where workspace_id = $1', id)
    for (let n = 1; n <= 100; n++) await harness.local.reception.admit(letterTo(id))
    assert.equal(await questions(), 0)
  })
}
