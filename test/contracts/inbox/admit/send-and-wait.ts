/** A caller that sends and waits gets the task as it is stored, at once, without a read where none is needed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Outcome } from '../../../../src/inbox/worker.ts'
import type { Task } from '../../../../src/protocol/a2a.ts'
import type { Store } from '../../../../src/store/store.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { manualClock } from '../../../fakes/manual-clock.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

const MINUTE_MS = 60_000
const WAIT = { maxMs: MINUTE_MS }
const patience = () => AbortSignal.timeout(MINUTE_MS)

const FILE = { artifactId: 'file', name: 'a.txt', parts: [{ text: 'in a file' }] }
const OUTCOMES: Readonly<Record<string, Outcome>> = {
  'a reply': done('hello back'),
  'files and metadata': { ...done('see the file'), artifacts: [FILE], metadata: { seen: true } } as Outcome,
  'nothing but files': { type: 'done', finality: 'completed', parts: [], artifacts: [FILE] },
  'a question': { type: 'done', finality: 'input_required', parts: [{ text: 'which one?' }], artifacts: [] },
  'a refusal': { type: 'done', finality: 'rejected', parts: [{ text: 'not my job' }], artifacts: [] },
  'a dead letter': { type: 'dead', failure },
}

export function sendAndWaitTests(harness: InboxHarness): void {
  for (const [name, outcome] of Object.entries(OUTCOMES)) {
    test(`IN-7 a waiting sender gets ${name} as it is stored`, async () => {
      const id = await harness.workspace()
      const { reception, inbox } = harness.local
      await harness.withWorker(id, async (worker) => {
        const sent = reception.send(letterTo(id), WAIT, patience())
        const lease = await worker.lease()
        await inbox.settle(lease, outcome)
        assert.deepEqual(await sent, await reception.task(lease.taskId))
      })
    })
  }

  test('IN-7 a result that comes before the sender waits is neither missed nor read back', async () => {
    const id = await harness.workspace()
    const reads = countingReads(harness.store)
    // The clock never moves: only the change itself can wake the waiting caller.
    const local = harness.newInbox(manualClock(), reads.store)
    const worker = harness.worker(id, local)
    await worker.idle()
    reads.count = 0
    const onAdmitted = async () => void (await local.inbox.settle(await worker.lease(), done('early')))
    const task = await local.reception.send(letterTo(id), { ...WAIT, onAdmitted }, patience())
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED')
    assert.equal(reads.count, 0)
    await worker.leave()
    local.close()
  })

  test('IN-7 the result of a task with several messages comes whole, when the last of them is settled', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const first = reception.send(letterTo(id), WAIT, patience())
      const lease = await worker.lease()
      const second = reception.send(letterTo(id, { taskId: lease.taskId }), WAIT, patience())
      while ((await reception.task(lease.taskId))?.history?.length !== 2) await nextTurn()
      await inbox.settle(lease, done('one'))
      await inbox.settle(await worker.lease(), done('two'))
      const [result, resultToo] = await Promise.all([first, second])
      assert.deepEqual(result, await reception.task(lease.taskId))
      assert.deepEqual([result.history?.length, result.artifacts?.length], [2, 2])
      assert.deepEqual(resultToo, result)
    })
  })

  test('IN-1 the same letter sent again gets the task of the first; a refused letter waits for nothing', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const letter = letterTo(id)
      const first = reception.send(letter, WAIT, patience())
      const lease = await worker.lease()
      const again = reception.send(letter, WAIT, patience())
      await inbox.settle(lease, done('once'))
      assert.deepEqual(await again, await first)
      assert.deepEqual(await reception.send(letter, WAIT, patience()), await first)
    })
    await assert.rejects(reception.send(letterTo('ws_none'), WAIT, patience()), hasCode('not_found'))
    const refused = new Error('no webhook there')
    const onAdmitted = () => Promise.reject(refused)
    await assert.rejects(reception.send(letterTo(id), { ...WAIT, onAdmitted }, patience()), refused)
  })

  test('IN-7 the wait ends after its time or on abort, with the task as it is', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const late = await reception.send(letterTo(id), { maxMs: 20 }, patience())
      assert.equal(late.status.state, 'TASK_STATE_WORKING')
      const leave = new AbortController()
      const left = reception.send(letterTo(id), WAIT, leave.signal)
      await inbox.settle(await worker.lease(), done('late'))
      const lease = await worker.lease()
      leave.abort()
      assert.equal((await left).status.state, 'TASK_STATE_WORKING')
      await inbox.settle(lease, done('no caller waits'))
    })
  })

  test('IN-7 a caller of an offline workspace is answered at once with the reason, unless a turn of its task runs', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    const worker = harness.worker(id)
    const { taskId } = await reception.admit(letterTo(id))
    const lease = await worker.lease()
    await worker.leave()
    const running = reception.waitForResult(taskId, MINUTE_MS, patience())
    const queued = await reception.send(letterTo(id), WAIT, patience())
    assert.equal(queued.status.state, 'TASK_STATE_SUBMITTED')
    assert.equal(textOf(queued), 'waiting: the workspace is offline (it has never connected)')
    await inbox.settle(lease, done('the turn of a bridge that is silent'))
    assert.equal((await running)?.status.state, 'TASK_STATE_COMPLETED')

    const told = await reception.send(letterTo(id, { taskId: queued.id }), WAIT, patience())
    assert.equal(textOf(told), 'waiting: the workspace is offline (it has never connected)')
    const insert = `insert into presence (workspace_id, registered_at, heard_at, report)
      values ($1, now_ms() - 91000, now_ms() - 91000, '{}')`
    await harness.sql(insert, id)
    assert.match(textOf(await reception.send(letterTo(id), WAIT, patience())), /offline \(no heartbeat for 91 s\)$/)
    await harness.sql('update presence set heard_at = now_ms() where workspace_id = $1', id)
    const late = await reception.send(letterTo(id), { maxMs: 20 }, patience())
    assert.equal(textOf(late), 'waiting for a worker')
  })
}

const textOf = (task: Task | undefined): string => task?.status.message?.parts[0]?.text ?? ''

function countingReads(store: Store): { readonly store: Store; count: number } {
  const counted = {
    count: 0,
    store: {
      ...store,
      read: (transaction: Parameters<Store['read']>[0]) => {
        counted.count += 1
        return store.read(transaction)
      },
    } as Store,
  }
  return counted
}
