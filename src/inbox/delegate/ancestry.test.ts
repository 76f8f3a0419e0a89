/** What a delegation gets from its parent: its place in the tree, its path and its limits, and when it is refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { childOf } from '../../../test/contracts/inbox/team.ts'
import { letterTo } from '../../../test/fakes/letters.ts'
import { hasCodeAndText } from '../../../test/harness/check-error.ts'
import { failure, limitsOf, openTeam, withLimits } from '../../../test/harness/delegations.ts'
import { done } from '../../../test/harness/inbox-on-clock.ts'
import type { Lease } from '../inbox.ts'

const HOUR_MS = 3600_000
const pathOf = ({ envelope }: Lease) => envelope.message.metadata?.['molecule_path']

test('TW-9 each delegation carries the first message, the path and what is left of the limits', async (t) => {
  const { ids, begin } = await openTeam(t, ['a', 'b', 'c', 'd', 'e'])
  const [a = '', b = '', c = '', d = '', e = ''] = ids
  const root = await begin(letterTo(a))
  const first = { root_task: root.taskId, root_caller: 'people', turns_max: 50 }
  const child = await begin(childOf(root, b))
  assert.deepEqual(limitsOf(child), { ...first, depth_left: 3, turns_left: 48 })
  assert.deepEqual(pathOf(child), [a])
  // A path that the agent gives is replaced, and a wider limit changes nothing.
  const wide = withLimits(childOf(child, c), { depth_left: 90, turns_left: 90, root_caller: 'x' })
  const grandchild = await begin(wide)
  assert.deepEqual(limitsOf(grandchild), { ...first, depth_left: 2, turns_left: 47 })
  assert.deepEqual(pathOf(grandchild), [a, b])
  const narrow = await begin(withLimits(childOf(root, d), { depth_left: 1, turns_left: 5 }))
  assert.deepEqual(limitsOf(narrow), { ...first, depth_left: 1, turns_left: 5 })
  const last = await begin(childOf(narrow, e))
  assert.deepEqual(limitsOf(last), { ...first, depth_left: 0, turns_left: 4 })
  await assert.rejects(
    begin(childOf(last, b)),
    hasCodeAndText('forbidden', /: this task may not be delegated further\n/),
  )
})

test('TW-9 limits of the first message hold for its tree: turns, depth and deadline', async (t) => {
  const { inbox, ids, begin } = await openTeam(t, ['a', 'b', 'c'])
  const [a = '', b = '', c = ''] = ids
  const deadline = new Date(inbox.clock.nowMs() + HOUR_MS).toISOString()
  const root = await begin(withLimits(letterTo(a), { turns_left: 4, depth_left: 2, deadline }))
  const first = { root_task: root.taskId, root_caller: 'people', turns_max: 4, deadline }
  const child = await begin(childOf(root, b))
  assert.deepEqual(limitsOf(child), { ...first, depth_left: 1, turns_left: 2 })
  const expiry = async ({ messageId }: Lease) => {
    const [row] = await inbox.sql('select expires_at - admitted_at as ms from messages where id = $1', messageId)
    return row?.['ms']
  }
  assert.equal(await expiry(child), HOUR_MS)
  const later = new Date(inbox.clock.nowMs() + 2 * HOUR_MS).toISOString()
  const grandchild = await begin(withLimits(childOf(child, c), { deadline: later }))
  assert.deepEqual(limitsOf(grandchild), { ...first, depth_left: 0, turns_left: 1 })
  const shorter = await begin({ ...childOf(root, c), expiresInMs: 1000 })
  assert.equal(await expiry(shorter), 1000)
  const narrow = await begin(withLimits(letterTo(a), { turns_left: 2 }))
  const only = await begin(childOf(narrow, b))
  assert.equal((limitsOf(only) as Record<string, unknown>)['turns_left'], 0)
  // The last moment before the deadline counts, the deadline itself does not.
  const other = await begin(letterTo(a))
  const due = (ms: number) => ({ deadline: new Date(inbox.clock.nowMs() + ms).toISOString() })
  assert.equal(await expiry(await begin(withLimits(childOf(other, c), due(1)))), 1)
  const over = withLimits(childOf(other, c), due(0))
  await assert.rejects(
    begin(over),
    hasCodeAndText('forbidden', new RegExp(`: its deadline ${due(0).deadline} is over\n`)),
  )
})

test('TW-3 the parent is the running message of the conversation, or else its last message; other conversations are none', async (t) => {
  const { inbox, ids, begin } = await openTeam(t, ['a', 'b'])
  const [a = '', b = ''] = ids
  const [other, stranger] = [await begin(letterTo(a)), await begin(letterTo(b))]
  const root = await begin(letterTo(a, { contextId: 'c' }))
  const waiting = await inbox.local.reception.admit(letterTo(a, { contextId: 'c' }))
  const parentOf = async (lease: Lease) => {
    const [row] = await inbox.sql('select parent_id, parent_epoch from messages where id = $1', lease.messageId)
    return [row?.['parent_id'], row?.['parent_epoch']]
  }
  assert.deepEqual(await parentOf(await begin(childOf(root, b))), [root.messageId, 1])
  await inbox.local.queues.pause(a, { now: false })
  await inbox.local.inbox.settle(root, done('bye'))
  // A process that outlives its turn: the last message of its conversation is the nearest to its parent.
  assert.deepEqual(await parentOf(await begin(childOf(root, b))), [waiting.taskId, 1])
  assert.deepEqual(await parentOf(await begin(childOf(other, b))), [other.messageId, 1])
  // A token of a conversation that is not kept any more, or of another workspace, has no parent. Its path stays.
  for (const unknown of [
    { ...root, conversationId: 'gone' },
    { ...stranger, workspaceId: a },
  ]) {
    const orphan = await begin(childOf(unknown, b))
    assert.deepEqual([await parentOf(orphan), pathOf(orphan), limitsOf(orphan)], [[null, null], [a], undefined])
  }
})

test('TW-3 a turn that was cancelled or has failed delegates nothing more', async (t) => {
  const { inbox, ids, begin } = await openTeam(t, ['a', 'b'])
  const [a = '', b = ''] = ids
  const [dead, canceled, stopping] = [await begin(letterTo(a)), await begin(letterTo(a)), await begin(letterTo(a))]
  await inbox.local.inbox.settle(dead, { type: 'dead', failure })
  await inbox.local.reception.cancel(canceled.taskId)
  await inbox.local.inbox.settle(canceled, { type: 'stopped' })
  await inbox.local.reception.cancel(stopping.taskId)
  const refused = (how: string) => hasCodeAndText('forbidden', new RegExp(`: the task that delegates ${how}$`))
  await assert.rejects(begin(childOf(dead, b)), refused('has failed'))
  for (const lease of [canceled, stopping]) await assert.rejects(begin(childOf(lease, b)), refused('was cancelled'))
  assert.deepEqual(await inbox.sql('select id from messages where workspace_id = $1', b), [])
})

test('TW-10 the money of a child is what every budget above it has left, and what its sender gives', async (t) => {
  const { inbox, ids, begin } = await openTeam(t, ['a', 'b', 'c'])
  const [a = '', b = '', c = ''] = ids
  const money = (lease: Lease) => {
    const { cost_left_usd: left, max_cost_usd: max, budgets } = limitsOf(lease) as Record<string, unknown>
    return [left, max, budgets]
  }
  const plain = await begin(letterTo(a))
  assert.deepEqual(money(await begin(childOf(plain, b))), [undefined, undefined, undefined])
  assert.deepEqual(money(await begin(withLimits(childOf(plain, b), { max_cost_usd: 0.5 }))), [0.5, 0.5, undefined])
  const root = await begin(withLimits(letterTo(a), { max_cost_usd: 1 }))
  const child = await begin(withLimits(childOf(root, b), { max_cost_usd: 2 }))
  assert.deepEqual(money(child), [1, 2, [root.messageId]])
  const plainChild = await begin(childOf(root, b))
  assert.deepEqual(money(await begin(childOf(plainChild, c))), [1, undefined, [root.messageId]])
  const usage = { durationMs: 1, costUsd: 0.75 }
  await inbox.local.inbox.settle(await begin(childOf(root, b)), { ...done('ok'), usage })
  assert.deepEqual(money(await begin(childOf(child, c))), [0.25, undefined, [root.messageId, child.messageId]])
  await inbox.sql(`update budgets set state = 'stopped' where id = $1`, child.messageId)
  const stopped = hasCodeAndText('forbidden', /: its budget is spent, and the owner stopped it\n/)
  await assert.rejects(begin(childOf(child, c)), stopped)
  assert.equal((await begin(childOf(root, c))).workspaceId, c, 'the budget of the root goes on')
})
