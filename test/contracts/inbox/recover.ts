/** What is left behind: by a dead process, by a worker that leaves, by a session. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Outcome } from '../../../src/inbox/inbox.ts'
import { findSession } from '../../../src/sessions/sessions.ts'
import type { Store } from '../../../src/store/store.ts'
import { letterTo } from '../../fakes/letters.ts'
import { until } from '../../fakes/living.ts'
import { manualClock } from '../../fakes/manual-clock.ts'
import { done, failure, HOST, type InboxBench } from './harness.ts'

export function recovery(bench: InboxBench): void {
  test('RE-1 IN-4 what a dead process held runs again as interrupted, and five losses are a dead letter', async () => {
    const id = await bench.workspace()
    const { taskId } = await bench.local.reception.admit(letterTo(id))
    for (let loss = 0; loss < 5; loss++) {
      const process = bench.newInbox()
      const hand = bench.hand(id, process)
      const lease = await hand.lease()
      assert.deepEqual([lease.losses, lease.interrupted], [loss, loss > 0])
      process.close()
      assert.equal(await bench.local.recover(), 1)
      assert.equal(await process.inbox.settle(lease, done('late')), 'stale')
    }
    const task = await bench.local.reception.task(taskId)
    assert.equal(task?.status.state, 'TASK_STATE_FAILED')
    assert.deepEqual(task?.status.message?.metadata, { code: 'worker_lost' })
    assert.equal(task?.artifacts, undefined)
    assert.deepEqual(await bench.load(id), { running: 0, waiting: 0 })
  })

  test('a lease that nobody picked up goes back when its worker leaves', async () => {
    const id = await bench.workspace(4)
    const hand = bench.hand(id)
    await bench.local.reception.admit(letterTo(id))
    await hand.lease()
    const { taskId } = await bench.local.reception.admit(letterTo(id))
    await hand.leave()
    await bench.withHand(id, async (other) => {
      const lease = await other.lease()
      assert.equal(lease.taskId, taskId)
      assert.equal(lease.interrupted, false)
      await bench.local.inbox.settle(lease, done('ok'))
    })
  })

  test('a worker that leaves while work is being looked for is handed nothing over and over', async () => {
    const id = await bench.workspace(0)
    const { taskId } = await bench.local.reception.admit(letterTo(id))
    const clock = manualClock()
    let writes = 0
    let leave: (() => Promise<void>) | undefined
    const store: Store = {
      ...bench.store,
      async write(transaction, lane) {
        writes += 1
        const leaving = leave
        leave = undefined
        await leaving?.()
        return await bench.store.write(transaction, lane)
      },
    }
    const local = bench.newInbox(clock, store)
    const hand = bench.hand(id, local)
    assert.ok(await hand.idle())
    await bench.sql('update workspace_load set slots = 1 where workspace_id = $1', id)
    writes = 0
    leave = hand.leave
    clock.advance(5000)
    await until(async () => writes > 0)
    await new Promise((resolve) => setTimeout(resolve, 100))
    local.close()
    await until(async () => JSON.stringify(await bench.load(id)) === '{"running":0,"waiting":1}')
    assert.ok(writes > 0 && writes <= 2, `${writes} writes`)
    assert.deepEqual(await bench.load(id), { running: 0, waiting: 1 })
    await bench.local.reception.cancel(taskId)
  })

  test('RT-5 a session is kept at settle, belongs to one host, and is dropped when lost', async () => {
    const id = await bench.workspace()
    const token = (lease: Lease, host = HOST) => bench.store.read(() => findSession(host, lease))
    await bench.withHand(id, async (hand) => {
      await bench.local.reception.admit(letterTo(id, { contextId: 's' }))
      const first = await hand.lease()
      await bench.local.inbox.settle(first, { ...done('1'), session: 'tok-1' } as Outcome)
      assert.equal(await token(first), 'tok-1')
      assert.equal(await token(first, 'other-host'), undefined)
      await bench.local.reception.admit(letterTo(id, { contextId: 's' }))
      const second = await hand.lease()
      await bench.local.inbox.settle(second, {
        type: 'retry',
        failure,
        afterMs: 0,
        reason: 'session_lost',
        interrupted: false,
      })
      assert.equal(await token(second), undefined)
      const fresh = await hand.lease()
      assert.deepEqual([fresh.failures, fresh.sessionRetried], [0, true])
      await bench.local.inbox.settle(fresh, done('2'))
    })
  })
}
