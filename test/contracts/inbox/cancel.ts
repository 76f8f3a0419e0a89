/** Cancel against waiting and against running. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../fakes/letters.ts'
import { code, done, type InboxBench } from './harness.ts'

export function cancelling(bench: InboxBench): void {
  test('IN-8 a cancelled message that waits never runs, and those behind it move up', async () => {
    const id = await bench.workspace()
    const first = await bench.local.reception.admit(letterTo(id, { contextId: 'c' }))
    const second = await bench.local.reception.admit(letterTo(id, { contextId: 'c', text: 'behind' }))
    assert.equal((await bench.local.reception.cancel(first.taskId)).status.state, 'TASK_STATE_CANCELED')
    assert.equal((await bench.local.reception.cancel(first.taskId)).status.state, 'TASK_STATE_CANCELED')
    await bench.withHand(id, async (hand) => {
      const lease = await hand.lease()
      assert.equal(lease.taskId, second.taskId)
      await bench.local.inbox.settle(lease, done('ok'))
    })
    await assert.rejects(bench.local.reception.cancel(second.taskId), code('not_cancelable'))
    await assert.rejects(bench.local.reception.cancel('nothing'), code('not_found'))
    assert.deepEqual(await bench.load(id), { running: 0, waiting: 0 })
  })

  test('IN-8 a cancelled turn is told to stop and its conversation stays closed until it has', async () => {
    const id = await bench.workspace(2)
    await bench.withHand(id, async (hand) => {
      const first = await bench.local.reception.admit(letterTo(id, { contextId: 'c' }))
      const second = await bench.local.reception.admit(letterTo(id, { contextId: 'c' }))
      const lease = await hand.lease()
      await bench.local.reception.cancel(first.taskId)
      const stop = await hand.next()
      assert.equal(stop.type, 'stop')
      assert.deepEqual(await bench.local.inbox.extend([lease]), ['stop'])
      assert.ok(await hand.idle())
      assert.equal(await bench.local.inbox.settle(lease, done('too late')), 'settled')
      assert.equal(await bench.state(first.taskId), 'TASK_STATE_CANCELED')
      assert.equal((await bench.local.reception.task(first.taskId))?.artifacts, undefined)
      const next = await hand.lease()
      assert.equal(next.taskId, second.taskId)
      await bench.local.inbox.settle(next, done('ok'))
    })
  })
}
