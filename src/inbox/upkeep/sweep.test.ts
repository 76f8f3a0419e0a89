/** The sweep: when it runs, what it does for workers of this process, and what stops it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../../test/fakes/letters.ts'
import { type ClockedInbox, done, keyOf, leasesIn, openInboxOnClock } from '../../../test/harness/inbox-on-clock.ts'
import { MoleculeError } from '../../errors.ts'
import type { Lease } from '../inbox.ts'

const SWEEP_MS = 5000
const LEASE_MS = 30_000
const HOUR_MS = 3600_000

/** A message that became ready without a wake-up, as another process would leave it. */
async function plantReady(inbox: ClockedInbox, id: string, readyInMs = 0): Promise<string> {
  await inbox.local.queues.pause(id, { now: false })
  const { taskId } = await inbox.local.reception.admit(letterTo(id))
  await inbox.sql('update conversations set ready_at = now_ms() + $1 where ready_at is not null', readyInMs)
  await inbox.sql('update workspace_load set paused = 0 where workspace_id = $1', id)
  return taskId
}

const tasksOf = async (worker: { take(): Promise<Parameters<typeof leasesIn>[0]> }) =>
  leasesIn(await worker.take()).map(({ taskId }) => taskId)

test('a missed wake-up delays work by 5 s at most, again and again', async (t) => {
  const inbox = openInboxOnClock(t)
  const [id, hosted] = [await inbox.workspace({ slots: 9 }), await inbox.workspace({ slots: 9, hosted: true })]
  const [named, worker] = [inbox.worker([id]), inbox.worker('hosted')]
  await inbox.pass()
  for (let round = 0; round < 3; round++) {
    const [first, second] = [await plantReady(inbox, id), await plantReady(inbox, hosted)]
    await inbox.pass(SWEEP_MS - 1)
    assert.deepEqual([await tasksOf(named), await tasksOf(worker)], [[], []])
    inbox.notified.length = 0
    await inbox.pass(1)
    assert.deepEqual([await tasksOf(named), await tasksOf(worker)], [[first], [second]])
    assert.deepEqual(inbox.notified.sort(), [id, hosted].sort())
  }
})

test('a hint of another process, or an end that frees a slot, looks for work at once, once for many hints', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 9, hosted: true })
  const worker = inbox.worker('hosted')
  await inbox.pass()
  for (let round = 0; round < 2; round++) {
    const taskId = await plantReady(inbox, id)
    const before = inbox.reads()
    for (let hints = 0; hints < 5; hints++) inbox.hint()
    assert.deepEqual(await tasksOf(worker), [taskId])
    assert.equal(inbox.reads() - before, 1)
  }
})

test('a sweep leases all ready conversations that the slots allow, also more than one transaction claims', async (t) => {
  const inbox = openInboxOnClock(t)
  const [id, other] = [await inbox.workspace({ slots: 70 }), await inbox.workspace({ slots: 1 })]
  await inbox.local.queues.pause(id, { now: false })
  const letters = Array.from({ length: 75 }, () => letterTo(id))
  await Promise.all(letters.map(inbox.local.reception.admit))
  await Promise.all([1, 2].map(() => inbox.local.reception.admit(letterTo(other))))
  await inbox.sql('update workspace_load set paused = 0')
  const worker = inbox.worker([id, other])
  assert.equal((await tasksOf(worker)).length, 71)
  assert.deepEqual(await inbox.load(id), { running: 70, waiting: 5, suspended: 0 })
  assert.deepEqual(await inbox.load(other), { running: 1, waiting: 1, suspended: 0 })
})

test('exactly as many ready conversations as one transaction claims are all leased, and then the next ones', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 70 })
  await inbox.local.queues.pause(id, { now: false })
  await Promise.all(Array.from({ length: 33 }, () => inbox.local.reception.admit(letterTo(id))))
  await inbox.sql('update workspace_load set paused = 0')
  assert.equal((await tasksOf(inbox.worker([id]))).length, 33)
})

test('a bridge with one place gets one lease of a workspace with many slots', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 9 })
  for (let count = 0; count < 3; count++) await inbox.local.reception.admit(letterTo(id))
  const call = { workspaceId: id, bridge: 'laptop', leasesMax: 1, holding: [], waitMs: 0 }
  const directives = inbox.local.bridges.lease(call, new AbortController().signal)
  await inbox.pass()
  assert.equal(leasesIn(await directives).length, 1)
  assert.deepEqual(await inbox.load(id), { running: 1, waiting: 2, suspended: 0 })
})

