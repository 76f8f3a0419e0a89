/** A result that the conversation of the parent has read is not sent to it again; every other result is. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { childOf } from '../../../test/contracts/inbox/team.ts'
import { letterTo } from '../../../test/fakes/letters.ts'
import { openTeam } from '../../../test/harness/delegations.ts'
import { done } from '../../../test/harness/inbox-on-clock.ts'
import type { Lease, Outcome } from '../inbox.ts'

const UNREAD = 'select id from messages where child_open = 1 and read_epoch is null'

test('TW-3 a read counts for the settled messages of that task, by its own conversation, in the state that was read', async (t) => {
  const { inbox, ids, begin, read, workers } = await openTeam(t, ['a', 'b'])
  const [a = '', b = ''] = ids
  const [root, stranger] = [await begin(letterTo(a)), await begin(letterTo(a))]
  const children: Lease[] = []
  for (let count = 0; count < 4; count++) children.push(await begin(childOf(root, b)))
  const [first, second, asking, running] = children as [Lease, Lease, Lease, Lease]
  await inbox.local.reception.admit(childOf(root, b, { taskId: first.taskId }))
  for (const child of [first, second]) await inbox.local.inbox.settle(child, done('7'))
  await inbox.local.inbox.settle(asking, { ...done('how many?'), finality: 'input_required' } as Outcome)
  const later = (await workers[1]?.lease()) as Lease
  const unread = async () => (await inbox.sql(UNREAD)).map((row) => row['id'])
  const all = [first, second, asking, running, later].map(({ messageId }) => messageId).sort()
  assert.deepEqual((await unread()).sort(), all)
  await read(stranger, second.taskId)
  await read(root, second.taskId, 'TASK_STATE_FAILED')
  await read(root, running.taskId)
  await read(root, running.taskId, 'TASK_STATE_COMPLETED')
  await read(root, first.taskId)
  await read(root, second.taskId, 'TASK_STATE_WORKING')
  assert.deepEqual((await unread()).sort(), all)
  await read(root, second.taskId)
  const after = (...known: readonly Lease[]) => all.filter((id) => !known.some(({ messageId }) => messageId === id))
  assert.deepEqual((await unread()).sort(), after(second))
  await read(root, asking.taskId)
  assert.deepEqual((await unread()).sort(), after(second, asking))
  // Both messages of the first task have ended now, and one read is for both.
  await inbox.local.inbox.settle(later, done('8'))
  await read(root, first.taskId)
  assert.deepEqual((await unread()).sort(), after(second, asking, first, later))
})

test('TW-3 a task that asks in its running turn is not read before the turn settles', async (t) => {
  const { inbox, ids, begin, read } = await openTeam(t, ['a', 'b'])
  const root = await begin(letterTo(ids[0] ?? ''))
  const child = await begin(childOf(root, ids[1] ?? ''))
  await inbox.local.inbox.ask(child, { id: 'q', kind: 'question', parts: [{ text: 'what?' }] })
  await read(root, child.taskId)
  assert.equal((await inbox.sql(UNREAD)).length, 1)
})

test('TW-3 a failure to remember a read is logged, and the reader has its result', async (t) => {
  const { inbox, ids, begin, read } = await openTeam(t, ['a', 'b'])
  const root = await begin(letterTo(ids[0] ?? ''))
  const child = await begin(childOf(root, ids[1] ?? ''))
  await inbox.local.inbox.settle(child, done('7'))
  inbox.failWrites(() => new Error('the disk is away'))
  await read(root, child.taskId)
  assert.deepEqual(
    inbox.warnings.map(({ fields, message }) => [fields['taskId'], message]),
    [[child.taskId, 'a result that was read may be sent to its reader again']],
  )
  // Most repeated reads find nothing, and then nothing is written.
  inbox.failWrites(() => undefined)
  await read(root, child.taskId)
  inbox.failWrites(() => new Error('the disk is away'))
  await read(root, child.taskId)
  assert.equal(inbox.warnings.length, 1)
})
