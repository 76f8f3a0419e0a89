/** The queue of a workspace as a whole: pause, stop, resume, end. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Outcome } from '../../../../src/inbox/worker.ts'
import { readDeadLetters } from '../../../../src/views/needs/dead-letters.ts'
import { readPendingAsks } from '../../../../src/views/needs/pending-asks.ts'
import { findSession } from '../../../../src/workspaces/sessions.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { manualClock } from '../../../fakes/manual-clock.ts'
import { childOf, createTeams } from '../delegate/team.ts'
import { done, failure, HOST, hasCode, type InboxHarness } from '../harness.ts'

const DELETED = { code: 'canceled', message: 'the workspace was deleted' }
const MINUTE_MS = 60_000

export function queueTests(harness: InboxHarness): void {
  pauseTests(harness)
  stopTests(harness)
  endTests(harness)
  limitTests(harness)
}

function limitTests(harness: InboxHarness): void {
  const parked = { afterMs: 3_000_000, said: { parts: [{ text: 'waiting: the 1 turns an hour are used up' }] } }

  test('RT-13 TW-10 a changed limit wakes what waits for one at once, and no message that waits for its next attempt', async () => {
    const [id, other] = [await harness.workspace(3), await harness.workspace()]
    const { reception, queues, inbox } = harness.local
    const hold = async (workspaceId: string, outcome: Outcome) => {
      const { taskId } = await reception.admit(letterTo(workspaceId))
      await harness.withWorker(workspaceId, async (worker) => {
        await inbox.settle(await worker.lease(), outcome)
      })
      return taskId
    }
    const released: Outcome = { type: 'released', interrupted: false, parked }
    const held = [await hold(id, released), await hold(id, released)]
    await hold(id, { type: 'retry', failure, afterMs: 3_000_000, reason: 'failure', interrupted: false })
    await hold(other, released)
    const openWorker = harness.worker(id)
    assert.ok(await openWorker.idle())
    await queues.limitsChanged(id)
    const woken = [await openWorker.lease(), await openWorker.lease()]
    assert.deepEqual(woken.map(({ taskId }) => taskId).sort(), held.sort())
    assert.ok(await openWorker.idle())
    for (const lease of woken) await inbox.settle(lease, done('ok'))
    await openWorker.leave()
    await harness.withWorker(other, async (worker) => assert.ok(await worker.idle()))
  })

  test('CN-3 what failed often is ready at once for a new worker; quick retries and limits of a provider keep their time', async () => {
    const [id, other] = [await harness.workspace(9), await harness.workspace()]
    const { reception, queues, inbox } = harness.local
    const retry = { type: 'retry', failure, reason: 'failure', interrupted: false } as const
    /** A message that failed so often and waits for an hour. */
    const wait = async (workspaceId: string, failures: number, isParked = false) => {
      const { taskId } = await reception.admit(letterTo(workspaceId))
      await harness.withWorker(workspaceId, async (worker) => {
        for (let failed = 1; failed <= failures; failed++) {
          await inbox.settle(await worker.lease(), { ...retry, afterMs: failed < failures ? 0 : 3_600_000 })
        }
      })
      if (isParked) await harness.sql('update messages set parks = 1 where task_id = $1', taskId)
      return taskId
    }
    const late = await wait(id, 4)
    await wait(id, 3)
    await wait(id, 5, true)
    await wait(other, 4)
    await queues.retryFailed(id)
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      assert.equal(lease.taskId, late)
      await inbox.settle(lease, done('ok'))
      assert.ok(await worker.idle())
    })
    await harness.withWorker(other, async (worker) => assert.ok(await worker.idle()))
  })

  test('RT-13 TW-10 more slots run the waiting messages at once', async () => {
    const id = await harness.workspace(1)
    const { reception, queues, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      await reception.admit(letterTo(id))
      const first = await worker.lease()
      const { taskId } = await reception.admit(letterTo(id))
      assert.ok(await worker.idle())
      await harness.sql('update workspace_load set slots = 2 where workspace_id = $1', id)
      await queues.limitsChanged(id)
      const second = await worker.lease()
      assert.equal(second.taskId, taskId)
      for (const lease of [first, second]) await inbox.settle(lease, done('ok'))
    })
  })
}

