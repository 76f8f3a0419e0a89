/** A new attempt meets the children of the attempt before: which of them, in which order, and what changes with it. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { childOf } from '../../../test/contracts/inbox/team.ts'
import { letterTo } from '../../../test/fakes/letters.ts'
import { openTeam, retry } from '../../../test/harness/delegations.ts'
import { done } from '../../../test/harness/inbox-on-clock.ts'
import type { Lease } from '../inbox.ts'

async function openAttempts(t: TestContext) {
  const team = await openTeam(t, ['a', 'b', 'c'])
  const { inbox, ids, workers, begin } = team
  const root = await begin(letterTo(ids[0] ?? ''))
  const attemptAgain = async (): Promise<Lease> => {
    await inbox.local.inbox.settle(root, retry)
    return (await workers[0]?.lease()) as Lease
  }
  const admit = inbox.local.reception.admit
  /** The attempt that last delegated each child, and whether its result is unread. */
  const children = async () => {
    const rows = await inbox.sql(
      'select id, parent_epoch, child_open from messages where parent_id is not null order by id',
    )
    return Object.fromEntries(rows.map((row) => [row['id'], [row['parent_epoch'], row['child_open']]]))
  }
  return { ...team, root, attemptAgain, admit, children }
}

test('TW-6 a new attempt meets the oldest delegation of the same text to the same workspace, and no other message', async (t) => {
  const { inbox, ids, begin, root, attemptAgain, admit, children, workers } = await openAttempts(t)
  const [a = '', b = '', c = ''] = ids
  const delegate = (of: Lease, to: string, text = 'count') => admit(childOf(of, to, { text }))
  const stranger = await delegate(await begin(letterTo(a)), c)
  const otherText = await delegate(root, b, 'sing')
  const [carrier] = (await workers[1]?.take()) ?? []
  assert.ok(carrier?.type === 'lease')
  const grandchild = await delegate(carrier.lease, c)
  const toB = await delegate(root, b)
  const followUp = await admit(childOf(root, c, { text: 'count', taskId: (await delegate(root, c, 'hum')).taskId }))
  const replayed = await delegate(root, c)
  const first = await delegate(root, c)
  const second = await delegate(root, c)
  await inbox.sql(`update messages set replayed_as = 'x' where id = $1`, replayed.taskId)
  await inbox.sql('update messages set child_open = 0')
  const again = await attemptAgain()
  const before = await children()
  const letter = childOf(again, c, { text: 'count' })
  assert.deepEqual(await admit(letter), { taskId: first.taskId, contextId: first.contextId, duplicate: true })
  assert.deepEqual(await children(), { ...before, [first.taskId]: [2, 1] })
  // A repeated call of this attempt attaches too, and changes nothing.
  assert.deepEqual(await admit(letter), { taskId: first.taskId, contextId: first.contextId, duplicate: true })
  assert.deepEqual(await children(), { ...before, [first.taskId]: [2, 1] })
  assert.equal((await delegate(again, c)).taskId, second.taskId)
  const third = await delegate(again, c)
  assert.equal(third.duplicate, false)
  const known = [stranger, otherText, grandchild, toB, followUp, replayed, first, second].map(({ taskId }) => taskId)
  assert.ok(!known.includes(third.taskId))
  assert.equal((await delegate(again, b)).taskId, toB.taskId)
})

test('TW-6 a context that the agent names must be that of the old child', async (t) => {
  const { ids, root, attemptAgain, admit } = await openAttempts(t)
  const [, b = ''] = ids
  const one = await admit(childOf(root, b, { text: 'count', contextId: 'one' }))
  const two = await admit(childOf(root, b, { text: 'count', contextId: 'two' }))
  const again = await attemptAgain()
  const fresh = await admit(childOf(again, b, { text: 'count', contextId: 'three' }))
  assert.equal(fresh.duplicate, false)
  assert.equal((await admit(childOf(again, b, { text: 'count', contextId: 'two' }))).taskId, two.taskId)
  assert.equal((await admit(childOf(again, b, { text: 'count' }))).taskId, one.taskId)
})

test('TW-6 a message that continues a task, or that has a key of the caller, is never an old child', async (t) => {
  const { inbox, ids, root, attemptAgain, admit, workers } = await openAttempts(t)
  const [, b = ''] = ids
  const old = await admit(childOf(root, b, { text: 'count' }))
  const other = await admit(childOf(root, b, { text: 'other' }))
  await workers[1]?.take()
  const again = await attemptAgain()
  const keyed = await admit(childOf(again, b, { text: 'count', idempotencyKey: 'k' }))
  assert.equal(keyed.duplicate, false)
  const continued = await admit(childOf(again, b, { text: 'count', taskId: other.taskId }))
  assert.deepEqual([continued.taskId, continued.duplicate], [other.taskId, false])
  const rows = await inbox.sql('select id from messages where task_id = $1', other.taskId)
  assert.equal(rows.length, 2)
  assert.equal((await admit(childOf(again, b, { text: 'count' }))).taskId, old.taskId)
})

test('TW-6 a key of the caller makes the same child unread again in a new attempt only, and no other child', async (t) => {
  const { inbox, ids, root, attemptAgain, admit, children, begin } = await openAttempts(t)
  const [a = '', b = ''] = ids
  const keyed = (of: Lease) => childOf(of, b, { text: 'count', idempotencyKey: 'k' })
  const other = await admit(childOf(root, b, { text: 'sing' }))
  const stranger = await admit(childOf(await begin(letterTo(a)), b, { text: 'x', idempotencyKey: 'k' }))
  const child = await admit(keyed(root))
  await inbox.sql('update messages set child_open = 0')
  const read = { [other.taskId]: [1, 0], [stranger.taskId]: [1, 0] }
  assert.deepEqual(await admit(keyed(root)), { ...child, duplicate: true })
  assert.deepEqual(
    await children(),
    { ...read, [child.taskId]: [1, 0] },
    'the attempt that has read it repeats its call',
  )
  const again = await attemptAgain()
  assert.deepEqual(await admit(keyed(again)), { ...child, duplicate: true })
  assert.deepEqual(await children(), { ...read, [child.taskId]: [2, 1] })
  await inbox.local.inbox.settle(again, done('bye'))
})