test('one look fills 50 hosted workspaces, and the next one the rest', async (t) => {
  const inbox = openInboxOnClock(t)
  const ids: string[] = []
  for (let count = 0; count < 51; count++) ids.push(await inbox.workspace({ hosted: true }))
  await Promise.all(ids.map((id) => inbox.local.reception.admit(letterTo(id))))
  const worker = inbox.worker('hosted')
  let leased = (await tasksOf(worker)).length
  for (let round = 0; round < 3; round++) leased += (await tasksOf(worker)).length
  assert.equal(leased, 50)
  await inbox.pass(SWEEP_MS)
  assert.equal((await tasksOf(worker)).length, 1)
})

test('IN-3 the lease of a silent worker of another process is taken over, not that of a worker of this one', async (t) => {
  const inbox = openInboxOnClock(t)
  const [id, hosted, strange] = [
    await inbox.workspace({ slots: 9 }),
    await inbox.workspace({ slots: 9, hosted: true }),
    await inbox.workspace({ slots: 9 }),
  ]
  const [named, worker, other] = [inbox.worker([id]), inbox.worker('hosted'), inbox.worker([strange])]
  const leases: Lease[] = []
  for (const each of [id, hosted, strange]) {
    await inbox.local.reception.admit(letterTo(each))
    await inbox.local.reception.admit(letterTo(each))
  }
  for (const each of [named, worker, other]) leases.push(...leasesIn(await each.take()))
  const [lost, kept, lostHosted, , lostStrange] = leases
  assert.ok(lost && kept && lostHosted && lostStrange)
  for (const { conversationId } of [lost, lostHosted, lostStrange]) {
    await inbox.sql(`update conversations set worker = 'gone.1' where id = $1`, conversationId)
  }
  await other.leave()
  inbox.notified.length = 0
  await inbox.pass(LEASE_MS)
  assert.deepEqual([await named.take(), await worker.take()], [[], []], 'a lease has 30 s')
  await inbox.pass(SWEEP_MS)
  const [taken, ...more] = leasesIn(await named.take())
  assert.deepEqual([taken?.messageId, taken?.epoch, more], [lost.messageId, lost.epoch + 1, []])
  const [takenHosted, ...moreHosted] = leasesIn(await worker.take())
  assert.deepEqual([takenHosted?.messageId, moreHosted], [lostHosted.messageId, []])
  assert.deepEqual(inbox.notified.sort(), [id, hosted].sort())
  assert.deepEqual(
    inbox.warnings.map(({ fields, message }) => [fields['worker'], fields['conversationId'], message]).sort(),
    [lost, lostHosted].map(({ conversationId }) => ['gone.1', conversationId, 'a silent worker lost its lease']).sort(),
  )
  assert.equal(await inbox.local.inbox.begin(kept), 'held')
})

test('IN-8 a cancelled turn of a silent worker is freed, and its conversation goes on', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace()
  const worker = inbox.worker([id])
  const first = await inbox.local.reception.admit(letterTo(id, { contextId: 'c' }))
  const lease = await worker.lease()
  const behind = await inbox.local.reception.admit(letterTo(id, { contextId: 'c' }))
  await inbox.local.reception.cancel(first.taskId)
  assert.deepEqual(await worker.take(), [{ type: 'stop', key: keyOf(lease) }])
  await inbox.sql(`update conversations set worker = 'gone.1' where id = $1`, lease.conversationId)
  await inbox.pass(LEASE_MS)
  await inbox.pass(SWEEP_MS)
  assert.deepEqual(await tasksOf(worker), [behind.taskId])
})

test('IN-3 after an outage of the store no lease is taken over for one lease time', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 2 })
  const worker = inbox.worker([id])
  await inbox.local.reception.admit(letterTo(id))
  const lease = await worker.lease()
  await inbox.sql(`update conversations set worker = 'gone.1'`)
  await plantReady(inbox, id)
  inbox.failWrites(() => new MoleculeError('store_unavailable', 'the disk is away'))
  await inbox.pass(SWEEP_MS)
  inbox.failWrites(() => undefined)
  assert.deepEqual(
    inbox.warnings.map(({ fields, message }) => [(fields['err'] as MoleculeError).code, message]),
    [['store_unavailable', 'a sweep of the inbox failed; it will be tried again']],
  )
  await inbox.pass(LEASE_MS - 1)
  assert.ok(!leasesIn(await worker.take()).some(({ messageId }) => messageId === lease.messageId))
  await inbox.pass(1)
  await inbox.pass(SWEEP_MS - 1)
  assert.ok(leasesIn(await worker.take()).some(({ messageId }) => messageId === lease.messageId))
})

