/** Cancel of a waiting and of a running message. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findDirectives } from '../../../../src/inbox/commands/stored-directives.ts'
import { readChatPage } from '../../../../src/views/chat-page.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

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

  const text = (delta: string) => ({ type: 'text', delta }) as const
  const chatOf = async (id: string) => {
    const query = { workspaceId: id, conversation: 'c', limit: 10, detail: true }
    return (await readChatPage(harness.local.store, query)).messages
  }
  const activityOf = async (id: string) => {
    const entries = await harness.activity(id)
    return entries.filter(({ type }) => type === 'partial' || type === 'reply')
  }

  test('CV-8 IN-8 what a cancelled turn has written stays, marked as partial, when its pieces are pruned', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id, { contextId: 'c' }))
      const first = await worker.lease()
      const retry = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false } as const
      await harness.local.inbox.append(first, { from: 1, events: [text('of an attempt that failed')] })
      await harness.local.inbox.settle(first, retry)
      const lease = await worker.lease()
      const parts = [{ raw: 'AQI=', mediaType: 'image/png' }]
      const file = {
        type: 'artifact',
        artifact: { artifactId: 'plot', parts },
        append: false,
        lastChunk: true,
      } as const
      await harness.local.inbox.append(lease, { from: 1, events: [text('The cause '), file] })
      await harness.local.inbox.append(lease, { from: 3, events: [text('is')] })
      const canceled = await harness.local.reception.cancel(taskId)
      assert.equal(canceled.status.state, 'TASK_STATE_CANCELED')
      await harness.local.inbox.append(lease, { from: 4, events: [text(' unseen')] })
      await harness.local.inbox.settle(lease, { type: 'stopped' })
      await harness.sql('delete from events where task_id = $1 and delta = 1', taskId)
      const [plot, reply, ...more] = (await harness.local.reception.task(taskId))?.artifacts ?? []
      assert.deepEqual(
        [plot?.artifactId, reply?.parts, reply?.metadata],
        ['plot', [{ text: 'The cause is' }], { partial: true }],
      )
      assert.deepEqual([more, canceled.artifacts], [[], [plot, reply]])
      const [message] = await chatOf(id)
      assert.deepEqual([message?.state, message?.reply?.text], ['stopped', 'The cause is'])
      assert.equal(message?.reply?.partial, true)
      assert.deepEqual(
        (await activityOf(id)).map((entry) => [entry.type, entry.text]),
        [['partial', 'The cause is']],
      )
    })
  })

  test('CV-8 IN-8 a follower of a cancelled task gets its partial reply closed before the end, and no text after it', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id, { contextId: 'c' }))
      const lease = await worker.lease()
      await harness.local.inbox.append(lease, { from: 1, events: [text('half ')] })
      await harness.local.reception.cancel(taskId)
      await harness.local.inbox.settle(lease, { type: 'stopped' })
      const seen: unknown[] = []
      for await (const { wire } of harness.local.reception.follow(
        taskId,
        { afterSeq: 0 },
        AbortSignal.timeout(20_000),
      )) {
        for (const { artifactUpdate, statusUpdate } of wire) {
          if (artifactUpdate) seen.push([artifactUpdate.artifact.parts[0]?.text, artifactUpdate.lastChunk])
          else seen.push(statusUpdate?.status.state)
        }
      }
      assert.deepEqual(seen.slice(-3), [['half ', false], ['', true], 'TASK_STATE_CANCELED'])
    })
  })

  test('CV-8 a message that was cancelled in the queue has neither begun nor an answer', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id, { contextId: 'c' }))
    await harness.local.reception.cancel(taskId)
    const [message] = await chatOf(id)
    assert.deepEqual([message?.state, message?.started_at, message?.reply], ['stopped', undefined, undefined])
  })

  test('CV-8 the wait for the next attempt is no time of a turn when the message is cancelled in it', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id, { contextId: 'c' }))
      const retry = { type: 'retry', failure, afterMs: 60_000, reason: 'failure', interrupted: false } as const
      await harness.local.inbox.settle(await worker.lease(), retry)
      await harness.local.reception.cancel(taskId)
      const [message] = await chatOf(id)
      assert.deepEqual([message?.state, message?.started_at], ['stopped', undefined])
    })
  })
}
