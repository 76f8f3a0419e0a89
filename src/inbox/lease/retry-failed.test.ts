/** A bridge that starts gets the messages that failed before: its owner has probably mended what was wrong. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../../test/fakes/letters.ts'
import { openInboxOnClock } from '../../../test/harness/inbox-on-clock.ts'
import type { Outcome } from '../inbox.ts'

const failure = { code: 'exit', message: 'exit 1' }
const retry = (more: object): Outcome => ({
  type: 'retry',
  failure,
  afterMs: 3600_000,
  reason: 'failure',
  interrupted: false,
  ...more,
})

test('CN-3 messages that wait for a late attempt are ready at once; quick ones and those of a limit keep their time', async (t) => {
  const inbox = openInboxOnClock(t)
  const [id, other] = [await inbox.workspace({ slots: 9 }), await inbox.workspace()]
  /** A message that was failed so often and waits for an hour. */
  const wait = async (workspaceId: string, failures: number, more: object = {}) => {
    const { taskId } = await inbox.local.reception.admit(letterTo(workspaceId))
    await inbox.sql('update messages set failures = $2 where task_id = $1', taskId, failures - 1)
    const worker = inbox.worker([workspaceId])
    await inbox.local.inbox.settle(await worker.lease(), retry(more))
    await worker.leave()
    return taskId
  }
  const late = await wait(id, 4)
  const behind = await inbox.local.reception.admit(letterTo(id, { taskId: late }))
  await wait(id, 3)
  await wait(id, 5, { parked: true })
  await wait(other, 4)
  await inbox.local.queues.retryFailed(id)
  const worker = inbox.worker([id, other])
  const taken = await worker.lease()
  assert.equal(taken.taskId, late)
  await inbox.pass()
  assert.deepEqual(await worker.take(), [])
  assert.equal(behind.taskId, late)
})
