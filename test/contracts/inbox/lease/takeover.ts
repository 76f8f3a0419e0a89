/** Takeover and expiry. Time passes by moving rows and a clock, never by waiting. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeError } from '../../../../src/errors.ts'
import type { LocalInbox } from '../../../../src/inbox/local/local-inbox.ts'
import type { Store } from '../../../../src/store/store.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { type ManualClock, manualClock } from '../../../fakes/manual-clock.ts'
import { waitUntil } from '../../../harness/wait.ts'
import { createBarrier } from '../barrier.ts'
import { done, type InboxHarness } from '../harness.ts'

export function takeoverTests(harness: InboxHarness): void {
  /** A second node whose clock the test moves. */
  const withNode = async (work: (node: LocalInbox, clock: ManualClock) => Promise<void>, store?: Store) => {
    const clock = manualClock()
    const node = harness.newInbox(clock, store)
    try {
      await work(node, clock)
    } finally {
      node.close()
    }
  }
  const runOut = (id: string) =>
    harness.sql('update conversations set lease_until = now_ms() - 1 where workspace_id = $1', id)
  /** Runs the node's sweeps of this much time to their end. */
  const pass = async (clock: ManualClock, ms: number) => {
    for (let passed = 0; passed < ms; passed += 5000) {
      clock.advance(5000)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  test('IN-3 a lease that ran out is taken over, counts as a loss, and its late result is kept but never the reply', async () => {
    const id = await harness.workspace()
    const slow = harness.worker(id)
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    const lost = await slow.lease()
    await slow.leave()
    await withNode(async (node, clock) => {
      const worker = harness.worker(id, node)
      await runOut(id)
      await pass(clock, 40_000)
      const taken = await worker.lease()
      assert.deepEqual(
        [taken.messageId, taken.epoch, taken.losses, taken.interrupted],
        [lost.messageId, lost.epoch + 1, 1, true],
      )
      assert.equal(await harness.local.inbox.settle(lost, done('late')), 'stale')
      assert.deepEqual(await harness.local.inbox.extend([lost]), ['stale'])
      assert.equal(await node.inbox.settle(taken, done('in time')), 'settled')
      const task = await harness.local.reception.task(taskId)
      assert.deepEqual(
        task?.artifacts?.map(({ parts }) => parts),
        [[{ text: 'in time' }]],
      )
      const [late] = await harness.sql(
        `select count(*) as kept from events where task_id = $1 and items like '%"late"%'`,
        taskId,
      )
      assert.equal(Number(late?.['kept']), 1)
      assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
      await worker.leave()
    })
  })

  test('IN-3 a lease that ran out can still be settled while no worker has taken over', async () => {
    const id = await harness.workspace()
    const worker = harness.worker(id)
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    const lease = await worker.lease()
    await runOut(id)
    assert.deepEqual(await harness.local.inbox.extend([lease]), ['held'])
    await runOut(id)
    assert.equal(await harness.local.inbox.settle(lease, done('slept well')), 'settled')
    assert.equal(await harness.state(taskId), 'TASK_STATE_COMPLETED')
    await worker.leave()
  })

  test('IN-3 no takeover happens before one unbroken lease time of connection', async () => {
    const id = await harness.workspace()
    const slow = harness.worker(id)
    await harness.local.reception.admit(letterTo(id))
    const lease = await slow.lease()
    await slow.leave()
    await withNode(async (node, clock) => {
      const worker = harness.worker(id, node)
      await runOut(id)
      await pass(clock, 25_000)
      assert.ok(await worker.idle())
      assert.equal(await harness.local.inbox.settle(lease, done('mine')), 'settled')
      await worker.leave()
    })
  })

  test('IN-3 an outage of the store begins the lease time anew: the workers that it silenced keep their leases', async () => {
    const id = await harness.workspace()
    const slow = harness.worker(id)
    await harness.local.reception.admit(letterTo(id))
    const lease = await slow.lease()
    await slow.leave()
    let failures = 0
    let isDown = false
    const store: Store = {
      ...harness.store,
      read(transaction) {
        if (!isDown) return harness.store.read(transaction)
        failures += 1
        return Promise.reject(new MoleculeError('store_unavailable', 'the connection is lost', { retryable: true }))
      },
    }
    await withNode(async (node, clock) => {
      const worker = harness.worker(id, node)
      await pass(clock, 25_000)
      isDown = true
      await waitUntil(async () => {
        await pass(clock, 5000)
        return failures > 0
      })
      isDown = false
      await runOut(id)
      await pass(clock, 25_000)
      assert.ok(await worker.idle())
      assert.equal(await harness.local.inbox.settle(lease, done('mine')), 'settled')
      await worker.leave()
    }, store)
  })

  test('IN-8 a cancelled turn whose worker is gone frees its conversation when the lease runs out', async () => {
    const id = await harness.workspace()
    const slow = harness.worker(id)
    const { taskId } = await harness.local.reception.admit(letterTo(id, { contextId: 'c' }))
    await slow.lease()
    await slow.leave()
    await harness.local.reception.cancel(taskId)
    const { taskId: next } = await harness.local.reception.admit(letterTo(id, { contextId: 'c' }))
    await withNode(async (node, clock) => {
      const worker = harness.worker(id, node)
      assert.ok(await worker.idle())
      await runOut(id)
      await pass(clock, 40_000)
      const lease = await worker.lease()
      assert.equal(lease.taskId, next)
      await node.inbox.settle(lease, done('ok'))
      await worker.leave()
    })
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('IN-3 PL-2 no turn of a paused queue is taken over, and a cancelled one frees its conversation there too', async () => {
    const id = await harness.workspace(2)
    const { reception, queues } = harness.local
    const slow = harness.worker(id)
    const running = await reception.admit(letterTo(id, { contextId: 'a' }))
    const canceled = await reception.admit(letterTo(id, { contextId: 'b' }))
    const lost = [await slow.lease(), await slow.lease()]
    await slow.leave()
    await reception.cancel(canceled.taskId)
    const behind = await reception.admit(letterTo(id, { contextId: 'b' }))
    await queues.pause(id, { now: false })
    await withNode(async (node, clock) => {
      const worker = harness.worker(id, node)
      await runOut(id)
      await pass(clock, 40_000)
      assert.ok(await worker.idle())
      assert.deepEqual((await harness.local.inbox.extend(lost)).sort(), ['held', 'stale'])
      await runOut(id)
      await queues.resume(id)
      await pass(clock, 5000)
      const leases = [await worker.lease(), await worker.lease()]
      assert.deepEqual(leases.map(({ taskId }) => taskId).sort(), [running.taskId, behind.taskId].sort())
      for (const lease of leases) await node.inbox.settle(lease, done('ok'))
      await worker.leave()
    })
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('IN-3 IN-8 a lease that is renewed or settled while its takeover begins stays as it is', async () => {
    for (const meanwhile of ['renewed', 'settled', 'cancelled and renewed']) {
      const id = await harness.workspace(2)
      const { reception, inbox } = harness.local
      const slow = harness.worker(id)
      const { taskId } = await reception.admit(letterTo(id, { contextId: 'c' }))
      const lease = await slow.lease()
      await slow.leave()
      const barrier = createBarrier(harness.store)
      await withNode(async (node, clock) => {
        const worker = harness.worker(id, node)
        await pass(clock, 40_000)
        if (meanwhile.startsWith('cancelled')) await reception.cancel(taskId)
        await runOut(id)
        const held = barrier.hold('write')
        clock.advance(5000)
        await held.reached
        const standing = meanwhile === 'settled' ? await inbox.settle(lease, done('mine')) : await inbox.extend([lease])
        held.release()
        assert.ok(await worker.idle(), meanwhile)
        const expected = { renewed: ['held'], settled: 'settled', 'cancelled and renewed': ['stop'] }[meanwhile]
        assert.deepEqual(standing, expected)
        if (meanwhile !== 'settled') assert.deepEqual(await inbox.extend([lease]), expected, meanwhile)
        assert.equal(await inbox.settle(lease, done('mine')), 'settled')
        await worker.leave()
      }, barrier.store)
    }
  })

  test('IN-7 a message that no worker began in time is a dead letter with that reason; one that had begun is not', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit({ ...letterTo(id), expiresInMs: 1 })
    const begun = await harness.local.reception.admit(letterTo(id, { contextId: 'b' }))
    await harness.sql('update messages set expires_at = 1, losses = 1 where task_id = $1', begun.taskId)
    await withNode(async (_node, clock) => {
      await waitUntil(async () => {
        await pass(clock, 5000)
        return (await harness.state(taskId)) !== 'TASK_STATE_SUBMITTED'
      })
      const task = await harness.local.reception.task(taskId)
      assert.equal(task?.status.state, 'TASK_STATE_FAILED')
      assert.deepEqual(task?.status.message?.metadata, { code: 'expired' })
      assert.equal(await harness.state(begun.taskId), 'TASK_STATE_SUBMITTED')
      assert.deepEqual(await harness.load(id), { running: 0, waiting: 1 })
    })
  })
}
