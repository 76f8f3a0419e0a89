/** A message that waits is edited or taken back by its sender. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { envelopeOf } from '../../../../src/protocol/envelope.ts'
import { type LetterOptions, letterTo } from '../../../fakes/letters.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

export function amendTests(harness: InboxHarness): void {
  const admit = async (id: string, key: string, message: LetterOptions) => {
    const letter = letterTo(id, { contextId: 'c', idempotencyKey: key, ...message })
    const { taskId } = await harness.local.reception.admit(letter)
    return { letter, waiting: { taskId, key } }
  }

  test('GW-16 IN-1 a message that waits runs with its new text, in its place and with its files, and those beside it stay', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    const file = { raw: 'eA==', filename: 'x.txt' }
    const envelope = envelopeOf({ messageId: 'k1', contextId: 'c', parts: [{ text: 'drop it' }, file] })
    const { taskId } = await reception.admit({ ...letterTo(id, { idempotencyKey: 'k1' }), envelope })
    const second = await admit(id, 'k2', { text: 'behind' })
    const other = await harness.workspace()
    await admit(other, 'k1', { text: 'elsewhere' })
    assert.equal(await reception.amend({ taskId, key: 'k2' }, 'of another key'), false)
    assert.equal(await reception.amend({ taskId: second.waiting.taskId, key: 'k1' }, 'of another task'), false)
    assert.equal(await reception.amend({ taskId, key: 'k1' }, 'keep it'), true)
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      assert.deepEqual(lease.envelope.message.parts, [{ text: 'keep it' }, file])
      assert.deepEqual([lease.taskId, lease.idempotencyKey], [taskId, 'k1'])
      await inbox.settle(lease, done('ok'))
      const next = await worker.lease()
      assert.deepEqual(next.envelope.message.parts, [{ text: 'behind' }])
      await inbox.settle(next, done('ok'))
    })
    await harness.withWorker(other, async (worker) => {
      const lease = await worker.lease()
      assert.deepEqual(lease.envelope.message.parts, [{ text: 'elsewhere' }])
      await inbox.settle(lease, done('ok'))
    })
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('GW-16 IN-2 after an edit the key knows the new content: a copy of it attaches, and the old content is a conflict', async () => {
    const id = await harness.workspace()
    const { reception } = harness.local
    const { letter, waiting } = await admit(id, 'k', { text: 'old' })
    assert.equal(await reception.amend(waiting, 'new'), true)
    assert.equal((await admit(id, 'k', { text: 'new' })).waiting.taskId, waiting.taskId)
    await assert.rejects(reception.admit(letter), hasCode('idempotency_conflict'))
  })

  test('GW-16 an edit or a deletion after the turn began changes nothing, also when the message waits again', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    const { waiting } = await admit(id, 'k', { text: 'as written' })
    const change = async () => [await reception.amend(waiting, 'late'), await reception.withdraw(waiting)]
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      assert.deepEqual(await change(), [false, false])
      await inbox.settle(lease, { type: 'retry', reason: 'failure', afterMs: 3600_000, interrupted: true, failure })
    })
    assert.deepEqual(await change(), [false, false])
    const task = await reception.task(waiting.taskId)
    assert.deepEqual(task?.history?.[0]?.parts, [{ text: 'as written' }])
    assert.notEqual(task?.status.state, 'TASK_STATE_CANCELED')
    await reception.cancel(waiting.taskId)
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('GW-16 a message that was parked before its turn began can be edited and taken back', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    const { waiting } = await admit(id, 'k', { text: 'too early' })
    await harness.withWorker(id, async (worker) => {
      const parked = { afterMs: 3600_000, said: { parts: [{ text: 'the budget is spent' }] } }
      await inbox.settle(await worker.lease(), { type: 'released', interrupted: false, parked })
    })
    assert.equal(await reception.amend(waiting, 'changed'), true)
    assert.equal(await reception.withdraw(waiting), true)
    assert.equal(await harness.state(waiting.taskId), 'TASK_STATE_CANCELED')
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('GW-16 a message that is taken back never runs; a task with further messages goes on', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    const first = await admit(id, 'k1', { text: 'one' })
    const second = await admit(id, 'k2', { text: 'two' })
    const more = await admit(id, 'k3', { text: 'more', taskId: second.waiting.taskId })
    assert.equal(await reception.withdraw({ ...first.waiting, key: 'k2' }), false)
    assert.equal(await reception.withdraw(first.waiting), true)
    assert.equal(await reception.withdraw(first.waiting), false)
    assert.equal(await reception.withdraw({ ...more.waiting, key: 'k3' }), false)
    assert.equal(await reception.amend(more.waiting, 'still more'), true)
    await harness.withWorker(id, async (worker) => {
      for (const text of ['two', 'still more']) {
        const lease = await worker.lease()
        assert.deepEqual(lease.envelope.message.parts, [{ text }])
        await inbox.settle(lease, done('ok'))
      }
    })
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })
}