function pauseTests(harness: InboxHarness): void {
  test('PL-2 a paused queue admits messages and leases none, and a waiting caller gets its answer at once', async () => {
    const id = await harness.workspace(2)
    const { reception, queues: faces, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const running = await reception.admit(letterTo(id, { contextId: 'c' }))
      const lease = await worker.lease()
      await faces.pause(id, { now: false })
      const { taskId } = await reception.admit(letterTo(id, { contextId: 'c' }))
      const task = await reception.waitForResult(taskId, MINUTE_MS, AbortSignal.timeout(MINUTE_MS))
      assert.equal(task?.status.state, 'TASK_STATE_SUBMITTED')
      assert.match(task?.status.message?.parts[0]?.text ?? '', /paused/)
      await inbox.settle(lease, done('the running turn finishes'))
      assert.equal(await harness.state(running.taskId), 'TASK_STATE_COMPLETED')
      assert.ok(await worker.idle())
      await faces.resume(id)
      const next = await worker.lease()
      assert.equal(next.taskId, taskId)
      await inbox.settle(next, done('ok'))
    })
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('PL-2 pause with `now` stops the turn, and its message waits until the queue is resumed', async () => {
    const id = await harness.workspace()
    const { reception, queues: faces, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await reception.admit(letterTo(id))
      const lease = await worker.lease()
      const answered = reception.waitForResult(taskId, MINUTE_MS, AbortSignal.timeout(MINUTE_MS))
      await faces.pause(id, { now: true })
      assert.equal((await worker.next()).type, 'stop')
      await inbox.settle(lease, { type: 'stopped' })
      assert.equal((await answered)?.status.state, 'TASK_STATE_WORKING')
      assert.ok(await worker.idle())
      await faces.resume(id)
      const again = await worker.lease()
      assert.deepEqual([again.taskId, again.interrupted, again.losses], [taskId, true, 0])
      await inbox.settle(again, done('ok'))
    })
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
    await assert.rejects(faces.pause('ws_none', { now: false }), hasCode('not_found'))
    await assert.rejects(faces.resume('ws_none'), hasCode('not_found'))
  })
}

function stopTests(harness: InboxHarness): void {
  test('CL-7 TW-9 stop cancels what runs, and the messages that wait begin after a resume', async () => {
    const id = await harness.workspace(2)
    const { reception, queues, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const first = await reception.admit(letterTo(id, { contextId: 'a' }))
      const second = await reception.admit(letterTo(id, { contextId: 'b' }))
      const leases = [await worker.lease(), await worker.lease()]
      const waiting = await reception.admit(letterTo(id, { contextId: 'a', text: 'later' }))
      const answered = reception.waitForResult(first.taskId, MINUTE_MS, AbortSignal.timeout(MINUTE_MS))
      assert.deepEqual([...(await queues.stop(id))].sort(), [first.taskId, second.taskId].sort())
      assert.equal((await answered)?.status.state, 'TASK_STATE_CANCELED')
      for (const lease of leases) {
        assert.equal((await worker.next()).type, 'stop')
        await inbox.settle(lease, { type: 'stopped' })
      }
      assert.ok(await worker.idle())
      assert.deepEqual(await queues.stop(id), [])
      await queues.resume(id)
      const next = await worker.lease()
      assert.equal(next.taskId, waiting.taskId)
      await inbox.settle(next, done('ok'))
      assert.ok(await worker.idle())
    })
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
    await assert.rejects(queues.stop('ws_none'), hasCode('not_found'))
  })
}

