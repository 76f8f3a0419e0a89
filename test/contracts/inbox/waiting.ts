/** Waiting turns: they give up their slot, ask a person, and go on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '../../../src/inbox/inbox.ts'
import { letterTo } from '../../fakes/letters.ts'
import { done, failure, type InboxBench } from './harness.ts'

export function waitingTurns(bench: InboxBench): void {
  const counts = async (id: string) => {
    const [row] = await bench.sql('select running, suspended, waiting from workspace_load where workspace_id = $1', id)
    return { ...row }
  }

  test('IN-9 a waiting turn gives its slot to the next conversation and takes it back over the limit', async () => {
    const id = await bench.workspace(1)
    await bench.withHand(id, async (hand) => {
      await bench.local.reception.admit(letterTo(id, { contextId: 'a' }))
      await bench.local.reception.admit(letterTo(id, { contextId: 'b' }))
      const first = await hand.lease()
      assert.equal(await bench.local.inbox.suspend(first), 'held')
      assert.equal(await bench.local.inbox.suspend(first), 'held')
      const second = await hand.lease()
      assert.deepEqual(await counts(id), { running: 1, suspended: 1, waiting: 0 })
      assert.equal(await bench.local.inbox.resume(first), 'held')
      assert.deepEqual(await counts(id), { running: 2, suspended: 0, waiting: 0 })
      await bench.local.inbox.settle(first, done('a'))
      await bench.local.inbox.settle(second, done('b'))
      assert.deepEqual(await counts(id), { running: 0, suspended: 0, waiting: 0 })
    })
  })

  test('IN-9 a suspended turn keeps its conversation and can settle without taking its slot back', async () => {
    const id = await bench.workspace(1)
    await bench.withHand(id, async (hand) => {
      await bench.local.reception.admit(letterTo(id, { contextId: 'a' }))
      await bench.local.reception.admit(letterTo(id, { contextId: 'a', text: 'behind' }))
      const first = await hand.lease()
      await bench.local.inbox.suspend(first)
      assert.ok(await hand.idle())
      await bench.local.inbox.settle(first, done('a'))
      assert.deepEqual(await counts(id), { running: 0, suspended: 0, waiting: 1 })
    })
    await bench.withHand(id, async (hand) => {
      await bench.local.inbox.settle(await hand.lease(), done('b'))
    })
  })

  test('IN-9 more than eight waiting turns are refused', async () => {
    const id = await bench.workspace(9)
    await bench.withHand(id, async (hand) => {
      const leases: Lease[] = []
      for (let count = 0; count < 9; count++) {
        await bench.local.reception.admit(letterTo(id))
        leases.push(await hand.lease())
      }
      const answers: string[] = []
      for (const lease of leases) answers.push(await bench.local.inbox.suspend(lease))
      assert.deepEqual(answers, [...Array(8).fill('held'), 'refused'])
      for (const lease of leases) await bench.local.inbox.settle(lease, done('x'))
      assert.deepEqual(await counts(id), { running: 0, suspended: 0, waiting: 0 })
    })
  })

  const question = { id: 'q1', parts: [{ text: 'delete it?' }] }

  test('IN-9 a question makes the task input-required, and the next message to it is the answer', async () => {
    const id = await bench.workspace()
    await bench.withHand(id, async (hand) => {
      const { taskId } = await bench.local.reception.admit(letterTo(id))
      const lease = await hand.lease()
      assert.equal(await bench.local.inbox.ask(lease, question), 'held')
      assert.equal(await bench.local.inbox.ask(lease, question), 'held')
      assert.equal(await bench.state(taskId), 'TASK_STATE_INPUT_REQUIRED')
      assert.deepEqual(await counts(id), { running: 0, suspended: 1, waiting: 0 })
      const reply = letterTo(id, { taskId, text: 'yes' })
      await bench.local.reception.admit(reply)
      const answer = await hand.next()
      assert.deepEqual(answer.type === 'answer' && [answer.askId, answer.parts], ['q1', [{ text: 'yes' }]])
      assert.equal((await bench.local.reception.admit(reply)).duplicate, true)
      assert.equal(await bench.state(taskId), 'TASK_STATE_WORKING')
      assert.deepEqual(await counts(id), { running: 1, suspended: 0, waiting: 0 })
      await bench.local.inbox.settle(lease, done('deleted'))
      const task = await bench.local.reception.task(taskId)
      assert.equal(task?.status.state, 'TASK_STATE_COMPLETED')
      assert.equal(task?.history?.length, 2)
      assert.ok(await hand.idle())
    })
  })

  test('IN-9 an answer to a turn that is tried again goes back to its place, behind what was there before it', async () => {
    const id = await bench.workspace()
    const { reception, inbox } = bench.local
    await bench.withHand(id, async (hand) => {
      const { contextId } = await reception.admit(letterTo(id, { text: 'before' }))
      await inbox.settle(await hand.lease(), done('well'))
      const { taskId } = await reception.admit(letterTo(id, { contextId, text: 'work' }))
      const lease = await hand.lease()
      await reception.admit(letterTo(id, { contextId, text: 'between' }))
      await inbox.ask(lease, question)
      await reception.admit(letterTo(id, { taskId, text: 'yes' }))
      await reception.admit(letterTo(id, { contextId, text: 'behind' }))
      await hand.next()
      await inbox.settle(lease, { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false })
      assert.deepEqual(await counts(id), { running: 1, suspended: 0, waiting: 3 })
      const texts: unknown[] = []
      while (texts.length < 4) {
        const next = await hand.lease()
        texts.push(next.envelope.message.parts[0]?.text)
        await inbox.settle(next, done('well'))
      }
      assert.deepEqual(texts, ['work', 'between', 'yes', 'behind'])
      assert.equal(await bench.state(taskId), 'TASK_STATE_COMPLETED')
      assert.deepEqual(await counts(id), { running: 0, suspended: 0, waiting: 0 })
    })
  })

  test('IN-9 if the worker dies the question is void, and the answer is queued behind the re-run', async () => {
    const id = await bench.workspace()
    const hand = bench.hand(id)
    const { taskId } = await bench.local.reception.admit(letterTo(id, { text: 'work' }))
    const lease = await hand.lease()
    await bench.local.inbox.ask(lease, question)
    await bench.local.reception.admit(letterTo(id, { taskId, text: 'yes' }))
    await hand.next()
    await hand.leave()
    await bench.local.recover()
    await bench.withHand(id, async (other) => {
      const again = await other.lease()
      assert.deepEqual([again.messageId, again.losses], [lease.messageId, 1])
      await bench.local.inbox.settle(again, done('done without'))
      const answer = await other.lease()
      assert.deepEqual(answer.envelope.message.parts, [{ text: 'yes' }])
      await bench.local.inbox.settle(answer, done('too late, but heard'))
    })
    assert.equal(await bench.state(taskId), 'TASK_STATE_COMPLETED')
    assert.deepEqual(await counts(id), { running: 0, suspended: 0, waiting: 0 })
  })
}