test('IN-3 a takeover waits for exactly one lease time after the start', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace()
  const worker = inbox.worker([id])
  await inbox.local.reception.admit(letterTo(id))
  const lease = await worker.lease()
  await inbox.sql(`update conversations set worker = 'gone.1', lease_until = 1`)
  await inbox.pass(LEASE_MS - SWEEP_MS)
  assert.deepEqual(await worker.take(), [])
  await inbox.pass(SWEEP_MS)
  assert.deepEqual(await tasksOf(worker), [lease.taskId])
})

test('a lease of a worker of this process that it does not know of is released after two sweeps', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 2 })
  const worker = inbox.worker([id])
  await inbox.pass()
  const taskId = await plantReady(inbox, id)
  await inbox.sql(`update messages set state = 'leased' where id = $1`, taskId)
  await inbox.sql(
    `update conversations set worker = $1, ready_at = null, lease_epoch = 1, lease_until = now_ms() + 60000`,
    worker.id,
  )
  await inbox.sql('update workspace_load set running = 1, waiting = 0')
  await inbox.pass(SWEEP_MS)
  assert.deepEqual(await worker.take(), [])
  await inbox.pass(SWEEP_MS)
  const [lease] = leasesIn(await worker.take())
  assert.deepEqual([lease?.taskId, lease?.epoch, lease?.losses], [taskId, 2, 0])
})

test('a stop that another process stored reaches the worker of this one, and no other worker', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 2 })
  const worker = inbox.worker([id])
  const [first, second] = [
    await inbox.local.reception.admit(letterTo(id)),
    await inbox.local.reception.admit(letterTo(id)),
  ]
  const [mine, strange] = leasesIn(await worker.take())
  assert.ok(mine && strange)
  await inbox.sql(`update messages set state = 'stopping'`)
  await inbox.sql(`update conversations set worker = 'elsewhere.1' where id = $1`, strange.conversationId)
  await inbox.pass(SWEEP_MS)
  assert.deepEqual(await worker.take(), [{ type: 'stop', key: keyOf(mine) }])
  assert.deepEqual([mine.taskId, strange.taskId], [first.taskId, second.taskId])
})

test('IN-6 old rows are pruned 10 s after the start, and then every hour', async (t) => {
  const inbox = openInboxOnClock(t)
  const usage = async () => (await inbox.sql('select epoch from turn_usage')).length
  const plant = () => inbox.sql(`insert into turn_usage values ('u', 1, 'w', 'x', 'done', 1, null, null, null, null)`)
  await plant()
  await inbox.pass(9999)
  assert.equal(await usage(), 1)
  await inbox.pass(1)
  assert.equal(await usage(), 0)
  for (let round = 0; round < 2; round++) {
    await plant()
    await inbox.pass(HOUR_MS - (round === 0 ? 10_001 : 1))
    assert.equal(await usage(), 1)
    await inbox.pass(1)
    assert.equal(await usage(), 0)
  }
})

test('a closed inbox sweeps and prunes no more, and listens to no other process', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 9 })
  const worker = inbox.worker([id])
  await inbox.pass()
  assert.ok(inbox.isListening())
  await inbox.local.reception.admit(letterTo(id))
  const lease = await worker.lease()
  await inbox.pass(SWEEP_MS)
  const taskId = await plantReady(inbox, id)
  inbox.hint()
  inbox.local.close()
  assert.ok(!inbox.isListening())
  assert.equal(inbox.clock.timers(), 0, 'it keeps no timer')
  const before = inbox.reads()
  await inbox.pass(SWEEP_MS)
  await inbox.pass(HOUR_MS)
  assert.equal(inbox.reads(), before)
  assert.deepEqual(await worker.take(), [])
  await worker.leave()
  // Also a call that looks for work starts no timer any more, and timers that have run are forgotten.
  await inbox.local.reception.cancel(taskId)
  const failure = { code: 'exit', message: 'it broke' }
  await inbox.local.inbox.settle(lease, { type: 'retry', failure, afterMs: 1, reason: 'failure', interrupted: false })
  assert.deepEqual([inbox.clock.timers(), inbox.clock.lateCancels()], [0, 0])
})

test('a worker that has left gets nothing more, and its lease goes to the next worker', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 9 })
  const worker = inbox.worker([id])
  await inbox.pass()
  await worker.leave()
  const taskId = await plantReady(inbox, id)
  await inbox.pass(SWEEP_MS)
  assert.deepEqual(await worker.take(), [])
  const next = inbox.worker([id])
  const lease = await next.lease()
  assert.equal(lease.taskId, taskId)
  await inbox.local.inbox.settle(lease, done('ok'))
})