function endTests(harness: InboxHarness): void {
  test('TW-3 CL-7 PL-2 a stop or an end cancels what the running turns delegated at once, and touches no other queue', async () => {
    for (const act of ['stop', 'end'] as const) {
      // Its clock stands still, so no sweep cancels anything.
      const node = harness.newInbox(manualClock())
      const { withTeam } = createTeams({ ...harness, local: node, worker: (id) => harness.worker(id, node) })
      const bystander = await harness.workspace()
      await harness.withWorker(bystander, async (other) => {
        const untouched = await harness.local.reception.admit(letterTo(bystander))
        const kept = await other.lease()
        await withTeam(2, async ({ ids, workers: [home, away], rootTask, lease }) => {
          const child = await node.reception.admit(childOf(lease, ids[1] ?? ''))
          await away.lease()
          if (act === 'stop') assert.deepEqual(await node.queues.stop(ids[0] ?? ''), [rootTask])
          else assert.equal(await node.queues.end(ids[0] ?? '', DELETED), 1)
          for (const worker of [home, away]) assert.equal((await worker.next()).type, 'stop')
          assert.equal(await harness.state(child.taskId), 'TASK_STATE_CANCELED')
        })
        assert.ok(await other.idle())
        assert.equal(await harness.local.inbox.settle(kept, done('ok')), 'settled')
        assert.equal(await harness.state(untouched.taskId), 'TASK_STATE_COMPLETED')
      })
      node.close()
    }
  })

  test('PL-2 an end leaves no dead letter, question or session of its workspace, and those of others stay', async () => {
    const { reception, queues, inbox } = harness.local
    const ids = [await harness.workspace(3), await harness.workspace(3)]
    const leases: Lease[] = []
    for (const id of ids) {
      await harness.withWorker(id, async (worker) => {
        const outcomes: Outcome[] = [{ type: 'dead', failure }, { ...done('ok'), session: 'token' } as Outcome]
        for (const outcome of outcomes) {
          await reception.admit(letterTo(id, { contextId: 'c' }))
          await inbox.settle(await worker.lease(), outcome)
        }
        await reception.admit(letterTo(id, { contextId: 'c' }))
        const lease = await worker.lease()
        const ask = { kind: 'permission', id: 'a', parts: [{ text: 'may I?' }], tool: 'Bash', subject: 'ls' } as const
        assert.equal(await inbox.ask(lease, ask), 'held')
        leases.push(lease)
      })
    }
    const left = async (lease: Lease) => [
      (await readDeadLetters(harness.local.store, { workspaceId: lease.workspaceId, detail: true })).dead_letters
        .length,
      (await readPendingAsks(harness.local.store, { workspaceId: lease.workspaceId })).pending.length,
      await harness.store.read(() => findSession(HOST, lease)),
    ]
    await queues.end(ids[0] ?? '', DELETED)
    assert.deepEqual(await Promise.all(leases.map(left)), [
      [0, 0, undefined],
      [1, 1, 'token'],
    ])
    await queues.end(ids[1] ?? '', DELETED)
  })

  test('PL-2 an ended queue settles waiting and running messages with its reason, and admits no more', async () => {
    const id = await harness.workspace()
    const { reception, queues: faces, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const first = await reception.admit(letterTo(id))
      const lease = await worker.lease()
      const second = await reception.admit(letterTo(id))
      const answered = reception.waitForResult(second.taskId, MINUTE_MS, AbortSignal.timeout(MINUTE_MS))
      assert.equal(await faces.end(id, DELETED), 2)
      const task = await answered
      assert.equal(task?.status.state, 'TASK_STATE_FAILED')
      assert.equal(task?.status.message?.parts[0]?.text, DELETED.message)
      assert.equal(await harness.state(first.taskId), 'TASK_STATE_FAILED')
      assert.equal((await worker.next()).type, 'stop')
      assert.deepEqual(await inbox.extend([lease]), ['stale'])
      assert.equal(await inbox.settle(lease, done('too late')), 'stale')
      assert.equal(await inbox.begin(lease), 'stale')
      assert.equal(await inbox.append(lease, { from: 1, events: [{ type: 'text', delta: 'late' }] }), 'stale')
      assert.deepEqual([await inbox.suspend(lease), await inbox.resume(lease)], ['stale', 'stale'])
      assert.equal(await harness.state(first.taskId), 'TASK_STATE_FAILED')
      await assert.rejects(reception.admit(letterTo(id)), hasCode('not_found'))
      assert.equal(await faces.end(id, DELETED), 0)
    })
    assert.deepEqual((await readDeadLetters(harness.local.store, { workspaceId: id, detail: true })).dead_letters, [])
    assert.deepEqual(
      await harness.sql('select id from messages where workspace_id = $1 and settled_at is null', id),
      [],
    )
  })
}
