/** How the parts of the local inbox are joined: who is told of a change, and what a start does first. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../test/fakes/letters.ts'
import { done, HOST, leasesIn, openInboxOnClock } from '../../test/harness/inbox-on-clock.ts'

test('a change of a task wakes those who wait for it, followers of its workspace, and other processes', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 2 })
  const worker = inbox.worker([id])
  const { taskId } = await inbox.local.reception.admit(letterTo(id))
  const lease = await worker.lease()
  const seen: string[] = []
  const signal = new AbortController().signal
  const waits = inbox.local.reception.waitForResult(taskId, 60_000, signal).then((task) => {
    seen.push(`result ${task?.status.state}`)
  })
  const stop = inbox.local.activity.onChange((changed) => seen.push(`change of ${changed}`))
  await inbox.pass()
  assert.deepEqual(seen, [])
  inbox.notified.length = 0
  await inbox.local.inbox.settle(lease, done('ok'))
  await inbox.pass()
  assert.deepEqual(seen.sort(), [`change of ${id}`, 'result TASK_STATE_COMPLETED'])
  assert.deepEqual(inbox.notified, [id])
  await waits
  stop()
})

test('a hint of another process wakes those who wait for a task here', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace()
  await inbox.worker([id]).take()
  const { taskId } = await inbox.local.reception.admit(letterTo(id))
  let state: string | undefined
  const waits = inbox.local.reception.waitForResult(taskId, 60_000, new AbortController().signal).then((task) => {
    state = task?.status.state
  })
  await inbox.pass()
  await inbox.sql(`update tasks set state = 'TASK_STATE_CANCELED' where id = $1`, taskId)
  await inbox.pass()
  assert.equal(state, undefined)
  inbox.hint()
  await inbox.pass()
  assert.equal(state, 'TASK_STATE_CANCELED')
  await waits
})

test('a start releases what an earlier process of this host held, and leaves that of other hosts', async (t) => {
  const inbox = openInboxOnClock(t)
  const [mine, strange] = [await inbox.workspace(), await inbox.workspace()]
  const [worker, other] = [inbox.worker([mine]), inbox.worker([strange], 'elsewhere.1')]
  for (const id of [mine, strange]) await inbox.local.reception.admit(letterTo(id))
  await worker.lease()
  const kept = await other.lease()
  for (const [id, sender] of [
    ['d1', `${HOST}`],
    ['d2', 'elsewhere'],
  ] as const) {
    await inbox.sql(
      `insert into deliveries (id, workspace_id, task_id, message_id, door, channel, body, state, sender, next_at, created_at)
       values ($1, $2, 'x', 'x', 'http', 'c', '{}', 'sending', $3, 1, 1)`,
      ...[id, mine, sender],
    )
    await inbox.sql(
      `insert into push_configs (task_id, id, workspace_id, version, config, state, worker, next_at, created_at)
       values ('x', $1, $2, '1.0', '{}', 'open', $3, 1, 1)`,
      ...[id, mine, sender],
    )
  }
  assert.equal(await inbox.local.recover(), 1)
  const [again] = leasesIn(await worker.take())
  assert.equal(again, undefined, 'the next sweep leases it again')
  assert.equal(await inbox.local.inbox.begin(kept), 'held')
  const deliveries = await inbox.sql('select id, state from deliveries order by id')
  assert.deepEqual(
    deliveries.map((row) => [row['id'], row['state']]),
    [
      ['d1', 'unknown'],
      ['d2', 'sending'],
    ],
  )
  const configs = await inbox.sql('select id, worker from push_configs order by id')
  assert.deepEqual(
    configs.map((row) => [row['id'], row['worker']]),
    [
      ['d1', null],
      ['d2', 'elsewhere'],
    ],
  )
  await inbox.pass(5000)
  assert.equal(leasesIn(await worker.take()).length, 1)
})
