/** What waits for a person: each kind is listed with its reason, in pages, and its mark follows each change. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Need, NeedKind } from '../../../../src/inbox/owners.ts'
import type { Outcome } from '../../../../src/inbox/worker.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

const question: Outcome = { ...(done('which colour?') as Outcome & { type: 'done' }), finality: 'input_required' }

export function needTests(harness: InboxHarness): void {
  const source = (kind: NeedKind) => {
    const found = harness.local.needSources.find((one) => one.kind === kind)
    return found ?? assert.fail(`no source of ${kind}`)
  }
  const listed = async (kind: NeedKind, workspaceId: string): Promise<readonly Need[]> =>
    (await source(kind).list({ workspaceId })).rows
  const settled = async (id: string, outcome: Outcome, letter: object = {}) => {
    const { taskId } = await harness.local.reception.admit({ ...letterTo(id, { text: 'paint it' }), ...letter })
    await harness.withWorker(id, async (worker) => {
      await harness.local.inbox.settle(await worker.lease(), outcome)
    })
    return taskId
  }

  test('CV-6 GW-9 a question to people is a need until it is answered; one to a program is not', async () => {
    const id = await harness.workspace()
    const before = await source('question').summary(id)
    const taskId = await settled(id, question, { principal: 'people' })
    await settled(id, question, { principal: 'token:t1' })
    const [need, more] = await listed('question', id)
    assert.equal(more, undefined)
    assert.deepEqual(
      [need?.id, need?.taskId, need?.workspaceId, need?.reason, need?.text],
      [taskId, taskId, id, 'the agent asks: which colour?', 'which colour?'],
    )
    const asked = await source('question').summary(id)
    assert.equal(asked.count, 1)
    assert.notEqual(asked.mark, before.mark)
    await harness.local.reception.admit({ ...letterTo(id, { taskId, text: 'blue' }), principal: 'people' })
    assert.deepEqual(await listed('question', id), [])
    assert.notEqual((await source('question').summary(id)).mark, asked.mark)
  })

  test('CV-6 GW-9 a permission is a need with its rules and its time, and no question', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit({ ...letterTo(id), principal: 'people' })
      const lease = await worker.lease()
      const ask = { kind: 'permission', id: '1', parts: [], tool: 'Bash', subject: 'make' } as const
      await harness.local.inbox.ask(lease, ask)
      const [need] = await listed('permission', id)
      assert.deepEqual([need?.reason, need?.ask?.wouldCover?.pattern], ['it wants to use Bash', 'make'])
      assert.ok((need?.expiresInMs ?? 0) > 29 * 60_000)
      assert.deepEqual(await listed('question', id), [])
      assert.equal((await source('permission').summary(id)).count, 1)
      await harness.local.reception.cancel(lease.taskId)
      assert.equal((await source('permission').summary(id)).count, 0)
      await harness.local.inbox.settle(lease, { type: 'stopped' })
    })
  })

  test('RT-13 CV-6 messages that wait for the turns of the hour are one need of their workspace, until the limit changes', async () => {
    const id = await harness.workspace(3)
    assert.equal((await source('turn_limit').summary(id)).count, 0)
    const other = { afterMs: 1_500_000, said: { parts: [{ text: 'the handler cannot run' }] } }
    await settled(id, { type: 'released', interrupted: false, parked: other })
    assert.deepEqual(await listed('turn_limit', id), [], 'it waits for something else')
    const parked = { ...other, waitsFor: 'turns_per_hour' } as const
    await settled(id, { type: 'released', interrupted: false, parked })
    await settled(id, { type: 'retry', failure, afterMs: 1_500_000, reason: 'failure', interrupted: false })
    const reason =
      /^its turns of this hour are used up \(max_turns_per_hour\): 1 message waits; the next one goes on in 25 min, or at once with a higher limit$/
    const [need, more] = await listed('turn_limit', id)
    assert.match(need?.reason ?? '', reason)
    assert.deepEqual([need?.id, need?.workspaceId, more], [`${id}.turns`, id, undefined])
    const one = await source('turn_limit').summary(id)
    await settled(id, { type: 'released', interrupted: false, parked })
    assert.match((await listed('turn_limit', id))[0]?.reason ?? '', /2 messages wait/)
    assert.equal(one.count, 1)
    await harness.local.queues.limitsChanged(id)
    assert.deepEqual(await listed('turn_limit', id), [])
    assert.equal((await source('turn_limit').summary(id)).count, 0)
  })

  test('CV-6 a dead letter is a need until it is replayed or discarded, the oldest first, page by page', async () => {
    const id = await harness.workspace()
    for (let count = 0; count < 3; count++) await settled(id, { type: 'dead', failure })
    await harness.sql(
      `update messages set settled_at = settled_at - 1000 * (
         select count(*) from messages o where o.workspace_id = $1 and o.id > messages.id) where workspace_id = $1`,
      id,
    )
    const needs = await listed('dead_letter', id)
    assert.deepEqual(
      needs.map(({ reason, text }) => [reason, text]),
      Array.from({ length: 3 }, () => ['a message failed for good: it broke', 'paint it']),
    )
    assert.deepEqual(
      needs.map(({ id: messageId }) => messageId),
      needs.map(({ id: messageId }) => messageId).toSorted(),
    )
    const { mark } = await source('dead_letter').summary(id)
    await harness.local.deadLetters.discard(id, needs[1]?.id ?? '')
    assert.deepEqual(
      (await listed('dead_letter', id)).map(({ id: messageId }) => messageId),
      [needs[0]?.id, needs[2]?.id],
    )
    assert.notEqual((await source('dead_letter').summary(id)).mark, mark)
    const after = `${needs[0]?.sinceMs}.${needs[0]?.id}`
    const rest = await source('dead_letter').list({ workspaceId: id, after })
    assert.deepEqual(
      rest.rows.map(({ id: messageId }) => messageId),
      [needs[2]?.id],
    )
    await assert.rejects(source('dead_letter').list({ after: 'x' }), hasCode('invalid_request'))
  })

  test('CV-6 GW-6 an answer that may not have arrived is a need; "it arrived" and "send again" end it, and the log says who', async () => {
    const id = await harness.workspace()
    const door = `needs-${id}`
    for (const channel of ['one', 'two']) {
      await settled(id, done(`for ${channel}`), { replyTo: { door, channel } })
      const delivery = await harness.local.deliveries.take(door)
      await harness.local.deliveries.finish(delivery?.id ?? '', { type: 'unknown', error: 'the connection broke' })
    }
    const needs = await listed('delivery', id)
    assert.deepEqual(
      needs.map(({ reason, text, to }) => [reason, text, to]),
      ['one', 'two'].map((channel) => [
        `an answer to ${door} may not have arrived: the connection broke`,
        `for ${channel}`,
        `${door} ${channel}`,
      ]),
    )
    await harness.local.deliveries.resolve(needs[0]?.id ?? '', 'dismiss', 'Ana')
    await harness.local.deliveries.resolve(needs[1]?.id ?? '', 'resend', 'Ana')
    assert.deepEqual(await listed('delivery', id), [])
    assert.equal((await harness.local.deliveries.take(door))?.channel, 'two')
    const entries = await harness.activity(id, 'delivery')
    assert.deepEqual(
      entries.map(({ by }) => by),
      ['platform', 'platform', 'Ana', 'Ana'],
    )
  })

  test('CV-6 the kinds of needs come with the most urgent one first', () => {
    assert.deepEqual(
      harness.local.needSources.map(({ kind }) => kind),
      ['permission', 'question', 'budget', 'turn_limit', 'dead_letter', 'delivery', 'damaged_reply'],
    )
  })

  test('CV-6 a question of a running turn says how long it can be answered, and a question without words is one too', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      await harness.local.inbox.ask(lease, { kind: 'question', id: 'q', parts: [{ data: 1 }] })
      const [need] = await listed('question', id)
      assert.equal(need?.reason, 'the agent asks for something')
      assert.ok((need?.expiresInMs ?? 0) > 29 * 60_000)
      await harness.local.inbox.settle(lease, done('ok'))
    })
    assert.equal((await source('question').summary(id)).count, 0)
  })

  test('CV-6 a dead letter has its attempts and a short text; a large message is not read for it', async () => {
    const id = await harness.workspace()
    const retry: Outcome = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false }
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id, { text: 'x'.repeat(501) }))
      await harness.local.inbox.settle(await worker.lease(), retry)
      await harness.local.inbox.settle(await worker.lease(), { type: 'dead', failure })
    })
    await harness.run(letterTo(id, { text: 'x'.repeat(16 * 1024) }), { type: 'dead', failure })
    assert.deepEqual(
      (await listed('dead_letter', id)).map(({ reason, text }) => [reason, text]),
      [
        ['a message failed on all 2 attempts: it broke', `${'x'.repeat(499)}…`],
        ['a message failed for good: it broke', undefined],
      ],
    )
  })

  test('CV-6 a page has 100 needs, the oldest first, and the next one goes on, also at the same time', async () => {
    const id = await harness.workspace()
    for (let n = 0; n < 102; n++) await harness.local.reception.admit(letterTo(id))
    await harness.sql(`update messages set state = 'dead', settled_at = 1000 where workspace_id = $1`, id)
    const first = await source('dead_letter').list({ workspaceId: id })
    const second = await source('dead_letter').list({ workspaceId: id, after: first.next ?? '' })
    assert.deepEqual([first.rows.length, second.rows.length, second.next], [100, 2, undefined])
    const ids = [...first.rows, ...second.rows].map((need) => need.id)
    assert.deepEqual(ids, ids.toSorted())
    assert.equal(new Set(ids).size, 102)
  })
}
