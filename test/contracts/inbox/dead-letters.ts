/** Dead letters: listed, inspected, replayed once, discarded. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../fakes/letters.ts'
import { done, failure, hasCode, type InboxHarness } from './harness.ts'

export function deadLetterTests(harness: InboxHarness): void {
  const die = async (id: string, contextId: string) => {
    const letter = letterTo(id, { contextId, text: 'poison' })
    const { taskId } = await harness.local.reception.admit(letter)
    await harness.withWorker(id, async (worker) => {
      await harness.local.inbox.settle(await worker.lease(), { type: 'dead', failure })
    })
    return { letter, taskId }
  }

  test('IN-4 a dead letter is listed with its reason, its sender and its message', async () => {
    const id = await harness.workspace()
    const { taskId } = await die(id, 'a')
    const [dead, ...others] = (await harness.local.deadLetters.list(id)).rows
    assert.deepEqual(others, [])
    assert.deepEqual([dead?.taskId, dead?.code, dead?.reason], [taskId, 'exit', 'it broke'])
    assert.deepEqual(dead?.message.parts, [{ text: 'poison' }])
    assert.equal(dead?.sender.name, 'admin')
  })

  test('IN-4 a replay is a new task in the same conversation, once, and the sender finds it by its old key', async () => {
    const id = await harness.workspace()
    const { letter, taskId } = await die(id, 'a')
    const [dead] = (await harness.local.deadLetters.list(id)).rows
    const again = await harness.local.deadLetters.replay(id, dead?.id ?? '')
    assert.notEqual(again, taskId)
    assert.equal(await harness.local.deadLetters.replay(id, dead?.id ?? ''), again)
    assert.deepEqual((await harness.local.deadLetters.list(id)).rows, [])
    assert.equal((await harness.local.reception.admit(letter)).taskId, again)
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      assert.deepEqual([lease.taskId, lease.contextId, lease.failures, lease.interrupted], [again, 'a', 0, false])
      await harness.local.inbox.settle(lease, done('mended'))
      assert.ok(await worker.idle())
    })
    assert.equal(await harness.state(again), 'TASK_STATE_COMPLETED')
    assert.equal(await harness.state(taskId), 'TASK_STATE_FAILED')
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('IN-4 a discarded dead letter leaves the list; a message that is no dead letter can be neither replayed nor discarded', async () => {
    const id = await harness.workspace()
    await die(id, 'a')
    const [dead] = (await harness.local.deadLetters.list(id)).rows
    const lastStep = async () => {
      const story = await harness.local.stories.find({ id: dead?.id ?? '', scopeOf: () => ({}) })
      return story?.steps.at(-1)?.text
    }
    assert.equal(await lastStep(), 'it is a dead letter: a person may replay or discard it')
    await harness.local.deadLetters.discard(id, dead?.id ?? '')
    assert.equal(await lastStep(), 'the dead letter was discarded')
    assert.deepEqual((await harness.local.deadLetters.list(id)).rows, [])
    await assert.rejects(harness.local.deadLetters.replay(id, 'nothing'), hasCode('not_found'))
    await assert.rejects(harness.local.deadLetters.discard(id, 'nothing'), hasCode('not_found'))
    const other = await harness.workspace()
    await assert.rejects(harness.local.deadLetters.replay(other, dead?.id ?? ''), hasCode('not_found'))
  })

  test('IN-4 one poison message never blocks another conversation', async () => {
    const id = await harness.workspace()
    await die(id, 'poisoned')
    const { taskId } = await harness.local.reception.admit(letterTo(id, { contextId: 'healthy' }))
    await harness.withWorker(id, async (worker) => {
      await harness.local.inbox.settle(await worker.lease(), done('fine'))
    })
    assert.equal(await harness.state(taskId), 'TASK_STATE_COMPLETED')
  })
}
