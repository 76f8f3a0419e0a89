/** Dead letters: listed, inspected, replayed once, discarded. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Failure } from '../../../../src/inbox/worker.ts'
import { readDeadLetters } from '../../../../src/views/needs/dead-letters.ts'
import { readStory } from '../../../../src/views/story/story.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { manualClock } from '../../../fakes/manual-clock.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

export function deadLetterTests(harness: InboxHarness): void {
  const die = async (id: string, contextId: string, why: Failure = failure) => {
    const letter = letterTo(id, { contextId, text: 'poison' })
    const { taskId } = await harness.local.reception.admit(letter)
    await harness.withWorker(id, async (worker) => {
      await harness.local.inbox.settle(await worker.lease(), { type: 'dead', failure: why })
    })
    return { letter, taskId }
  }

  test('IN-4 a dead letter is listed with its reason, its sender and its message', async () => {
    const id = await harness.workspace()
    const { taskId } = await die(id, 'a')
    const [dead, ...others] = (await readDeadLetters(harness.local.store, { workspaceId: id, detail: true }))
      .dead_letters
    assert.deepEqual(others, [])
    assert.deepEqual([dead?.task_id, dead?.code, dead?.reason], [taskId, 'exit', 'it broke'])
    assert.deepEqual(dead?.message.parts, [{ text: 'poison' }])
    assert.deepEqual([dead?.sender.name, dead?.context_id], ['admin', 'a'])
    assert.deepEqual([dead?.failures, dead?.losses, dead?.detail], [1, 0, undefined])
  })

  test('IN-4 dead letters are listed with the newest first; the owner sees the text of the program, and how often it failed', async () => {
    const id = await harness.workspace()
    const first = await die(id, 'a')
    await harness.sql('update messages set settled_at = settled_at - 1000, losses = 2 where workspace_id = $1', id)
    const second = await die(id, 'b', { ...failure, sentence: 'The agent stopped.' })
    const { dead_letters: rows, next } = await readDeadLetters(harness.local.store, { workspaceId: id, detail: true })
    assert.deepEqual(
      rows.map(({ task_id, reason, detail, losses }) => [task_id, reason, detail, losses]),
      [
        [second.taskId, 'The agent stopped.', 'it broke', 0],
        [first.taskId, 'it broke', undefined, 2],
      ],
    )
    assert.equal(next, undefined)
    const quiet = { workspaceId: await harness.workspace(), detail: true }
    assert.deepEqual(await readDeadLetters(harness.local.store, quiet), { dead_letters: [] })
  })

  test('IN-2 IN-4 a replay waits behind the messages of its conversation', async () => {
    const id = await harness.workspace(2)
    const { deadLetters, inbox, reception } = harness.local
    const one = await die(id, 'a')
    await harness.withWorker(id, async (worker) => {
      const running = await reception.admit(letterTo(id, { contextId: 'a' }))
      const lease = await worker.lease()
      const waiting = await reception.admit(letterTo(id, { contextId: 'a' }))
      const replayed = await deadLetters.replay(id, one.taskId)
      assert.equal(lease.taskId, running.taskId)
      assert.ok(await worker.idle())
      await inbox.settle(lease, done('ok'))
      for (const taskId of [waiting.taskId, replayed]) {
        const next = await worker.lease()
        assert.equal(next.taskId, taskId)
        await inbox.settle(next, done('ok'))
      }
    })
  })

  test('IN-4 a worker that waits gets a replayed message at once', async () => {
    const id = await harness.workspace()
    const { taskId } = await die(id, 'a')
    // Its clock stands still, so no sweep finds the message.
    const clock = manualClock()
    const node = harness.newInbox(clock)
    const worker = harness.worker(id, node)
    assert.ok(await worker.idle())
    const replayed = await node.deadLetters.replay(id, taskId)
    clock.advance(0)
    const lease = await worker.lease()
    assert.equal(lease.taskId, replayed)
    await node.inbox.settle(lease, done('ok'))
    await worker.leave()
    node.close()
  })

  test('IN-4 a replay is a new task in the same conversation, once, and the sender finds it by its old key', async () => {
    const id = await harness.workspace()
    const { letter, taskId } = await die(id, 'a')
    const [dead] = (await readDeadLetters(harness.local.store, { workspaceId: id, detail: true })).dead_letters
    const again = await harness.local.deadLetters.replay(id, dead?.id ?? '')
    assert.notEqual(again, taskId)
    assert.equal(await harness.local.deadLetters.replay(id, dead?.id ?? ''), again)
    assert.deepEqual((await readDeadLetters(harness.local.store, { workspaceId: id, detail: true })).dead_letters, [])
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
    const [dead] = (await readDeadLetters(harness.local.store, { workspaceId: id, detail: true })).dead_letters
    const lastStep = async () => {
      const story = await readStory(harness.local.store, { id: dead?.id ?? '', scopeOf: () => ({}) })
      return story.steps.at(-1)?.text
    }
    assert.equal(await lastStep(), 'a person may run it again or discard it')
    await harness.local.deadLetters.discard(id, dead?.id ?? '')
    assert.equal(await lastStep(), 'it was discarded')
    await harness.local.deadLetters.discard(id, dead?.id ?? '')
    const entries = await harness.activity(id, 'discarded')
    const text = `the dead letter ${dead?.id} was discarded`
    assert.deepEqual(
      entries.map((entry) => [entry.text, entry.by]),
      [[text, 'owner']],
    )
    assert.deepEqual((await readDeadLetters(harness.local.store, { workspaceId: id, detail: true })).dead_letters, [])
    await assert.rejects(harness.local.deadLetters.replay(id, 'nothing'), hasCode('not_found'))
    await assert.rejects(harness.local.deadLetters.discard(id, 'nothing'), hasCode('not_found'))
    const waiting = await harness.local.reception.admit(letterTo(id))
    await assert.rejects(harness.local.deadLetters.replay(id, waiting.taskId), hasCode('not_found'))
    await assert.rejects(harness.local.deadLetters.discard(id, waiting.taskId), hasCode('not_found'))
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
