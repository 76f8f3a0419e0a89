/** Upkeep: what happens without a caller. Time passes in the store, or on the clock of a second process. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readDeadLetters } from '../../../../src/views/needs/dead-letters.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, failure, type InboxHarness } from '../harness.ts'
import { sweepUntil, withNode } from '../nodes.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

export function upkeepTests(harness: InboxHarness): void {
  const [SUBMITTED, FAILED] = ['TASK_STATE_SUBMITTED', 'TASK_STATE_FAILED']
  /** Messages that became ready without a wake-up, as a process leaves them that dies after its commit. */
  const readyUnseen = async (id: string, count: number) => {
    await harness.local.queues.pause(id, { now: false })
    for (let sent = 0; sent < count; sent++) await harness.local.reception.admit(letterTo(id))
    await harness.sql('update workspace_load set paused = 0 where workspace_id = $1', id)
  }

  test('a missed wake-up delays work until the next sweep, which leases all that the slots allow; a closed inbox leases nothing', async () => {
    const id = await harness.workspace(40)
    await withNode(harness, async (node, clock) => {
      const worker = harness.worker(id, node)
      await readyUnseen(id, 45)
      assert.ok(await worker.idle())
      clock.advance(5000)
      for (let count = 0; count < 40; count++) await worker.lease()
      assert.ok(await worker.idle())
      assert.deepEqual(await harness.load(id), { running: 40, waiting: 5 })
      await worker.leave()
    })
    const other = await harness.workspace()
    await withNode(harness, async (node, clock) => {
      const worker = harness.worker(other, node)
      await readyUnseen(other, 1)
      node.close()
      clock.advance(HOUR_MS)
      assert.ok(await worker.idle())
      await worker.leave()
    })
  })

  test('IN-3 a worker of the same process keeps its lease, however late its renewal is', async () => {
    const id = await harness.workspace()
    await harness.local.reception.admit(letterTo(id))
    await withNode(harness, async (node, clock) => {
      const worker = harness.worker(id, node)
      const lease = await worker.lease()
      await harness.sql('update conversations set lease_until = now_ms() - 1 where workspace_id = $1', id)
      for (let passedMs = 0; passedMs < 45_000; passedMs += 5000) {
        clock.advance(5000)
        assert.ok(await worker.idle())
      }
      assert.equal(await node.inbox.settle(lease, done('slow')), 'settled')
      await worker.leave()
    })
  })

  test('IN-7 a message that expires leaves its conversation to the next one; while its task runs a message does not expire', async () => {
    const [id, busy] = [await harness.workspace(), await harness.workspace()]
    const { reception, inbox } = harness.local
    await harness.withWorker(busy, async (worker) => {
      const running = await reception.admit(letterTo(busy))
      const lease = await worker.lease()
      await reception.admit({ ...letterTo(busy, { taskId: running.taskId }), expiresInMs: 1 })
      const first = await reception.admit({ ...letterTo(id, { contextId: 'c' }), expiresInMs: 2 })
      const behind = await reception.admit(letterTo(id, { contextId: 'c' }))
      await withNode(harness, async (_node, clock) => {
        await sweepUntil(clock, async () => (await harness.state(first.taskId)) === FAILED, 'it expires')
      })
      const { status } = (await reception.task(first.taskId)) ?? {}
      assert.deepEqual(status?.message?.parts, [{ text: 'the message was not started in time' }])
      assert.deepEqual(
        (await readDeadLetters(harness.local.store, { workspaceId: id, detail: true })).dead_letters.map(
          ({ code }) => code,
        ),
        ['expired'],
      )
      assert.equal(await harness.state(running.taskId), 'TASK_STATE_WORKING')
      await inbox.settle(lease, done('ok'))
      await harness.withWorker(id, async (other) => assert.equal((await other.lease()).taskId, behind.taskId))
    })
  })

  test('IN-7 time without a platform does not count as waiting time, and a restart of some minutes does', async () => {
    const id = await harness.workspace()
    const admit = async (expiresInMs: number) =>
      (await harness.local.reception.admit({ ...letterTo(id), expiresInMs })).taskId
    const [long, short] = [await admit(30 * MINUTE_MS), await admit(2 * MINUTE_MS)]
    /** No process runs: the last mark of a sweep and the messages are older then. One statement, as a sweep may come. */
    const away = (ms: number) =>
      harness.store.write(function* () {
        yield [
          { text: `update upkeep_clock set at_ms = now_ms() - $1 where name = 'waiting'`, values: [ms] },
          {
            text: 'update messages set admitted_at = admitted_at - $2, expires_at = expires_at - $2 where workspace_id = $1',
            values: [id, ms],
          },
        ]
      })
    await withNode(harness, async (_node, clock) => {
      const isMarked = async () =>
        (await harness.sql(`select 1 as one from upkeep_clock where name = 'waiting'`)).length > 0
      await sweepUntil(clock, isMarked, 'a sweep has seen them')
      await away(HOUR_MS)
      const isSeen = `select 1 as one from upkeep_clock where name = 'waiting' and at_ms > now_ms() - 60000`
      await sweepUntil(clock, async () => (await harness.sql(isSeen)).length > 0, 'a sweep after the gap')
      assert.deepEqual([await harness.state(long), await harness.state(short)], [SUBMITTED, SUBMITTED])
      await away(4 * MINUTE_MS)
      await sweepUntil(clock, async () => (await harness.state(short)) === FAILED, 'it expires')
      assert.equal(await harness.state(long), SUBMITTED)
    })
  })

  test('a start after the clock was set back moves what waits back with it, where the store has the clock of its process', async () => {
    const id = await harness.workspace()
    const door = `clock-${id}`
    const { reception, inbox, deliveries, queues } = harness.local
    const isOurClock = harness.store.engine === 'sqlite'
    await harness.withWorker(id, async (worker) => {
      await reception.admit({ ...letterTo(id), replyTo: { door, channel: 'c' } })
      await inbox.settle(await worker.lease(), done('ok'))
      const { taskId } = await reception.admit(letterTo(id))
      const retry = { type: 'retry', failure, afterMs: HOUR_MS, reason: 'failure', interrupted: false } as const
      await inbox.settle(await worker.lease(), retry)
      for (const [table, columns] of [
        ['messages', ['admitted_at', 'ready_at', 'expires_at']],
        ['conversations', ['ready_at']],
        ['deliveries', ['next_at']],
      ] as const) {
        const set = columns.map((column) => `${column} = ${column} + ${2 * HOUR_MS}`).join(', ')
        await harness.sql(`update ${table} set ${set} where workspace_id = $1`, id)
      }
      await withNode(harness, async (node) => void (await node.recover()))
      assert.equal((await deliveries.take(door)) !== undefined, isOurClock)
      for (const table of ['messages', 'conversations'])
        await harness.sql(`update ${table} set ready_at = ready_at - $2 where workspace_id = $1`, id, HOUR_MS)
      await queues.limitsChanged(id)
      if (isOurClock) assert.equal((await worker.lease()).taskId, taskId)
      else assert.ok(await worker.idle())
      await reception.cancel(taskId)
    })
  })
}
