/** Dead letters: listed, inspected, replayed once, discarded. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../fakes/letters.ts'
import { code, done, failure, type InboxBench } from './harness.ts'

export function deadLetters(bench: InboxBench): void {
  const die = async (id: string, contextId: string) => {
    const letter = letterTo(id, { contextId, text: 'poison' })
    const { taskId } = await bench.local.reception.admit(letter)
    await bench.withHand(id, async (hand) => {
      await bench.local.inbox.settle(await hand.lease(), { type: 'dead', failure })
    })
    return { letter, taskId }
  }

  test('IN-4 a dead letter is listed with its reason, its sender and its message', async () => {
    const id = await bench.workspace()
    const { taskId } = await die(id, 'a')
    const [dead, ...others] = await bench.local.deadLetters.list(id)
    assert.deepEqual(others, [])
    assert.deepEqual([dead?.taskId, dead?.code, dead?.reason], [taskId, 'exit', 'it broke'])
    assert.deepEqual(dead?.message.parts, [{ text: 'poison' }])
    assert.equal(dead?.sender.name, 'admin')
  })

  test('IN-4 replay is a new task in the same conversation, once, and the sender finds it by its old key', async () => {
    const id = await bench.workspace()
    const { letter, taskId } = await die(id, 'a')
    const [dead] = await bench.local.deadLetters.list(id)
    const again = await bench.local.deadLetters.replay(id, dead?.id ?? '')
    assert.notEqual(again, taskId)
    assert.equal(await bench.local.deadLetters.replay(id, dead?.id ?? ''), again)
    assert.deepEqual(await bench.local.deadLetters.list(id), [])
    assert.equal((await bench.local.reception.admit(letter)).taskId, again)
    await bench.withHand(id, async (hand) => {
      const lease = await hand.lease()
      assert.deepEqual([lease.taskId, lease.contextId, lease.failures, lease.interrupted], [again, 'a', 0, false])
      await bench.local.inbox.settle(lease, done('mended'))
      assert.ok(await hand.idle())
    })
    assert.equal(await bench.state(again), 'TASK_STATE_COMPLETED')
    assert.equal(await bench.state(taskId), 'TASK_STATE_FAILED')
    assert.deepEqual(await bench.load(id), { running: 0, waiting: 0 })
  })

  test('IN-4 a discarded dead letter is off the list; what is no dead letter is neither replayed nor discarded', async () => {
    const id = await bench.workspace()
    await die(id, 'a')
    const [dead] = await bench.local.deadLetters.list(id)
    await bench.local.deadLetters.discard(id, dead?.id ?? '')
    assert.deepEqual(await bench.local.deadLetters.list(id), [])
    await assert.rejects(bench.local.deadLetters.replay(id, 'nothing'), code('not_found'))
    await assert.rejects(bench.local.deadLetters.discard(id, 'nothing'), code('not_found'))
    const other = await bench.workspace()
    await assert.rejects(bench.local.deadLetters.replay(other, dead?.id ?? ''), code('not_found'))
  })

  test('IN-4 one poison message never blocks another conversation', async () => {
    const id = await bench.workspace()
    await die(id, 'poisoned')
    const { taskId } = await bench.local.reception.admit(letterTo(id, { contextId: 'healthy' }))
    await bench.withHand(id, async (hand) => {
      await bench.local.inbox.settle(await hand.lease(), done('fine'))
    })
    assert.equal(await bench.state(taskId), 'TASK_STATE_COMPLETED')
  })
}
