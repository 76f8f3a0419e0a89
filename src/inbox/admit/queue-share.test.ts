/** The limit of a queue and the share of one sender: what counts as its own, and at which number it is refused. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type LetterOptions, letterTo } from '../../../test/fakes/letters.ts'
import { hasCodeAndText } from '../../../test/harness/check-error.ts'
import { openInboxOnClock } from '../../../test/harness/inbox-on-clock.ts'
import type { MoleculeError } from '../../errors.ts'

async function openQueues(t: TestContext) {
  const inbox = openInboxOnClock(t)
  const [a, b] = [await inbox.workspace(), await inbox.workspace()]
  return {
    inbox,
    a,
    b,
    admit: (id: string, principal: string, options: LetterOptions = {}) =>
      inbox.local.reception.admit(letterTo(id, { principal, ...options })),
    /** As if so many messages of others waited. */
    setWaiting: (count: number) => inbox.sql('update workspace_load set waiting = $1', count),
  }
}

const isFull = (text: RegExp) => (error: unknown) => {
  hasCodeAndText('queue_full', text)(error)
  const { retryable, details } = error as MoleculeError
  assert.deepEqual({ retryable, details }, { retryable: true, details: { retryAfterMs: 5000 } })
  return true
}
const isShare = (own: number) =>
  isFull(new RegExp(`^${own} messages of this sender wait in the workspace, which is its share of the queue$`))

test('PL-9 a queue takes 1000 messages, and the next sender is told to come back in 5 s', async (t) => {
  const { a, admit, setWaiting } = await openQueues(t)
  await setWaiting(999)
  assert.equal((await admit(a, 'people')).duplicate, false)
  await assert.rejects(admit(a, 'people'), isFull(/^the workspace's queue is full: 1000 messages wait$/))
  await setWaiting(1001)
  await assert.rejects(admit(a, 'people'), isFull(/: 1001 messages wait$/))
})

test('PL-9 a share counts the waiting messages of all conversations of the sender in this workspace, and nothing else', async (t) => {
  const { inbox, a, b, admit, setWaiting } = await openQueues(t)
  // Waiting messages of others, of a sender with a similar name, and of the sender in another workspace.
  for (const principal of ['people', 'ws:xy', 'ws:xy/c1', 'xws:x']) await admit(a, principal)
  for (let count = 0; count < 5; count++) await admit(b, 'ws:x/c1')
  const workerB = inbox.worker([b])
  await workerB.lease()
  await admit(b, 'ws:x', { contextId: 'other' })
  // One message of the sender runs, one waits behind it, and one has ended.
  const worker = inbox.worker([a])
  await inbox.sql('update workspace_load set slots = 9 where workspace_id = $1', a)
  await worker.take()
  const ended = await admit(a, 'ws:x/c1')
  await inbox.local.reception.cancel(ended.taskId)
  await worker.take()
  await admit(a, 'ws:x/c2', { contextId: 'one' })
  await worker.take()
  await admit(a, 'ws:x/c2', { contextId: 'one' })
  await worker.leave()
  await admit(a, 'ws:x/c3')
  const [own] =
    await inbox.sql(`select count(*) as waiting from messages m join conversations c on c.id = m.conversation_id
    where m.workspace_id = '${a}' and m.state = 'queued' and c.principal like 'ws:x/%'`)
  assert.equal(own?.['waiting'], 2)
  await setWaiting(998)
  await assert.rejects(admit(a, 'ws:x/c4'), isShare(2))
  await assert.rejects(admit(a, 'ws:x'), isShare(2))
  await setWaiting(997)
  assert.equal((await admit(a, 'ws:x/c4')).duplicate, false)
  await setWaiting(997)
  await assert.rejects(admit(a, 'ws:x/c5'), isShare(3))
  // A plain sender has its own messages as its share, and an unknown one has none.
  await admit(a, 'token:t')
  await setWaiting(999)
  await assert.rejects(admit(a, 'token:t'), isShare(1))
  assert.equal((await admit(a, 'new')).duplicate, false)
})

test('PL-9 a sender alone gets half of the queue', async (t) => {
  const { inbox, a, admit, setWaiting } = await openQueues(t)
  const { taskId } = await admit(a, 'people', { contextId: 'one' })
  const columns = (await inbox.sql(`select name from pragma_table_info('messages')`)).map((row) => String(row['name']))
  const copied: Record<string, string> = { id: `m.id || k.n`, n: 'k.n', dedupe: 'randomblob(16)' }
  await inbox.sql(
    `insert into messages (${columns.join(', ')}) select ${columns.map((name) => copied[name] ?? `m.${name}`).join(', ')}
     from messages m, (with recursive counted(n) as (select 2 union all select n + 1 from counted where n < 499)
       select n from counted) k where m.id = $1`,
    taskId,
  )
  await setWaiting(499)
  assert.equal((await admit(a, 'people')).duplicate, false)
  await assert.rejects(admit(a, 'people'), isShare(500))
  assert.equal((await admit(a, 'other')).duplicate, false)
})
