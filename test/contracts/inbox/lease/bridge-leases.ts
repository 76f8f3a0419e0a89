/** Which leases a call of a bridge gets, keeps and frees, also when other calls commit while it begins. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import type { LocalInbox } from '../../../../src/inbox/local/local-inbox.ts'
import { type Lease, leaseId } from '../../../../src/inbox/worker.ts'
import type { Store } from '../../../../src/store/store.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { manualClock } from '../../../fakes/manual-clock.ts'
import { createBarrier } from '../barrier.ts'
import { done, failure, type InboxHarness } from '../harness.ts'
import { bridgeCall as call, onlyLease } from './bridges.ts'

const never = new AbortController().signal
/** Of calls whose wait the test sees begin: no other timer has these times. */
const [WAIT_MS, SHORT_WAIT_MS] = [2003, 307]
const settled = { outcome: done('ok'), host: 'there' }

export function bridgeLeaseTests(harness: InboxHarness): void {
  const poll = (given: ReturnType<typeof call>) => harness.local.bridges.lease(given, never)
  const leased = async (given: ReturnType<typeof call>) => onlyLease(await poll(given))
  const allLeased = async (given: ReturnType<typeof call>): Promise<Lease[]> =>
    (await poll(given)).flatMap((directive) => (directive.type === 'lease' ? [directive.lease] : []))
  const admit = async (id: string, count = 1) => {
    const letters = Array.from({ length: count }, () => harness.local.reception.admit(letterTo(id)))
    return (await Promise.all(letters)).map(({ taskId }) => taskId)
  }
  /** Another process on the same store. */
  const withNode = async (store: Store, work: (node: LocalInbox) => Promise<void>) => {
    const node = harness.newInbox(undefined, store)
    try {
      await work(node)
    } finally {
      node.close()
    }
  }

  placeTests()
  freeingTests()
  raceTests()

  function placeTests(): void {
    test('CN-8 a call gets all the work that is ready, up to its capacity, and leaves no listener', async () => {
      const id = await harness.workspace(5)
      const tasks = await admit(id, 3)
      const { signal } = new AbortController()
      const two = await harness.local.bridges.lease(call(id, { leasesMax: 2 }), signal)
      const third = await leased(call(id, { bridge: 'desktop' }))
      const got = [...two.map((directive) => directive.type === 'lease' && directive.lease.taskId), third.taskId]
      assert.deepEqual(got.sort(), tasks.sort())
      assert.deepEqual(getEventListeners(signal, 'abort'), [])
    })

    test('CN-7 a place is free for the next message when its turn has ended, waits, or was taken over', async () => {
      const { bridges } = harness.local
      for (const end of ['before', 'settled', 'waits', 'taken over']) {
        const id = await harness.workspace(5)
        await admit(id)
        const lease = await leased(call(id))
        if (end === 'before') await bridges.settle(lease, settled)
        const waits = harness.waitBegins(WAIT_MS)
        const next = leased(call(id, { holding: ['gone.1', leaseId(lease)], waitMs: WAIT_MS }))
        await waits
        if (end === 'settled') await bridges.settle(lease, settled)
        if (end === 'waits') assert.equal(await bridges.suspend(lease), 'held')
        if (end === 'taken over') {
          await withNode(harness.store, async (node) => {
            assert.equal(onlyLease(await node.bridges.lease(call(id), never)).messageId, lease.messageId)
          })
          assert.deepEqual(await bridges.extend([lease]), ['stale'])
        }
        const [taskId] = await admit(id)
        assert.equal((await next).taskId, taskId, end)
      }
    })

    test('CN-7 a turn that may not wait, or that must stop, keeps its place', async () => {
      const { bridges } = harness.local
      for (const answer of ['refused', 'stop']) {
        const id = await harness.workspace(20)
        await admit(id, 9)
        const leases = await allLeased(call(id, { leasesMax: 9 }))
        const last = leases.at(-1) as Lease
        if (answer === 'stop') await harness.local.reception.cancel(last.taskId)
        else for (const lease of leases.slice(0, 8)) await bridges.suspend(lease)
        const waits = harness.waitBegins(SHORT_WAIT_MS)
        const full = poll(call(id, { leasesMax: 9, holding: leases.map(leaseId), waitMs: SHORT_WAIT_MS }))
        await waits
        assert.equal(await bridges.suspend(last), answer)
        const [taskId = ''] = await admit(id)
        // A sweep may tell the call meanwhile that a turn must stop.
        const given = (await full).filter(({ type }) => type === 'lease')
        assert.deepEqual(given, [], answer)
        assert.equal(await harness.state(taskId), 'TASK_STATE_SUBMITTED')
      }
    })
  }

  function freeingTests(): void {
    test('CN-5 a call frees the leases of its own bridge that it does not name, and no other lease', async () => {
      const [id, other] = [await harness.workspace(5), await harness.workspace()]
      await admit(id, 3)
      await admit(other)
      const [held, lost] = (await allLeased(call(id, { leasesMax: 2 }))) as [Lease, Lease]
      const others = [await leased(call(id, { bridge: 'desktop' })), await leased(call(other))]
      await harness.local.queues.pause(id, { now: false })
      const holding = [leaseId(held)]
      assert.deepEqual(await poll(call(id, { holding, leasesMax: 2, waitMs: 0 })), [])
      assert.deepEqual(await harness.load(id), { running: 2, waiting: 1 }, 'freed, also in a paused queue')
      await harness.local.queues.resume(id)
      const again = await leased(call(id, { holding, leasesMax: 2 }))
      assert.deepEqual([again.messageId, again.epoch], [lost.messageId, lost.epoch + 1])
      const standings = await harness.local.bridges.extend([held, ...others, lost])
      assert.deepEqual(standings, ['held', 'held', 'held', 'stale'])
    })

    test('CN-5 a bridge that was restarted gets all its leases again, also more than a hundred', async () => {
      const id = await harness.workspace(101)
      await admit(id, 101)
      const lost = await allLeased(call(id, { leasesMax: 101 }))
      const again = await allLeased(call(id, { leasesMax: 101 }))
      const names = (leases: readonly Lease[]) => leases.map(({ messageId }) => messageId).sort()
      assert.equal(lost.length, 101)
      assert.deepEqual(names(again), names(lost))
      assert.ok(again.every(({ epoch, losses }) => epoch === 2 && losses === 0))
      await harness.local.queues.end(id, failure)
    })

    test('CN-5 a lease that a bridge holds since before a restart of the platform is no lost lease', async () => {
      const id = await harness.workspace()
      await admit(id)
      const lease = await leased(call(id))
      const clock = manualClock()
      const node = harness.newInbox(clock)
      const stop = new AbortController()
      const waiting = node.bridges.lease(call(id, { holding: [leaseId(lease)], waitMs: 60_000 }), stop.signal)
      for (let sweeps = 0; sweeps < 4; sweeps++) {
        await new Promise((resolve) => setTimeout(resolve, 20))
        clock.advance(5000)
      }
      stop.abort()
      await waiting
      node.close()
      assert.deepEqual(await harness.local.bridges.extend([lease]), ['held'])
    })
  }

  function raceTests(): void {
    test('CN-5 a lease that is claimed for a caller that goes meanwhile is released', async () => {
      const id = await harness.workspace()
      await admit(id)
      const barrier = createBarrier(harness.store)
      await withNode(barrier.store, async (node) => {
        const gone = new AbortController()
        const held = barrier.hold('write')
        const first = node.bridges.lease(call(id), gone.signal)
        await held.reached
        gone.abort()
        held.release()
        assert.deepEqual(await first, [])
        const again = onlyLease(await node.bridges.lease(call(id, { bridge: 'desktop' }), never))
        assert.deepEqual([again.epoch, again.losses, again.interrupted], [2, 0, false])
      })
    })

    test('CN-5 a call of a caller that has gone leases nothing', async () => {
      const id = await harness.workspace()
      const [taskId = ''] = await admit(id)
      assert.deepEqual(await harness.local.bridges.lease(call(id), AbortSignal.abort()), [])
      assert.equal(await harness.state(taskId), 'TASK_STATE_SUBMITTED')
    })

    test('CN-5 a call that is slow to free a lost lease does not free the lease that came after it', async () => {
      const id = await harness.workspace()
      await admit(id)
      await leased(call(id))
      const barrier = createBarrier(harness.store)
      await withNode(barrier.store, async (node) => {
        const held = barrier.hold('write')
        const slow = node.bridges.lease(call(id, { waitMs: 0 }), never)
        await held.reached
        const again = await leased(call(id))
        held.release()
        assert.deepEqual(await slow, [])
        assert.deepEqual(await harness.local.bridges.extend([again]), ['held'])
      })
    })

    test('CN-7 a lease that is settled while the call of its bridge begins takes no place', async () => {
      const id = await harness.workspace()
      const barrier = createBarrier(harness.store)
      await withNode(barrier.store, async (node) => {
        await admit(id)
        const lease = onlyLease(await node.bridges.lease(call(id), never))
        const held = barrier.hold('read')
        const next = node.bridges.lease(call(id, { holding: [leaseId(lease)], waitMs: 2000 }), never)
        await held.reached
        assert.equal(await node.bridges.settle(lease, settled), 'settled')
        const [taskId] = await admit(id)
        held.release()
        assert.equal(onlyLease(await next).taskId, taskId)
      })
    })
  }
}
