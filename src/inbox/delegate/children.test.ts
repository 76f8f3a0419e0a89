/** What happens to children when their parent ends: which are cancelled, which are reported, and what is tried again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { childOf, textOf } from '../../../test/contracts/inbox/team.ts'
import { letterTo } from '../../../test/fakes/letters.ts'
import { failure, openTeam, retry } from '../../../test/harness/delegations.ts'
import { done, keyOf, leasesIn } from '../../../test/harness/inbox-on-clock.ts'
import { MoleculeError } from '../../errors.ts'
import type { Lease } from '../inbox.ts'

const SWEEP_MS = 5000
const NAMES = ['a', 'b', 'c', 'd', 'e']

test('TW-3 a cancel reaches every level of a tree before it answers, and stops each running turn with the reason', async (t) => {
  const { inbox, ids, workers, begin, states } = await openTeam(t, NAMES)
  const root = await begin(letterTo(ids[0] ?? ''))
  const chain: Lease[] = []
  for (const id of ids.slice(1)) chain.push(await begin(childOf(chain.at(-1) ?? root, id)))
  const other = await begin(childOf(await begin(letterTo(ids[0] ?? '')), ids[1] ?? ''))
  inbox.notified.length = 0
  await inbox.local.reception.cancel(root.taskId)
  const tasks = chain.map(({ taskId }) => taskId)
  assert.deepEqual(await states(...tasks, other.taskId), [
    ...tasks.map(() => 'TASK_STATE_CANCELED'),
    'TASK_STATE_WORKING',
  ])
  assert.deepEqual(inbox.notified, ids)
  for (const [index, lease] of [root, ...chain].entries()) {
    assert.deepEqual(await workers[index]?.take(), [{ type: 'stop', key: keyOf(lease) }])
  }
  const [stored] = await inbox.sql('select status_message from tasks where id = $1', tasks[0] ?? '')
  assert.deepEqual(JSON.parse(String(stored?.['status_message'])), {
    parts: [{ text: 'the task that delegated it was cancelled or has failed' }],
    code: 'canceled',
  })
})

test('TW-3 the children of a message that failed for good are cancelled; children that have ended stay as they are', async (t) => {
  const { inbox, ids, begin, states, workers } = await openTeam(t, NAMES)
  const [a = '', b = ''] = ids
  const [dead, alive] = [await begin(letterTo(a)), await begin(letterTo(a))]
  const ended = await begin(childOf(dead, b))
  const running = await begin(childOf(dead, b))
  const other = await begin(childOf(alive, b))
  await inbox.local.inbox.settle(ended, done('7'))
  await inbox.local.inbox.settle(dead, { type: 'dead', failure })
  await inbox.pass()
  const expected = ['TASK_STATE_COMPLETED', 'TASK_STATE_CANCELED', 'TASK_STATE_WORKING']
  assert.deepEqual(await states(ended.taskId, running.taskId, other.taskId), expected)
  assert.deepEqual(await workers[1]?.take(), [{ type: 'stop', key: keyOf(running) }])
  // A turn that is stopping already is not cancelled again: only the sweep repeats the stop.
  inbox.notified.length = 0
  await inbox.local.children.lookAfter()
  assert.deepEqual([inbox.notified, await workers[1]?.take()], [[], []])
  const open = async () => (await inbox.sql('select id from messages where child_open = 1')).map((row) => row['id'])
  assert.deepEqual(await open(), [running.messageId, other.messageId])
  await inbox.local.inbox.settle(running, { type: 'stopped' })
  await inbox.pass()
  assert.deepEqual(await open(), [other.messageId])
})

test('TW-3 a cancelled child makes room for the next message of its conversation at once', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['a', 'b'])
  const [a = '', b = ''] = ids
  const root = await begin(letterTo(a))
  const child = await begin(childOf(root, b))
  const said = { parts: [{ text: 'later' }] }
  const parked = { type: 'released', interrupted: false, parked: { afterMs: 3600_000, said } } as const
  await inbox.local.inbox.settle(child, parked)
  const { principal } = childOf(root, b)
  const behind = await inbox.local.reception.admit(letterTo(b, { principal, contextId: child.contextId }))
  assert.deepEqual(await workers[1]?.take(), [])
  await inbox.local.inbox.settle(root, { type: 'dead', failure })
  const leases = leasesIn((await workers[1]?.take()) ?? [])
  assert.deepEqual(
    leases.map(({ taskId }) => taskId),
    [behind.taskId],
  )
})

test('TW-3 results are reported in the order of their ends, once, when the parent is done and its task has no open message', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['a', 'b'])
  const [a = '', b = ''] = ids
  const root = await begin(letterTo(a))
  const children: Lease[] = []
  for (const text of ['one', 'two', 'three']) children.push(await begin(childOf(root, b, { text })))
  const [one, two, three] = children as [Lease, Lease, Lease]
  for (const child of [two, one]) {
    inbox.clock.advance(1)
    await inbox.local.inbox.settle(child, done(textOf(child)))
  }
  await inbox.local.reception.admit(childOf(root, b, { text: 'more', taskId: three.taskId }))
  await inbox.local.inbox.settle(three, done('3'))
  const more = await workers[1]?.lease()
  await inbox.local.children.lookAfter()
  assert.deepEqual(await workers[0]?.take(), [], 'the parent runs')
  await inbox.local.inbox.settle(root, done('bye'))
  const asked = async () => {
    const lease = (await workers[0]?.lease()) as Lease
    await inbox.local.inbox.settle(lease, done('thanks'))
    return /Your task was: (.*)\n/.exec(textOf(lease))?.[1]
  }
  assert.deepEqual([await asked(), await asked()], ['two', 'one'])
  assert.deepEqual(await workers[0]?.take(), [], 'the third task has an open message')
  await inbox.local.inbox.settle(more as Lease, done('4'))
  await inbox.pass()
  assert.deepEqual([await asked(), await asked()].sort(), ['more', 'three'])
  assert.deepEqual(await inbox.sql('select id from messages where child_open = 1'), [])
  await inbox.pass(SWEEP_MS)
  assert.deepEqual(await workers[0]?.take(), [])
})

test('TW-3 while its parent waits for the next attempt a child is neither cancelled nor reported', async (t) => {
  const { inbox, ids, begin, workers, states } = await openTeam(t, ['a', 'b'])
  const [a = '', b = ''] = ids
  const root = await begin(letterTo(a))
  const [ended, running] = [await begin(childOf(root, b)), await begin(childOf(root, b))]
  await inbox.local.inbox.settle(ended, done('7'))
  await inbox.local.inbox.settle(root, { ...retry, afterMs: 60_000 })
  await inbox.pass(SWEEP_MS)
  assert.deepEqual(await workers[0]?.take(), [])
  assert.deepEqual(await states(ended.taskId, running.taskId), ['TASK_STATE_COMPLETED', 'TASK_STATE_WORKING'])
  const open = await inbox.sql('select id from messages where child_open = 1')
  assert.equal(open.length, 2)
})

test('TW-3 a child whose parent is deleted is closed without a report', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['a', 'b'])
  const root = await begin(letterTo(ids[0] ?? ''))
  const child = await begin(childOf(root, ids[1] ?? ''))
  await inbox.local.inbox.settle(root, done('bye'))
  await inbox.sql('delete from messages where id = $1', root.messageId)
  await inbox.local.inbox.settle(child, done('7'))
  await inbox.pass()
  assert.deepEqual(await workers[0]?.take(), [])
  assert.deepEqual(await inbox.sql('select id from messages where child_open = 1'), [])
  assert.deepEqual(inbox.warnings, [])
})

test('TW-3 a child whose parent lived in a deleted workspace is closed; another failure is logged and tried again', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['a', 'b'])
  const [a = '', b = ''] = ids
  const root = await begin(letterTo(a))
  const [first, second] = [await begin(childOf(root, b)), await begin(childOf(root, b))]
  await inbox.local.inbox.settle(root, done('bye'))
  inbox.failWrites(() => undefined)
  await inbox.sql(`update workspace_load set waiting = 1000 where workspace_id = $1`, a)
  await inbox.local.inbox.settle(first, done('7'))
  await inbox.pass()
  assert.deepEqual(
    inbox.warnings.map(({ fields, message }) => [fields['messageId'], (fields['err'] as MoleculeError).code, message]),
    [[first.messageId, 'queue_full', 'the result of a delegation could not be reported; it will be tried again']],
  )
  await inbox.sql('delete from workspace_load where workspace_id = $1', a)
  await inbox.local.inbox.settle(second, done('8'))
  await inbox.pass()
  assert.equal(inbox.warnings.length, 1)
  assert.deepEqual(await inbox.sql('select id from messages where child_open = 1'), [])
  assert.deepEqual(await workers[0]?.take(), [])
})

test('TW-3 a cancel that fails is logged and tried again with the next sweep; a task that has just ended is left alone', async (t) => {
  const { inbox, ids, begin, states } = await openTeam(t, ['a', 'b'])
  const [a = '', b = ''] = ids
  const root = await begin(letterTo(a))
  const [child, ended] = [await begin(childOf(root, b)), await begin(childOf(root, b))]
  await inbox.sql(`update tasks set state = 'TASK_STATE_REJECTED' where id = $1`, ended.taskId)
  await inbox.sql(`update messages set state = 'canceled', settled_at = now_ms() where id = $1`, root.messageId)
  inbox.failWrites(() => new MoleculeError('store_unavailable', 'the disk is away'))
  await inbox.local.children.lookAfter()
  assert.deepEqual(
    inbox.warnings.map(({ fields, message }) => [fields['taskId'], message]),
    [child, ended].map(({ taskId }) => [taskId, 'a delegated task could not be cancelled; it will be tried again']),
  )
  inbox.failWrites(() => undefined)
  inbox.warnings.length = 0
  await inbox.pass(SWEEP_MS)
  assert.deepEqual(await states(child.taskId, ended.taskId), ['TASK_STATE_CANCELED', 'TASK_STATE_REJECTED'])
  assert.deepEqual(inbox.warnings, [])
})

test('TW-3 a look that finds nothing costs two reads, and one that comes meanwhile looks again after it', async (t) => {
  const { inbox, ids, begin } = await openTeam(t, ['a', 'b'])
  const [a = '', b = ''] = ids
  inbox.worker('hosted')
  await begin(childOf(await begin(letterTo(a)), b))
  await inbox.pass()
  const before = inbox.reads()
  await inbox.local.children.lookAfter()
  await inbox.pass()
  assert.equal(inbox.reads() - before, 2)
  for (let round = 0; round < 2; round++) {
    const ended: string[] = []
    const first = inbox.local.children.lookAfter().then(() => ended.push('first'))
    const second = inbox.local.children.lookAfter().then(() => ended.push('second'))
    await Promise.all([first, second])
    assert.deepEqual(ended, ['first', 'second'])
  }
})

test('TW-3 children that could not be looked after at once are found by the sweep, and the log says so', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['a', 'b'])
  const root = await begin(letterTo(ids[0] ?? ''))
  const child = await begin(childOf(root, ids[1] ?? ''))
  await inbox.local.inbox.settle(root, done('bye'))
  let writes = 0
  inbox.failWrites(() => (++writes > 1 ? new MoleculeError('store_unavailable', 'the disk is away') : undefined))
  await inbox.local.inbox.settle(child, done('7'))
  await inbox.pass()
  assert.equal(inbox.warnings.length, 1)
  inbox.failWrites(() => undefined)
  await inbox.pass(SWEEP_MS)
  assert.match(textOf((await workers[0]?.lease()) as Lease), /\n\n7$/)
})
