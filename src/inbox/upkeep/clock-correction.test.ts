/** The clock was set back while no process ran: the times of open messages move back with it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../../test/fakes/letters.ts'
import { done, openInboxOnClock } from '../../../test/harness/inbox-on-clock.ts'

const HOUR_MS = 3600_000
const DAY_MS = 24 * HOUR_MS

async function openOneOfEach(t: Parameters<typeof openInboxOnClock>[0]) {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 2 })
  // A worker of another host keeps its leases when this one starts.
  const worker = inbox.worker([id], 'elsewhere.1')
  const ended = await inbox.local.reception.admit(letterTo(id, { contextId: 'ended' }))
  await inbox.local.inbox.settle(await worker.lease(), done('ok'))
  const running = await inbox.local.reception.admit(letterTo(id, { contextId: 'running' }))
  await worker.lease()
  const stopping = await inbox.local.reception.admit(letterTo(id, { contextId: 'stopping' }))
  await worker.lease()
  await inbox.local.reception.cancel(stopping.taskId)
  const waiting = await inbox.local.reception.admit(letterTo(id, { contextId: 'waiting' }))
  await inbox.sql('update messages set parked_at = admitted_at')
  for (const [name, state] of [
    ['d1', 'pending'],
    ['d2', 'sent'],
  ] as const) {
    await inbox.sql(
      `insert into deliveries (id, workspace_id, task_id, message_id, door, channel, body, state, next_at, created_at)
       values ($1, $2, 'x', 'x', 'http', 'c', '{}', $3, now_ms(), 1)`,
      ...[name, id, state],
    )
  }
  const startMs = inbox.clock.nowMs()
  /** Relative to the first start. */
  const times = async () => {
    const messages = await inbox.sql('select id, admitted_at, ready_at, expires_at, parked_at from messages')
    const conversations = await inbox.sql('select context_id, ready_at from conversations where ready_at is not null')
    const deliveries = await inbox.sql('select id, next_at from deliveries order by id')
    return {
      messages: Object.fromEntries(
        messages.map(({ id: messageId, ...columns }) => [
          messageId,
          Object.values(columns).map((value) => Number(value) - startMs),
        ]),
      ),
      ready: conversations.map((row) => [row['context_id'], Number(row['ready_at']) - startMs]),
      deliveries: deliveries.map((row) => Number(row['next_at']) - startMs),
    }
  }
  return { inbox, times, tasks: { ended, running, stopping, waiting } }
}

test('after a start with an earlier clock, open messages, ready conversations and pending deliveries are moved back', async (t) => {
  const { inbox, times, tasks } = await openOneOfEach(t)
  const { ended, running, stopping, waiting } = tasks
  await inbox.local.recover()
  assert.deepEqual(inbox.warnings, [], 'the clock is as it was')
  inbox.clock.advance(-HOUR_MS)
  await inbox.sql(`update messages set ready_at = ready_at + $2 where id = $1`, waiting.taskId, 2 * HOUR_MS)
  await inbox.local.recover()
  assert.deepEqual(
    inbox.warnings.map(({ fields, message }) => [fields, message]),
    [[{ backMs: HOUR_MS }, 'the clock was set back; the times of waiting messages were moved back with it']],
  )
  const { messages, ready, deliveries } = await times()
  const moved = [-HOUR_MS, -HOUR_MS, DAY_MS - HOUR_MS, -HOUR_MS]
  assert.deepEqual(messages[ended.taskId], [0, 0, DAY_MS, 0])
  assert.deepEqual(messages[running.taskId], moved)
  assert.deepEqual(messages[stopping.taskId], moved)
  assert.deepEqual(messages[waiting.taskId], moved.with(1, HOUR_MS))
  assert.deepEqual(
    ready.find(([context]) => context === 'waiting'),
    ['waiting', -HOUR_MS],
  )
  assert.deepEqual(deliveries, [-HOUR_MS, 0])
  // The next start finds nothing to correct.
  await inbox.local.recover()
  assert.equal(inbox.warnings.length, 1)
})

test('a jump of a second counts, a smaller one does not', async (t) => {
  const { inbox, times } = await openOneOfEach(t)
  const before = await times()
  inbox.clock.advance(-999)
  await inbox.local.recover()
  assert.deepEqual([inbox.warnings, (await times()).deliveries], [[], before.deliveries])
  inbox.clock.advance(-1)
  await inbox.local.recover()
  assert.deepEqual(
    inbox.warnings.map(({ fields }) => fields),
    [{ backMs: 1000 }],
  )
})

test('a message that is ready in more than a day was written by another clock; a retry in a day was not', async (t) => {
  const { inbox, tasks, times } = await openOneOfEach(t)
  const { waiting } = tasks
  const readyIn = (ms: number) =>
    inbox.sql('update messages set ready_at = now_ms() + $2 where id = $1', waiting.taskId, ms)
  await readyIn(DAY_MS)
  await inbox.local.recover()
  assert.deepEqual(inbox.warnings, [])
  await readyIn(DAY_MS + 5000)
  await inbox.local.recover()
  assert.deepEqual(
    inbox.warnings.map(({ fields }) => fields),
    [{ backMs: 5000 }],
  )
  assert.equal((await times()).messages[waiting.taskId]?.[1], DAY_MS)
})

test('PostgreSQL has its own clock, which other nodes use too: a start corrects nothing', async (t) => {
  const inbox = openInboxOnClock(t, { engine: 'postgres' })
  const { taskId } = await inbox.local.reception.admit(letterTo(await inbox.workspace()))
  await inbox.sql('update messages set admitted_at = now_ms() + $1', HOUR_MS)
  await inbox.local.recover()
  const [row] = await inbox.sql('select admitted_at - now_ms() as ahead from messages where id = $1', taskId)
  assert.deepEqual([row?.['ahead'], inbox.warnings], [HOUR_MS, []])
})

test('a store without open messages has nothing to correct', async (t) => {
  const inbox = openInboxOnClock(t)
  assert.equal(await inbox.local.recover(), 0)
  assert.deepEqual(inbox.warnings, [])
})
