/** Turns: order, slots, outcomes, retries, and what readers see of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LogEntry } from '../../../../src/inbox/reception.ts'
import type { Lease, Outcome } from '../../../../src/inbox/worker.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { manualClock } from '../../../fakes/manual-clock.ts'
import { within } from '../../../harness/wait.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

const never = new AbortController().signal

export function settleTests(harness: InboxHarness): void {
  test('a message is admitted, leased, settled, and its task holds the reply', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId, contextId, duplicate } = await harness.local.reception.admit(letterTo(id, { text: 'hi' }))
      assert.equal(duplicate, false)
      const lease = await worker.lease()
      assert.equal(lease.taskId, taskId)
      assert.deepEqual(lease.envelope.message.parts, [{ text: 'hi' }])
      assert.equal(await harness.state(taskId), 'TASK_STATE_WORKING')
      assert.equal(await harness.local.inbox.settle(lease, done('hello back')), 'settled')
      const task = await harness.local.reception.task(taskId)
      assert.equal(task?.status.state, 'TASK_STATE_COMPLETED')
      assert.equal(task?.contextId, contextId)
      assert.deepEqual(task?.artifacts?.[0]?.parts, [{ text: 'hello back' }])
      assert.deepEqual(task?.history?.[0]?.parts, [{ text: 'hi' }])
      assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
    })
  })

  test('IN-2 a conversation runs one turn at a time, in order, and other conversations in parallel up to the slots', async () => {
    const id = await harness.workspace(2)
    await harness.withWorker(id, async (worker) => {
      const admit = (contextId: string, text: string) =>
        harness.local.reception.admit(letterTo(id, { contextId, text }))
      await admit('a', 'a1')
      await admit('a', 'a2')
      await admit('b', 'b1')
      await admit('c', 'c1')
      const textOf = (lease: Lease) => lease.envelope.message.parts[0]?.text
      const [first, second] = [await worker.lease(), await worker.lease()]
      assert.deepEqual([textOf(first), textOf(second)], ['a1', 'b1'])
      assert.ok(await worker.idle())
      await harness.local.inbox.settle(first, done('1'))
      const third = await worker.lease()
      assert.equal(textOf(third), 'a2', 'the oldest ready message takes the freed slot')
      await harness.local.inbox.settle(third, done('2'))
      await harness.local.inbox.settle(second, done('3'))
      const last = await worker.lease()
      assert.equal(textOf(last), 'c1')
      await harness.local.inbox.settle(last, done('4'))
      assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
    })
  })

  test('RT-6 IN-4 a retry waits for its time, blocks its own conversation only, and keeps its failures', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id, { contextId: 'x', text: 'x1' }))
      await harness.local.reception.admit(letterTo(id, { contextId: 'x', text: 'x2' }))
      const first = await worker.lease()
      const retry = { type: 'retry', failure, afterMs: 300, reason: 'failure', interrupted: true } as const
      assert.equal(await harness.local.inbox.settle(first, retry), 'settled')
      const task = await harness.local.reception.task(taskId)
      assert.equal(task?.status.state, 'TASK_STATE_WORKING')
      assert.deepEqual(task?.status.message?.parts, [{ text: 'it broke' }])
      await harness.local.reception.admit(letterTo(id, { contextId: 'y', text: 'y1' }))
      const other = await worker.lease()
      assert.equal(other.envelope.message.parts[0]?.text, 'y1')
      await harness.local.inbox.settle(other, done('y'))
      const again = await worker.lease()
      assert.equal(again.messageId, first.messageId)
      assert.deepEqual([again.failures, again.interrupted, again.epoch], [1, true, first.epoch + 1])
      await harness.local.inbox.settle(again, done('x'))
      await harness.local.inbox.settle(await worker.lease(), done('x2'))
    })
  })

  test('IN-4 a dead letter fails its task with the reason and settles the other messages of that task', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId, contextId } = await harness.local.reception.admit(letterTo(id))
      const follow = await harness.local.reception.admit(letterTo(id, { taskId }))
      assert.equal(follow.contextId, contextId)
      await harness.local.inbox.settle(await worker.lease(), { type: 'dead', failure })
      const task = await harness.local.reception.task(taskId)
      assert.equal(task?.status.state, 'TASK_STATE_FAILED')
      assert.deepEqual(task?.status.message?.metadata, { code: 'exit' })
      assert.ok(await worker.idle())
      assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
      await assert.rejects(harness.local.reception.admit(letterTo(id, { taskId })), hasCode('unsupported_operation'))
    })
  })

  test('a task is final only when none of its messages is unsettled', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      await harness.local.reception.admit(letterTo(id, { taskId }))
      await harness.local.inbox.settle(await worker.lease(), done('one'))
      assert.equal(await harness.state(taskId), 'TASK_STATE_WORKING')
      await harness.local.inbox.settle(await worker.lease(), done('two'))
      const task = await harness.local.reception.task(taskId)
      assert.equal(task?.status.state, 'TASK_STATE_COMPLETED')
      assert.equal(task?.artifacts?.length, 2)
    })
  })

  test('a task that is input-required continues with the next message to it', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      const ask: Outcome = { type: 'done', finality: 'input_required', parts: [{ text: 'which?' }], artifacts: [] }
      await harness.local.inbox.settle(await worker.lease(), ask)
      const asked = await harness.local.reception.task(taskId)
      assert.equal(asked?.status.state, 'TASK_STATE_INPUT_REQUIRED')
      assert.deepEqual(asked?.status.message?.parts, [{ text: 'which?' }])
      await harness.local.reception.admit(letterTo(id, { taskId, text: 'that' }))
      const answered = (await harness.local.reception.task(taskId))?.status
      assert.deepEqual([answered?.state, answered?.message], ['TASK_STATE_WORKING', undefined])
      await harness.local.inbox.settle(await worker.lease(), done('thanks'))
      assert.equal(await harness.state(taskId), 'TASK_STATE_COMPLETED')
    })
  })

  test('PL-5 a reader that follows until the end waits while the task is input-required; other readers stop there', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      const lastState = async (untilFinal: boolean, signal = AbortSignal.timeout(60_000)) => {
        let last = ''
        for await (const { wire } of harness.local.reception.follow(taskId, { afterSeq: 0, untilFinal }, signal))
          last = wire.at(-1)?.statusUpdate?.status.state ?? last
        return last
      }
      const ask: Outcome = { type: 'done', finality: 'input_required', parts: [{ text: 'which?' }], artifacts: [] }
      await harness.local.inbox.settle(await worker.lease(), ask)
      const wholeTask = lastState(true)
      assert.equal(await lastState(false), 'TASK_STATE_INPUT_REQUIRED')
      assert.equal(await lastState(true, AbortSignal.timeout(50)), 'TASK_STATE_INPUT_REQUIRED')
      await harness.local.reception.admit(letterTo(id, { taskId, text: 'that' }))
      await harness.local.inbox.settle(await worker.lease(), done('thanks'))
      assert.equal(await wholeTask, 'TASK_STATE_COMPLETED')
    })
  })

  test('IN-3 a repeated settle with the same outcome is settled, with another outcome stale', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      assert.equal(await harness.local.inbox.settle(lease, done('first')), 'settled')
      assert.equal(await harness.local.inbox.settle(lease, done('first')), 'settled')
      assert.equal(await harness.local.inbox.settle(lease, { type: 'dead', failure }), 'stale')
      const task = await harness.local.reception.task(taskId)
      assert.deepEqual(
        task?.artifacts?.map(({ parts }) => parts),
        [[{ text: 'first' }]],
      )
    })
  })

  test('IN-5 IN-10 events appended twice are stored once, a retry resets them, and a follower sees all in order', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      const hello = { from: 1, events: [{ type: 'text', delta: 'hel' } as const] }
      assert.equal(await harness.local.inbox.append(lease, hello), 'held')
      assert.equal(await harness.local.inbox.append(lease, hello), 'held')
      await harness.local.inbox.append(lease, { from: 1, events: [...hello.events, { type: 'text', delta: 'lo' }] })
      await harness.local.inbox.settle(lease, {
        type: 'retry',
        failure,
        afterMs: 0,
        reason: 'failure',
        interrupted: false,
      })
      const again = await worker.lease()
      assert.equal(await harness.local.inbox.append(lease, hello), 'stale')
      await harness.local.inbox.append(again, { from: 1, events: [{ type: 'text', delta: 'new' }] })
      await harness.local.inbox.settle(again, done('new text'))
      const seen: string[] = []
      let lastSeq = 0
      for await (const { seq, wire } of harness.local.reception.follow(
        taskId,
        { afterSeq: 0 },
        AbortSignal.timeout(5000),
      )) {
        assert.ok(seq > lastSeq)
        lastSeq = seq
        for (const { statusUpdate, artifactUpdate } of wire) {
          if (statusUpdate) seen.push(statusUpdate.status.state.replace('TASK_STATE_', ''))
          if (artifactUpdate)
            seen.push(`${artifactUpdate.append ? '+' : '='}${artifactUpdate.artifact.parts[0]?.text ?? ''}`)
        }
      }
      assert.deepEqual(seen, ['WORKING', '=hel', '+lo', 'WORKING', 'WORKING', '=', '=new', '=new text', 'COMPLETED'])
    })
  })

  test('IN-7 the status of a task has the question, the words of the agent, or the notice of the platform', async () => {
    const id = await harness.workspace()
    const asked = { type: 'done', finality: 'input_required', parts: [{ text: 'which?' }], artifacts: [] } as const
    const file = { artifactId: 'f', parts: [{ text: 'file' }] }
    const said = { parts: [{ text: 'no' }] }
    /** The outcome, the status message of the task, and the whole answer, as a chat gets it. */
    const cases: readonly (readonly [Outcome, string, readonly string[], readonly string[]])[] = [
      [asked, 'INPUT_REQUIRED', ['which?'], ['which?']],
      [{ ...asked, parts: [] }, 'INPUT_REQUIRED', [], []],
      [{ ...asked, notice: 'cut' }, 'INPUT_REQUIRED', ['which?', '\n\ncut'], ['which?', '\n\ncut']],
      [{ ...asked, finality: 'completed', notice: 'cut' }, 'COMPLETED', ['cut'], ['which?', '\n\ncut']],
      [{ ...asked, finality: 'rejected', parts: [], artifacts: [file], said }, 'REJECTED', ['no'], ['file', 'no']],
      [{ ...asked, finality: 'auth_required', parts: [], notice: 'cut' }, 'AUTH_REQUIRED', ['cut'], ['cut']],
    ]
    await harness.withWorker(id, async (worker) => {
      for (const [outcome, state, status, answer] of cases) {
        const { taskId } = await harness.local.reception.admit({ ...letterTo(id), replyTo: { door: id, channel: 'c' } })
        await harness.local.inbox.settle(await worker.lease(), outcome)
        const task = await harness.local.reception.task(taskId)
        const delivery = await harness.local.deliveries.take(id)
        const texts = [task?.status.message?.parts, delivery?.body.parts].map((parts) =>
          (parts ?? []).map(({ text }) => text),
        )
        assert.deepEqual([task?.status.state, ...texts], [`TASK_STATE_${state}`, status, answer])
        await harness.local.deliveries.finish(delivery?.id ?? '', { type: 'sent' })
      }
    })
  })

  test('IN-4 a dead letter keeps the artifacts of its turn, and each sender of its task gets the clean sentence', async () => {
    const id = await harness.workspace()
    const { reception, inbox, deliveries } = harness.local
    const admit = (place = {}) => reception.admit({ ...letterTo(id, place), replyTo: { door: id, channel: 'c' } })
    const artifacts = [{ artifactId: 'f', parts: [{ text: 'file' }] }]
    const shown = { ...failure, message: 'exit 1: /secret', sentence: 'The agent stopped.' }
    const { taskId } = await admit()
    await admit({ taskId })
    await harness.withWorker(id, async (worker) => {
      await inbox.settle(await worker.lease(), { type: 'dead', failure: shown, artifacts })
    })
    for (let sender = 0; sender < 2; sender++) {
      const { id: delivery = '', body } = (await deliveries.take(id)) ?? {}
      assert.deepEqual([body?.state, body?.parts], ['TASK_STATE_FAILED', [{ text: 'The agent stopped.' }]])
      await deliveries.finish(delivery, { type: 'sent' })
    }
    const task = await reception.task(taskId)
    assert.deepEqual([task?.artifacts, task?.status.message?.parts], [artifacts, [{ text: 'The agent stopped.' }]])
    assert.doesNotMatch(JSON.stringify(task), /secret/)
    assert.match(JSON.stringify(await reception.task(taskId, { detail: true })), /exit 1: .secret/)
  })

  test('IN-5 a reader hears at once that its task got the slot of a turn that ended or waits', async () => {
    for (const end of ['settle', 'suspend'] as const) {
      const id = await harness.workspace()
      // Its clock stands still: the reader hears by the wake-up or not at all.
      const node = harness.newInbox(manualClock())
      const worker = harness.worker(id, node)
      await node.reception.admit(letterTo(id))
      const lease = await worker.lease()
      const { taskId } = await node.reception.admit(letterTo(id))
      const { seq = 0 } = (await node.reception.snapshot(taskId)) ?? {}
      const follower = node.reception.follow(taskId, { afterSeq: seq }, never)[Symbol.asyncIterator]()
      const heard = follower.next()
      await harness.sql('select 1 as one')
      if (end === 'settle') await node.inbox.settle(lease, done('ok'))
      else await node.inbox.suspend(lease)
      const { value } = await within(heard, 'the reader hears of its task')
      assert.equal((value as LogEntry).wire[0]?.statusUpdate?.status.state, 'TASK_STATE_WORKING')
      if (end === 'suspend') await node.inbox.settle(lease, done('ok'))
      await node.inbox.settle(await worker.lease(), done('ok'))
      await follower.return?.()
      await worker.leave()
      node.close()
    }
  })

  test('IN-7 a waiting reader gets the task when it is settled, or as it is after its time', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      const short = await harness.local.reception.waitForResult(taskId, 20, AbortSignal.timeout(5000))
      assert.equal(short?.status.state, 'TASK_STATE_WORKING')
      const blocked = harness.local.reception.waitForResult(taskId, 60_000, AbortSignal.timeout(5000))
      await harness.local.inbox.settle(await worker.lease(), done('now'))
      assert.equal((await blocked)?.status.state, 'TASK_STATE_COMPLETED')
    })
  })
}
