/** Cancel of a waiting and of a running message. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findDirectives } from '../../../src/inbox/lease/directives.ts'
import { letterTo } from '../../fakes/letters.ts'
import { done, hasCode, type InboxHarness } from './harness.ts'

export function cancelTests(harness: InboxHarness): void {
  test('IN-8 a waiting message that is cancelled never runs, and those behind it move up', async () => {
    const id = await harness.workspace()
    const first = await harness.local.reception.admit(letterTo(id, { contextId: 'c' }))
    const second = await harness.local.reception.admit(letterTo(id, { contextId: 'c', text: 'behind' }))
    assert.equal((await harness.local.reception.cancel(first.taskId)).status.state, 'TASK_STATE_CANCELED')
    assert.equal((await harness.local.reception.cancel(first.taskId)).status.state, 'TASK_STATE_CANCELED')
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      assert.equal(lease.taskId, second.taskId)
      await harness.local.inbox.settle(lease, done('ok'))
    })
    await assert.rejects(harness.local.reception.cancel(second.taskId), hasCode('not_cancelable'))
    await assert.rejects(harness.local.reception.cancel('nothing'), hasCode('not_found'))
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('IN-8 a cancelled turn gets a stop, and its conversation stays leased until it has stopped', async () => {
    const id = await harness.workspace(2)
    await harness.withWorker(id, async (worker) => {
      const first = await harness.local.reception.admit(letterTo(id, { contextId: 'c' }))
      const second = await harness.local.reception.admit(letterTo(id, { contextId: 'c' }))
      const lease = await worker.lease()
      await harness.local.reception.cancel(first.taskId)
      const stop = await worker.next()
      assert.equal(stop.type, 'stop')
      assert.deepEqual(await harness.local.inbox.extend([lease]), ['stop'])
      assert.ok(await worker.idle())
      assert.equal(await harness.local.inbox.settle(lease, done('too late')), 'settled')
      assert.equal(await harness.state(first.taskId), 'TASK_STATE_CANCELED')
      assert.equal((await harness.local.reception.task(first.taskId))?.artifacts, undefined)
      const next = await worker.lease()
      assert.equal(next.taskId, second.taskId)
      await harness.local.inbox.settle(next, done('ok'))
    })
  })

  test('IN-8 another node that looks for directives finds the answer of a running turn, and only the stop of a cancelled one', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      const found = async () => {
        const all = await harness.store.read(findDirectives)
        const own = all.flatMap(({ directive }) => (directive.type === 'lease' ? [] : [directive]))
        return own.filter(({ key }) => key.messageId === lease.messageId).map(({ type }) => type)
      }
      assert.deepEqual(await found(), [])
      await harness.local.inbox.ask(lease, { kind: 'question', id: 'q', parts: [{ text: 'may I?' }] })
      assert.deepEqual(await found(), [])
      await harness.local.reception.admit(letterTo(id, { taskId, text: 'yes' }))
      assert.deepEqual(await found(), ['answer'])
      await harness.local.reception.cancel(taskId)
      assert.deepEqual(await found(), ['stop'])
      await harness.local.inbox.settle(lease, { type: 'stopped' })
      assert.deepEqual(await found(), [])
    })
  })
}
