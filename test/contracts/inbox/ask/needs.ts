/** What waits for a person: each kind is listed with its reason, in pages, and its mark follows each change. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiAnswer } from '../../../../src/api/api.ts'
import type { Outcome } from '../../../../src/inbox/worker.ts'
import { readNeedSummary, readNeeds } from '../../../../src/views/needs/needs.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

type Need = ApiAnswer<'GET /needs-you'>['needs_you'][number]

const question: Outcome = { ...(done('which colour?') as Outcome & { type: 'done' }), finality: 'input_required' }

export function needTests(harness: InboxHarness): void {
  const read = (workspaceId: string, after?: string) =>
    readNeeds(harness.local.store, { workspaceId, after, workspaces: [] })
  const listed = async (kind: Need['kind'], workspaceId: string): Promise<readonly Need[]> =>
    (await read(workspaceId)).needs_you.filter((need) => need.kind === kind)
  const summary = (workspaceId: string) => readNeedSummary(harness.local.store, [], workspaceId)
  const minutesUntil = (at = '') => (Date.parse(at) - Date.now()) / 60_000
  const settled = async (id: string, outcome: Outcome, letter: object = {}) => {
    const { taskId } = await harness.local.reception.admit({ ...letterTo(id, { text: 'paint it' }), ...letter })
    await harness.withWorker(id, async (worker) => {
      await harness.local.inbox.settle(await worker.lease(), outcome)
    })
    return taskId
  }

  test('CV-6 GW-9 a question to people is a need until it is answered; one to a program is not', async () => {
    const id = await harness.workspace()
    const before = await summary(id)
    const taskId = await settled(id, question, { principal: 'people' })
    await settled(id, question, { principal: 'token:t1' })
    const [need, more] = await listed('question', id)
    assert.equal(more, undefined)
    assert.deepEqual(
      [need?.id, need?.task_id, need?.workspace_id, need?.reason, need?.text],
      [taskId, taskId, id, 'the agent asks: which colour?', 'which colour?'],
    )
    const asked = await summary(id)
    assert.equal(asked.count, 1)
    assert.notEqual(asked.mark, before.mark)
    await harness.local.reception.admit({ ...letterTo(id, { taskId, text: 'blue' }), principal: 'people' })
    assert.deepEqual(await listed('question', id), [])
    assert.notEqual((await summary(id)).mark, asked.mark)
  })

  test('CV-6 GW-9 a permission is a need with its rules and its time, and no question', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit({ ...letterTo(id), principal: 'people' })
      const lease = await worker.lease()
      const ask = { kind: 'permission', id: '1', parts: [], tool: 'Bash', subject: 'make' } as const
      await harness.local.inbox.ask(lease, ask)
      const [need] = await listed('permission', id)
      assert.deepEqual([need?.reason, need?.permission?.would_cover?.pattern], ['it wants to use Bash', 'make'])
      assert.ok(minutesUntil(need?.expires_at) > 29)
      assert.deepEqual(await listed('question', id), [])
      assert.equal((await summary(id)).count, 1)
      await harness.local.reception.cancel(lease.taskId)
      assert.equal((await summary(id)).count, 0)
      await harness.local.inbox.settle(lease, { type: 'stopped' })
    })
  })

  test('RT-13 CV-6 messages that wait for the turns of the hour are one need of their workspace, until the limit changes', async () => {
    const id = await harness.workspace(3)
    assert.equal((await summary(id)).count, 0)
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
    assert.deepEqual([need?.id, need?.workspace_id, more], [`${id}.turns`, id, undefined])
    const one = await summary(id)
    await settled(id, { type: 'released', interrupted: false, parked })
    assert.match((await listed('turn_limit', id))[0]?.reason ?? '', /2 messages wait/)
    assert.equal(one.count, 1)
    await harness.local.queues.limitsChanged(id)
    assert.deepEqual(await listed('turn_limit', id), [])
    assert.equal((await summary(id)).count, 0)
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
    const { mark } = await summary(id)
    await harness.local.deadLetters.discard(id, needs[1]?.id ?? '')
    assert.deepEqual(
      (await listed('dead_letter', id)).map(({ id: messageId }) => messageId),
      [needs[0]?.id, needs[2]?.id],
    )
    assert.notEqual((await summary(id)).mark, mark)
    const after = `dead_letter:${Date.parse(needs[0]?.since ?? '')}.${needs[0]?.id}`
    const rest = await read(id, after)
    assert.deepEqual(
      rest.needs_you.map(({ id: messageId }) => messageId),
      [needs[2]?.id],
    )
    for (const wrong of ['dead_letter:x', 'nonsense'])
      await assert.rejects(read(id, wrong), hasCode('invalid_request'), wrong)
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

  test('CV-6 a question of a running turn says how long it can be answered, and a question without words is one too', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      await harness.local.inbox.ask(lease, { kind: 'question', id: 'q', parts: [{ data: 1 }] })
      const [need] = await listed('question', id)
      assert.equal(need?.reason, 'the agent asks for something')
      assert.ok(minutesUntil(need?.expires_at) > 29)
      await harness.local.inbox.settle(lease, done('ok'))
    })
    assert.equal((await summary(id)).count, 0)
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
    const first = await read(id)
    const second = await read(id, first.next)
    assert.deepEqual([first.needs_you.length, second.needs_you.length, second.next], [100, 2, undefined])
    assert.deepEqual([first.count, second.count], [102, 102])
    const ids = [...first.needs_you, ...second.needs_you].map((need) => need.id)
    assert.deepEqual(ids, ids.toSorted())
    assert.equal(new Set(ids).size, 102)
  })
}
