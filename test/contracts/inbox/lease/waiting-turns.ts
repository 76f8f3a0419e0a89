/** Waiting turns: they give up their slot, ask a person, and resume. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '../../../../src/inbox/worker.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, failure, type InboxHarness } from '../harness.ts'

export function waitingTurnTests(harness: InboxHarness): void {
  const counts = async (id: string) => {
    const [row] = await harness.sql(
      'select running, suspended, waiting from workspace_load where workspace_id = $1',
      id,
    )
    return { ...row }
  }

  test('IN-9 a waiting turn gives its slot to the next conversation and takes it back over the limit', async () => {
    const id = await harness.workspace(1)
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id, { contextId: 'a' }))
      await harness.local.reception.admit(letterTo(id, { contextId: 'b' }))
      const first = await worker.lease()
      assert.deepEqual(await harness.local.inbox.extend([first]), ['held'])
      assert.equal(await harness.local.inbox.suspend(first), 'held')
      assert.equal(await harness.local.inbox.suspend(first), 'held')
      assert.deepEqual(await harness.local.inbox.extend([first]), ['waiting'])
      const second = await worker.lease()
      assert.deepEqual(await counts(id), { running: 1, suspended: 1, waiting: 0 })
      assert.equal(await harness.local.inbox.resume(first), 'held')
      assert.deepEqual(await counts(id), { running: 2, suspended: 0, waiting: 0 })
      await harness.local.inbox.settle(first, done('a'))
      await harness.local.inbox.settle(second, done('b'))
      assert.deepEqual(await counts(id), { running: 0, suspended: 0, waiting: 0 })
    })
  })

  test('IN-9 a suspended turn keeps its conversation and can settle without taking its slot back', async () => {
    const id = await harness.workspace(1)
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id, { contextId: 'a' }))
      await harness.local.reception.admit(letterTo(id, { contextId: 'a', text: 'behind' }))
      const first = await worker.lease()
      await harness.local.inbox.suspend(first)
      assert.ok(await worker.idle())
      await harness.local.inbox.settle(first, done('a'))
      assert.deepEqual(await counts(id), { running: 0, suspended: 0, waiting: 1 })
    })
    await harness.withWorker(id, async (worker) => {
      await harness.local.inbox.settle(await worker.lease(), done('b'))
    })
  })

  test('IN-9 a ninth waiting turn is refused', async () => {
    const id = await harness.workspace(9)
    await harness.withWorker(id, async (worker) => {
      const leases: Lease[] = []
      for (let count = 0; count < 9; count++) {
        await harness.local.reception.admit(letterTo(id))
        leases.push(await worker.lease())
      }
      const answers: string[] = []
      for (const lease of leases) answers.push(await harness.local.inbox.suspend(lease))
      assert.deepEqual(answers, [...Array(8).fill('held'), 'refused'])
      for (const lease of leases) await harness.local.inbox.settle(lease, done('x'))
      assert.deepEqual(await counts(id), { running: 0, suspended: 0, waiting: 0 })
    })
  })

  const question = { kind: 'question', id: 'q1', parts: [{ text: 'delete it?' }] } as const

  test('IN-9 a question makes the task input-required, and the next message to it is the answer', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      assert.equal(await harness.local.inbox.ask(lease, question), 'held')
      assert.equal(await harness.local.inbox.ask(lease, question), 'held')
      assert.equal(await harness.state(taskId), 'TASK_STATE_INPUT_REQUIRED')
      assert.deepEqual(await counts(id), { running: 0, suspended: 1, waiting: 0 })
      const reply = letterTo(id, { taskId, text: 'yes' })
      await harness.local.reception.admit(reply)
      const answer = await worker.next()
      assert.deepEqual(answer.type === 'answer' && [answer.askId, answer.parts], ['q1', [{ text: 'yes' }]])
      assert.equal((await harness.local.reception.admit(reply)).duplicate, true)
      assert.equal(await harness.state(taskId), 'TASK_STATE_WORKING')
      assert.deepEqual(await counts(id), { running: 1, suspended: 0, waiting: 0 })
      await harness.local.inbox.settle(lease, done('deleted'))
      const task = await harness.local.reception.task(taskId)
      assert.equal(task?.status.state, 'TASK_STATE_COMPLETED')
      assert.equal(task?.history?.length, 3)
      // The answer runs no turn of its own. The sweep may have repeated its directive before the turn settled.
      while (!(await worker.idle())) assert.equal((await worker.next()).type, 'answer')
    })
  })

  test('IN-9 when a turn is retried, the answer to it goes back to its place in the queue, behind older messages', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const before = await reception.admit(letterTo(id, { text: 'before' }))
      const earlier = await worker.lease()
      await inbox.ask(earlier, question)
      await reception.admit(letterTo(id, { taskId: before.taskId, text: 'used up' }))
      await worker.next()
      await inbox.settle(earlier, done('well'))
      const { contextId } = before
      const { taskId } = await reception.admit(letterTo(id, { contextId, text: 'work' }))
      const lease = await worker.lease()
      await reception.admit(letterTo(id, { contextId, text: 'between' }))
      await inbox.ask(lease, question)
      await reception.admit(letterTo(id, { taskId, text: 'yes' }))
      await reception.admit(letterTo(id, { contextId, text: 'behind' }))
      await worker.next()
      await inbox.settle(lease, { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false })
      assert.deepEqual(await counts(id), { running: 1, suspended: 0, waiting: 3 })
      const texts: unknown[] = []
      while (texts.length < 4) {
        const next = await worker.lease()
        texts.push(next.envelope.message.parts[0]?.text)
        await inbox.settle(next, done('well'))
      }
      assert.deepEqual(texts, ['work', 'between', 'yes', 'behind'])
      assert.equal(await harness.state(taskId), 'TASK_STATE_COMPLETED')
      assert.deepEqual(await counts(id), { running: 0, suspended: 0, waiting: 0 })
    })
  })

  test('IN-9 if the worker dies the question is void, and the answer is queued behind the re-run', async () => {
    const id = await harness.workspace()
    const worker = harness.worker(id)
    const { taskId } = await harness.local.reception.admit(letterTo(id, { text: 'work' }))
    const lease = await worker.lease()
    await harness.local.inbox.ask(lease, question)
    await harness.local.reception.admit(letterTo(id, { taskId, text: 'yes' }))
    await worker.next()
    await worker.leave()
    await harness.local.recover()
    await harness.withWorker(id, async (other) => {
      const again = await other.lease()
      assert.deepEqual([again.messageId, again.losses], [lease.messageId, 1])
      await harness.local.inbox.settle(again, done('done without'))
      const answer = await other.lease()
      assert.deepEqual(answer.envelope.message.parts, [{ text: 'yes' }])
      await harness.local.inbox.settle(answer, done('too late, but heard'))
    })
    assert.equal(await harness.state(taskId), 'TASK_STATE_COMPLETED')
    assert.deepEqual(await counts(id), { running: 0, suspended: 0, waiting: 0 })
  })

  test('IN-9 an answer goes to the turn of its own task; other questions stay open, and a further message waits behind the turn', async () => {
    const id = await harness.workspace(2)
    const { inbox, reception } = harness.local
    await harness.withWorker(id, async (worker) => {
      await reception.admit(letterTo(id))
      const other = await worker.lease()
      const { taskId } = await reception.admit(letterTo(id))
      const lease = await worker.lease()
      for (const each of [other, lease]) await inbox.ask(each, question)
      await reception.admit(letterTo(id, { taskId, text: 'seven' }))
      const answer = await worker.next()
      assert.deepEqual(answer.type === 'answer' && [answer.key.messageId, answer.parts], [
        ...[lease.messageId, [{ text: 'seven' }]],
      ])
      assert.equal(await harness.state(other.taskId), 'TASK_STATE_INPUT_REQUIRED')
      await reception.admit(letterTo(id, { taskId, text: 'and eight' }))
      assert.deepEqual(await counts(id), { running: 1, suspended: 1, waiting: 1 })
      await inbox.settle(lease, done('thanks'))
      const behind = await worker.lease()
      assert.deepEqual(behind.envelope.message.parts, [{ text: 'and eight' }])
      assert.equal(await harness.state(other.taskId), 'TASK_STATE_INPUT_REQUIRED')
      for (const each of [behind, other]) await inbox.settle(each, done('bye'))
    })
  })
}
