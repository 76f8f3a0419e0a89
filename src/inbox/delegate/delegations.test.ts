/** Delegations of running turns: their order, their entry in the activity, and the slot of a turn that waits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { childOf } from '../../../test/contracts/inbox/team.ts'
import { letterTo } from '../../../test/fakes/letters.ts'
import { hasCodeAndText } from '../../../test/harness/check-error.ts'
import { openTeam } from '../../../test/harness/delegations.ts'
import { done, keyOf } from '../../../test/harness/inbox-on-clock.ts'
import { MoleculeError } from '../../errors.ts'
import type { Lease } from '../inbox.ts'

test('TW-3 a delegation is once in the activity of its parent, with the name of the workspace, and readers are told', async (t) => {
  const { inbox, ids, begin } = await openTeam(t, ['a', 'counter', 'singer'])
  const [a = '', b = '', c = ''] = ids
  const [root, other] = [await begin(letterTo(a)), await begin(letterTo(a))]
  await inbox.sql('delete from workspaces where id = $1', c)
  inbox.notified.length = 0
  const letter = childOf(root, b)
  const first = await inbox.local.reception.admit(letter)
  assert.deepEqual(inbox.notified.sort(), [a, b].sort())
  inbox.notified.length = 0
  await inbox.local.reception.admit(letter)
  assert.deepEqual(inbox.notified, [])
  const second = await inbox.local.reception.admit(childOf(root, c))
  const { entries } = await inbox.local.activity.read({ workspaceId: a, sinceSeq: 0, type: 'delegated', limit: 10 })
  assert.deepEqual(
    entries.map(({ taskId, name, subject }) => [taskId, name, subject]),
    [
      [root.taskId, 'counter', first.taskId],
      [root.taskId, c, second.taskId],
    ],
  )
  const rows = await inbox.sql('select id, has_children from messages where workspace_id = $1 order by id', a)
  assert.deepEqual(
    rows.map((row) => [row['id'], row['has_children']]),
    [
      [root.messageId, 1],
      [other.messageId, null],
    ],
  )
})

test('TW-3 a delegation that could not be written into the activity of its parent is admitted all the same', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['a', 'b'])
  const root = await begin(letterTo(ids[0] ?? ''))
  let writes = 0
  inbox.failWrites(() => (++writes === 2 ? new MoleculeError('store_unavailable', 'the disk is away') : undefined))
  const { taskId } = await inbox.local.reception.admit(childOf(root, ids[1] ?? ''))
  assert.deepEqual(
    inbox.warnings.map(({ fields, message }) => [fields['taskId'], message]),
    [[taskId, 'a delegation is missing in the activity of its parent']],
  )
  assert.equal((await workers[1]?.lease())?.taskId, taskId)
})

test('TW-9 delegations of one tree at the same moment do not pass its limit together, and a refused one blocks none', async (t) => {
  const { inbox, ids, begin } = await openTeam(t, ['a', 'b'])
  const [a = '', b = ''] = ids
  const [root, other] = [await begin(letterTo(a)), await begin(letterTo(a))]
  const letters = [...Array.from({ length: 12 }, () => childOf(root, b)), childOf(other, b)]
  const results = await Promise.allSettled(letters.map(inbox.local.reception.admit))
  const expected = [...Array(10).fill('fulfilled'), 'rejected', 'rejected', 'fulfilled']
  assert.deepEqual(
    results.map(({ status }) => status),
    expected,
  )
  await assert.rejects(
    inbox.local.reception.admit(childOf(root, b)),
    hasCodeAndText('forbidden', /10 delegations are open/),
  )
})

test('TW-9 a delegation that comes while an earlier one is admitted waits for it, also after the first has ended', async (t) => {
  const { inbox, ids, begin } = await openTeam(t, ['a', 'b'])
  const [a = '', b = ''] = ids
  const root = await begin(letterTo(a))
  const { admit } = inbox.local.reception
  for (let count = 0; count < 8; count++) await admit(childOf(root, b))
  const [ninth, tenth] = [admit(childOf(root, b)), admit(childOf(root, b))]
  await ninth
  const results = await Promise.allSettled([tenth, admit(childOf(root, b))])
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  )
})

const isWaiting = (lease: Lease, waiting: boolean) => ({ type: 'waiting', key: keyOf(lease), waiting })

test('IN-9 a turn that waits for several children gives up its slot once, and takes it back after the last', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['a', 'b'], 1)
  const [a = ''] = ids
  const root = await begin(letterTo(a))
  const gates = [Promise.withResolvers<string>(), Promise.withResolvers<string>()] as const
  const wait = (gate: (typeof gates)[number]) => inbox.local.reception.whileWaiting(root, () => gate.promise)
  const waits = [wait(gates[0])]
  assert.deepEqual(await workers[0]?.take(), [isWaiting(root, true)])
  assert.deepEqual(await inbox.load(a), { running: 0, waiting: 0, suspended: 1 })
  waits.push(wait(gates[1]))
  assert.deepEqual(await workers[0]?.take(), [isWaiting(root, true)])
  assert.deepEqual(await inbox.load(a), { running: 0, waiting: 0, suspended: 1 })
  gates[0].resolve('one')
  assert.equal(await waits[0], 'one')
  assert.deepEqual(await workers[0]?.take(), [])
  assert.deepEqual(await inbox.load(a), { running: 0, waiting: 0, suspended: 1 })
  gates[1].resolve('two')
  assert.equal(await waits[1], 'two')
  assert.deepEqual(await workers[0]?.take(), [isWaiting(root, false)])
  assert.deepEqual(await inbox.load(a), { running: 1, waiting: 0, suspended: 0 })
  // It waits again: nothing of the first wait is left. Work that fails ends the wait too.
  const failed = inbox.local.reception.whileWaiting(root, async () => {
    assert.deepEqual(await inbox.load(a), { running: 0, waiting: 0, suspended: 1 })
    throw new Error('no answer')
  })
  await assert.rejects(failed, /no answer/)
  assert.deepEqual(await workers[0]?.take(), [isWaiting(root, true), isWaiting(root, false)])
  assert.deepEqual(await inbox.load(a), { running: 1, waiting: 0, suspended: 0 })
  await inbox.local.inbox.settle(root, done('bye'))
  // A process that outlives its turn has no slot to give up.
  assert.equal(await inbox.local.reception.whileWaiting(root, async () => 'late'), 'late')
  assert.deepEqual(await workers[0]?.take(), [])
})

test('IN-9 eight turns of a workspace may wait; a further wait is refused for 5 s, and leaves nothing behind', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['a', 'b'])
  const [a = ''] = ids
  const turns: Lease[] = []
  for (let count = 0; count < 9; count++) turns.push(await begin(letterTo(a)))
  const gate = Promise.withResolvers<void>()
  const waits = turns.slice(0, 8).map((turn) => inbox.local.reception.whileWaiting(turn, () => gate.promise))
  await workers[0]?.take()
  const last = turns[8] as Lease
  const isRefused = (error: unknown) => {
    hasCodeAndText(
      'queue_full',
      /^too many turns of this workspace wait already; delegate without waiting, or later$/,
    )(error)
    const { retryable, details } = error as MoleculeError
    assert.deepEqual({ retryable, details }, { retryable: true, details: { retryAfterMs: 5000 } })
    return true
  }
  const never = () => assert.fail('the work must not begin')
  await assert.rejects(inbox.local.reception.whileWaiting(last, never), isRefused)
  await assert.rejects(inbox.local.reception.whileWaiting(last, never), isRefused)
  assert.deepEqual(await workers[0]?.take(), [])
  assert.deepEqual(await inbox.load(a), { running: 1, waiting: 0, suspended: 8 })
  gate.resolve()
  await Promise.all(waits)
  assert.equal(await inbox.local.reception.whileWaiting(last, async () => 'now'), 'now')
  assert.deepEqual(await inbox.load(a), { running: 9, waiting: 0, suspended: 0 })
})

test('IN-9 a wait that cannot be stored is an error, and a slot that cannot be taken back is only logged', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['a', 'b'])
  const [a = ''] = ids
  const root = await begin(letterTo(a))
  const broken = new MoleculeError('store_unavailable', 'the disk is away')
  const never = () => assert.fail('the work must not begin')
  inbox.failWrites(() => broken)
  await assert.rejects(inbox.local.reception.whileWaiting(root, never), broken)
  assert.deepEqual(
    inbox.warnings.map(({ fields, message }) => [fields['messageId'], message]),
    [[root.messageId, 'a waiting turn could not take its slot back']],
  )
  inbox.failWrites(() => undefined)
  const work = async () => {
    inbox.failWrites(() => broken)
    return 'done'
  }
  assert.equal(await inbox.local.reception.whileWaiting(root, work), 'done')
  inbox.failWrites(() => undefined)
  assert.equal(inbox.warnings.length, 2)
  assert.deepEqual(await workers[0]?.take(), [isWaiting(root, true), isWaiting(root, false)])
})
