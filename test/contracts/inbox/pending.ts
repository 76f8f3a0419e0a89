/** Permissions: asked by a running turn, answered by an owner, once, or denied by the clock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '../../../src/inbox/inbox.ts'
import { letterTo } from '../../fakes/letters.ts'
import { code, done, type Hand, type InboxBench } from './harness.ts'

export function pendingPermissions(bench: InboxBench): void {
  const request = { id: '1', parts: [{ text: 'waiting' }], permission: { tool: 'Bash', subject: 'rm -rf build' } }
  const { ask, answered } = {
    async ask(id: string, hand: Hand): Promise<{ lease: Lease; pendingId: string }> {
      await bench.local.reception.admit(letterTo(id))
      const lease = await hand.lease()
      assert.equal(await bench.local.inbox.ask(lease, request), 'held')
      const [asked] = await bench.local.pending.list(id)
      return { lease, pendingId: asked?.id ?? '' }
    },
    async answered(hand: Hand) {
      const handout = await hand.next()
      return handout.type === 'answer' && [handout.askId, handout.parts]
    },
  }

  test('AG-16 a permission is listed with exactly what would be done, and the word of an owner reaches the turn', async () => {
    const id = await bench.workspace()
    await bench.withHand(id, async (hand) => {
      const { lease, pendingId } = await ask(id, hand)
      assert.equal(await bench.state(lease.taskId), 'TASK_STATE_AUTH_REQUIRED')
      const [asked] = await bench.local.pending.list()
      assert.ok((await bench.local.pending.list()).some((one) => one.id === pendingId))
      assert.ok(asked !== undefined && asked.expiresInMs > 29 * 60_000)
      const [own] = await bench.local.pending.list(id)
      assert.deepEqual([own?.tool, own?.subject, own?.taskId], ['Bash', 'rm -rf build', lease.taskId])
      await bench.local.pending.answer(pendingId, 'allowed', 'Ana')
      assert.deepEqual(await answered(hand), ['1', []])
      assert.equal(await bench.state(lease.taskId), 'TASK_STATE_WORKING')
      assert.deepEqual(await bench.local.pending.list(id), [])
      await bench.local.inbox.settle(lease, done('gone'))
    })
    const { entries } = await bench.local.activity.read({ workspaceId: id, sinceSeq: 0, type: 'permission', limit: 10 })
    assert.deepEqual(
      entries.map(({ text, by }) => [text, by]),
      [['allowed', 'Ana']],
    )
  })

  test('AG-16 an answer counts once: the same word again is nothing new, another one is refused', async () => {
    const id = await bench.workspace()
    await bench.withHand(id, async (hand) => {
      const { lease, pendingId } = await ask(id, hand)
      const both = await Promise.allSettled([
        bench.local.pending.answer(pendingId, 'denied', 'Ana'),
        bench.local.pending.answer(pendingId, 'denied', 'Bo'),
      ])
      assert.deepEqual(
        both.map(({ status }) => status),
        ['fulfilled', 'fulfilled'],
      )
      await assert.rejects(bench.local.pending.answer(pendingId, 'allowed', 'Ana'), code('unsupported_operation'))
      assert.deepEqual(await answered(hand), ['1', undefined])
      assert.ok(await hand.idle())
      await bench.local.inbox.settle(lease, done('left alone'))
      await assert.rejects(bench.local.pending.answer(pendingId, 'allowed', 'Ana'), code('unsupported_operation'))
    })
    for (const unknown of ['', 'x', `${'x'.repeat(99)}.1.1`, '01M7FPH65GBDK8DY0646KAE617.1.1']) {
      await assert.rejects(bench.local.pending.answer(unknown, 'allowed', 'Ana'), code('not_found'))
    }
  })

  test('AG-16 a message to the task is no permission: it waits behind the turn, and the task goes on waiting', async () => {
    const id = await bench.workspace()
    await bench.withHand(id, async (hand) => {
      const { lease, pendingId } = await ask(id, hand)
      await bench.local.reception.admit(letterTo(id, { taskId: lease.taskId, text: 'yes, allowed' }))
      assert.equal(await bench.state(lease.taskId), 'TASK_STATE_AUTH_REQUIRED')
      assert.ok(await hand.idle())
      await bench.local.pending.answer(pendingId, 'denied', 'Ana')
      assert.deepEqual(await answered(hand), ['1', undefined])
      await bench.local.inbox.settle(lease, done('not done'))
      const behind = await hand.lease()
      assert.deepEqual(behind.envelope.message.parts, [{ text: 'yes, allowed' }])
      await bench.local.inbox.settle(behind, done('heard'))
      assert.equal(await bench.state(lease.taskId), 'TASK_STATE_COMPLETED')
    })
  })

  test('AG-16 what nobody answers in time is denied, and a late word is refused', async () => {
    const id = await bench.workspace()
    await bench.withHand(id, async (hand) => {
      await bench.local.reception.admit(letterTo(id))
      const lease = await hand.lease()
      await bench.local.inbox.ask(lease, { ...request, timeoutMs: 1 })
      const [asked] = await bench.local.pending.list(id)
      // By the sweep, which comes every few seconds.
      assert.deepEqual(await answered(hand), ['1', undefined])
      await assert.rejects(bench.local.pending.answer(asked?.id ?? '', 'allowed', 'Ana'), code('unsupported_operation'))
      await bench.local.inbox.settle(lease, done('not done'))
    })
  })

  test('AG-16 a permission outlives a restart of the list, not of its turn: a new attempt asks anew', async () => {
    const id = await bench.workspace()
    const hand = bench.hand(id)
    const { pendingId } = await ask(id, hand)
    await hand.leave()
    await bench.local.recover()
    assert.deepEqual(await bench.local.pending.list(id), [])
    await assert.rejects(bench.local.pending.answer(pendingId, 'allowed', 'Ana'), code('unsupported_operation'))
    await bench.withHand(id, async (other) => {
      const again = await other.lease()
      assert.equal(await bench.local.inbox.ask(again, request), 'held')
      const [asked] = await bench.local.pending.list(id)
      assert.notEqual(asked?.id, pendingId)
      await bench.local.pending.answer(asked?.id ?? '', 'allowed', 'Ana')
      assert.deepEqual(await answered(other), ['1', []])
      await bench.local.inbox.settle(again, done('done'))
    })
  })

  test('AG-16 an answer given on another node reaches the worker here', async () => {
    const id = await bench.workspace()
    const elsewhere = bench.newInbox()
    try {
      await bench.withHand(id, async (hand) => {
        const { lease, pendingId } = await ask(id, hand)
        await elsewhere.pending.answer(pendingId, 'allowed', 'Ana')
        assert.deepEqual(await answered(hand), ['1', []])
        await bench.local.inbox.settle(lease, done('done'))
      })
    } finally {
      elsewhere.close()
    }
  })
}
