/** Recovery after a dead process, leases of a worker that leaves, and sessions. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeError } from '../../../../src/errors.ts'
import type { Lease, Outcome } from '../../../../src/inbox/worker.ts'
import type { Store } from '../../../../src/store/store.ts'
import { findSession } from '../../../../src/workspaces/sessions.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { manualClock } from '../../../fakes/manual-clock.ts'
import { waitUntil } from '../../../harness/wait.ts'
import { done, failure, HOST, type InboxHarness } from '../harness.ts'

const never = new AbortController().signal

export function recoverTests(harness: InboxHarness): void {
  test('RE-1 IN-4 the turns of a dead process run again as interrupted, and five losses are a dead letter', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    for (let loss = 0; loss < 5; loss++) {
      const process = harness.newInbox()
      const worker = harness.worker(id, process)
      const lease = await worker.lease()
      assert.deepEqual([lease.losses, lease.interrupted], [loss, loss > 0])
      process.close()
      assert.equal(await harness.local.recover(), 1)
      assert.equal(await process.inbox.settle(lease, done('late')), 'stale')
    }
    const task = await harness.local.reception.task(taskId)
    assert.equal(task?.status.state, 'TASK_STATE_FAILED')
    const { parts, metadata } = task?.status.message ?? {}
    const text = 'the worker was lost 5 times while running this message'
    assert.deepEqual([parts, metadata], [[{ text }], { code: 'worker_lost' }])
    assert.equal(task?.artifacts, undefined)
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  const hostedWorkspace = async () => {
    const id = await harness.workspace()
    await harness.sql('update workspace_load set hosted = 1 where workspace_id = $1', id)
    return id
  }

  test('RE-1 a restart leaves the turns of other hosts alone, also of one whose name begins alike', async () => {
    const id = await harness.workspace()
    const stop = new AbortController()
    const worker = { id: `${HOST}ile.1`, workspaces: [id] }
    const directives = harness.local.inbox.leases(worker, stop.signal)[Symbol.asyncIterator]()
    const first = directives.next()
    await harness.local.reception.admit(letterTo(id))
    const { lease } = (await first).value as { lease: Lease }
    assert.equal(await harness.local.recover(), 0)
    assert.equal(await harness.local.inbox.settle(lease, done('mine')), 'settled')
    await directives.return?.()
  })

  test('IN-2 the platform serves first the workspace that waits longest', async () => {
    const ids: string[] = []
    for (const waitedMs of [2000, 3000, 1000, 9000, 9000]) {
      const id = await hostedWorkspace()
      await harness.local.reception.admit(letterTo(id))
      await harness.sql('update conversations set ready_at = ready_at - $2 where workspace_id = $1', id, waitedMs)
      ids.push(id)
    }
    const [second = '', first = '', third = '', paused = '', ofABridge = ''] = ids
    await harness.local.queues.pause(paused, { now: false })
    await harness.sql('update workspace_load set hosted = 0 where workspace_id = $1', ofABridge)
    await harness.withWorker('hosted', async (worker) => {
      for (const id of [first, second, third]) {
        const lease = await worker.lease()
        assert.equal(lease.workspaceId, id)
        await harness.local.inbox.settle(lease, done('ok'))
      }
      assert.ok(await worker.idle())
    })
    for (const id of [paused, ofABridge]) await harness.local.queues.end(id, failure)
  })

  test('IN-2 a message to a workspace that the platform runs goes to a worker of the platform', async () => {
    const id = await hostedWorkspace()
    await harness.withWorker('hosted', async (worker) => {
      await harness.withWorker(id, async (named) => {
        const { taskId } = await harness.local.reception.admit(letterTo(id))
        const lease = await worker.lease()
        assert.equal(lease.taskId, taskId)
        assert.ok(await named.idle())
        await harness.local.inbox.settle(lease, done('ok'))
      })
    })
  })

  test('IN-4 in a hosted workspace the claim begins the turn: on admission, from the queue, with a passed slot', async () => {
    const id = await hostedWorkspace()
    const { reception, inbox } = harness.local
    await reception.admit(letterTo(id))
    await harness.withWorker('hosted', async (worker) => {
      let suspended: Lease | undefined
      for (let claim = 0; claim < 4; claim++) {
        const directive = await worker.next()
        const { lease } = directive as { lease: Lease }
        const [row] = await harness.sql('select begun from messages where id = $1', lease.messageId)
        assert.equal(Number(row?.['begun']), 1)
        // The second and the fourth message get the slot of the turn before; the third finds a free slot.
        if (claim % 2 === 0) await reception.admit(letterTo(id))
        if (claim === 2) await inbox.suspend(lease)
        else await inbox.settle(lease, done('well'))
        if (claim === 3) await inbox.settle(suspended ?? lease, done('well'))
        suspended = lease
        if (claim === 1) await reception.admit(letterTo(id))
      }
    })
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('a lease that its worker did not take is released when the worker leaves', async () => {
    const id = await harness.workspace(4)
    const worker = harness.worker(id)
    await harness.local.reception.admit(letterTo(id))
    await worker.lease()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    await worker.leave()
    await harness.withWorker(id, async (other) => {
      const lease = await other.lease()
      assert.equal(lease.taskId, taskId)
      assert.equal(lease.interrupted, false)
      await harness.local.inbox.settle(lease, done('ok'))
    })
  })

  test('a worker that leaves during a look for work does not get leases in an endless loop', async () => {
    const id = await harness.workspace(0)
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    const clock = manualClock()
    let writes = 0
    let leave: (() => Promise<void>) | undefined
    const store: Store = {
      ...harness.store,
      async write(transaction, lane) {
        writes += 1
        const leaving = leave
        leave = undefined
        await leaving?.()
        return await harness.store.write(transaction, lane)
      },
    }
    const local = harness.newInbox(clock, store)
    const worker = harness.worker(id, local)
    assert.ok(await worker.idle())
    await harness.sql('update workspace_load set slots = 1 where workspace_id = $1', id)
    writes = 0
    leave = worker.leave
    clock.advance(5000)
    await waitUntil(() => writes > 0)
    await new Promise((resolve) => setTimeout(resolve, 100))
    local.close()
    await waitUntil(async () => JSON.stringify(await harness.load(id)) === '{"running":0,"waiting":1}')
    assert.ok(writes > 0 && writes <= 2, `${writes} writes`)
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 1 })
    await harness.local.reception.cancel(taskId)
  })

  test('a lease whose commit succeeded and whose answer was lost is released after two sweeps, uncounted', async () => {
    const id = await harness.workspace(0)
    const clock = manualClock()
    let losesAnswers = false
    const store: Store = {
      ...harness.store,
      async write(transaction, lane) {
        const answer = await harness.store.write(transaction, lane)
        if (losesAnswers) throw new MoleculeError('store_unavailable', 'the connection is lost', { retryable: true })
        return answer
      },
    }
    const local = harness.newInbox(clock, store)
    const worker = harness.worker(id, local)
    await harness.local.reception.admit(letterTo(id))
    assert.ok(await worker.idle())
    const isLeased = async () => JSON.stringify(await harness.load(id)) === '{"running":1,"waiting":0}'
    const sweepUntil = (condition: () => Promise<boolean>, what: string) =>
      waitUntil(async () => {
        clock.advance(5000)
        return await condition()
      }, what)
    losesAnswers = true
    await harness.sql('update workspace_load set slots = 1 where workspace_id = $1', id)
    await sweepUntil(isLeased, 'the lease is stored')
    losesAnswers = false
    let isReceived = false
    const waiting = worker.lease().finally(() => {
      isReceived = true
    })
    await sweepUntil(async () => isReceived, 'the message is leased again')
    const lease = await waiting
    assert.deepEqual([lease.epoch, lease.losses, lease.interrupted], [2, 0, false])
    // Its worker knows of this lease, so no sweep takes it away.
    for (let sweeps = 0; sweeps < 3; sweeps++) {
      clock.advance(5000)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    assert.equal(await local.inbox.settle(lease, done('ok')), 'settled')
    await worker.leave()
    local.close()
  })

  test('RE-3 a lease that could not be released in an outage is released later, uncounted', async () => {
    const id = await harness.workspace(2)
    const clock = manualClock()
    let isDown = false
    const store: Store = {
      ...harness.store,
      write(transaction, lane) {
        if (!isDown) return harness.store.write(transaction, lane)
        return Promise.reject(new MoleculeError('store_unavailable', 'the connection is lost', { retryable: true }))
      },
    }
    const local = harness.newInbox(clock, store)
    const join = () => local.inbox.leases({ id: `${HOST}.outage`, workspaces: [id] }, never)[Symbol.asyncIterator]()
    const directives = join()
    const first = directives.next()
    for (let count = 0; count < 2; count++) await local.reception.admit(letterTo(id))
    const { lease } = (await first).value as { lease: Lease }
    isDown = true
    await directives.return?.()
    await new Promise((resolve) => setTimeout(resolve, 20))
    isDown = false
    const later = join()
    let released: Lease | undefined
    later.next().then(({ value }) => {
      released = (value as { lease: Lease }).lease
    }, assert.fail)
    await waitUntil(() => {
      clock.advance(5000)
      return released !== undefined
    }, 'the lease that was not taken comes again')
    const again = released as unknown as Lease
    assert.deepEqual([again.epoch, again.losses, again.interrupted], [2, 0, false])
    for (const each of [lease, again]) assert.equal(await local.inbox.settle(each, done('ok')), 'settled')
    await later.return?.()
    local.close()
  })

  test('RT-5 a session is kept at settle, belongs to one host, and is dropped when lost', async () => {
    const id = await harness.workspace()
    const token = (lease: Lease, host = HOST) => harness.store.read(() => findSession(host, lease))
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id, { contextId: 's' }))
      const first = await worker.lease()
      await harness.local.inbox.settle(first, { ...done('1'), session: 'tok-1' } as Outcome)
      assert.equal(await token(first), 'tok-1')
      assert.equal(await token(first, 'other-host'), undefined)
      await harness.local.reception.admit(letterTo(id, { contextId: 's' }))
      const retry = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false } as const
      await harness.local.inbox.settle(await worker.lease(), retry)
      const second = await worker.lease()
      assert.deepEqual([await token(second), second.failures, second.sessionRetried], ['tok-1', 1, false])
      await harness.local.inbox.settle(second, { ...retry, reason: 'session_lost' })
      assert.equal(await token(second), undefined)
      const fresh = await worker.lease()
      assert.deepEqual([fresh.failures, fresh.sessionRetried], [1, true])
      await harness.local.inbox.settle(fresh, done('2'))
    })
  })
}
