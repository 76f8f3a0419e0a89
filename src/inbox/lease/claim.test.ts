/** Claims: which workspaces and conversations are ready, in which order, and what a claim writes. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { letterTo, SENDER } from '../../../test/fakes/letters.ts'
import { openInboxRows, START_MS, WORKER } from '../../../test/harness/inbox-rows.ts'
import type { Value } from '../../store/store.ts'
import { type Claim, claimReady, findClaimableWorkspaces } from './claim.ts'

test('IN-2 hosted workspaces with a ready conversation and a free slot are found, the longest waiting first', async (t) => {
  const { workspace, message, write } = openInboxRows(t)
  const ready = async (id: string, load: Readonly<Record<string, Value>>, ...waitedMs: number[]) => {
    await workspace(id, { hosted: 1, slots: 2, running: 1, ...load })
    for (const [index, ms] of waitedMs.entries())
      await message(`${id}-${index}`, { workspace_id: id, ready_at: START_MS - ms })
  }
  await ready('now', {}, 0)
  await ready('second', {}, 5)
  await ready('first', {}, 1, 10)
  await ready('later', {}, -1)
  await ready('empty', {})
  await ready('full', { running: 2 }, 20)
  await ready('paused', { paused: 1 }, 20)
  await ready('of-a-bridge', { hosted: 0 }, 20)
  const find = (limit: number) => write(() => findClaimableWorkspaces(limit))
  assert.deepEqual(await find(9), ['first', 'second', 'now'])
  assert.deepEqual(await find(2), ['first', 'second'])
})

async function openClaims(t: TestContext, load: Readonly<Record<string, Value>> = {}) {
  const rows = openInboxRows(t)
  await rows.workspace('w', { slots: 3, running: 1, waiting: 9, ...load })
  await rows.workspace('other', { slots: 3 })
  await rows.bystanders()
  await rows.message('foreign', { workspace_id: 'other', ready_at: START_MS - 50 })
  let claims: Claim[] = []
  const claim = (...max: [number?]) =>
    rows.changes(async () => (claims = await rows.write(() => claimReady('w', WORKER, ...max))))
  return { ...rows, claim, leases: () => claims.map(({ lease }) => lease) }
}

const leaseOf = (id: string) => ({
  workspaceId: 'w',
  conversationId: `c-${id}`,
  messageId: id,
  epoch: 2,
  taskId: id,
  contextId: `context-c-${id}`,
  principal: 'people',
  sender: SENDER,
  idempotencyKey: `key-${id}`,
  envelope: letterTo('w', { messageId: id, text: `text of ${id}` }).envelope,
  failures: 0,
  losses: 0,
  interrupted: false,
  sessionRetried: false,
})
const leased = { lease_epoch: 2, worker: WORKER, lease_until: START_MS + 30_000, ready_at: null }
const event = (id: string, ...more: object[]) => ({
  task_id: id,
  message_id: id,
  at_ms: START_MS,
  delta: 0,
  items: [{ t: 'status', state: 'TASK_STATE_WORKING' }, ...more],
})

test('IN-2 a worker claims the oldest ready conversations up to the free slots, and a new attempt resets the reply', async (t) => {
  const { message, claim, leases } = await openClaims(t)
  await message('third', { ready_at: START_MS })
  await message('second', { ready_at: START_MS, appended: 3, asked: 1, session_retried: 1 })
  const parks = { parks: 1, parked_at: START_MS - 40, interrupted: 1, failures: 1, losses: 2 }
  await message('first', { ready_at: START_MS - 1, ...parks })
  assert.deepEqual(await claim(), {
    'workspace_load w': { running: 3, waiting: 7, seq: 2 },
    'conversations c-first': leased,
    'conversations c-second': leased,
    'tasks first': { state: 'TASK_STATE_WORKING' },
    'tasks second': { state: 'TASK_STATE_WORKING' },
    'messages first': { state: 'leased', leased_at: START_MS },
    'messages second': { state: 'leased', leased_at: START_MS, appended: 0, asked: 0 },
    'events w 1': event('first', { t: 'reset' }),
    'events w 2': event('second', { t: 'reset' }),
  })
  const parked = { times: 1, sinceMs: 40 }
  assert.deepEqual(
    leases().map((lease) => lease.parked),
    [parked, undefined],
  )
  assert.deepEqual(leases(), [
    { ...leaseOf('first'), failures: 1, losses: 2, interrupted: true, parked },
    { ...leaseOf('second'), sessionRetried: true },
  ])
})

test('IN-4 a claim in a hosted workspace begins the turn; the first attempt resets nothing', async (t) => {
  const { message, claim, leases } = await openClaims(t, { hosted: 1 })
  await message('a', { ready_at: START_MS - 1 })
  await message('b', { ready_at: START_MS - 1 })
  const changed = await claim(1)
  assert.deepEqual(changed['messages a'], { state: 'leased', begun: 1, leased_at: START_MS })
  assert.deepEqual(changed['workspace_load w'], { running: 2, waiting: 8, seq: 1 })
  assert.deepEqual(changed['events w 1'], event('a'))
  assert.deepEqual(leases(), [leaseOf('a')])
})

test('IN-2 the oldest unsettled message of a conversation is claimed, whatever was settled before it', async (t) => {
  const { message, claim, leases, write } = await openClaims(t)
  await message('one', { state: 'done' })
  for (const [id, n, state] of [
    ['two', 2, 'canceled'],
    ['four', 4, 'queued'],
    ['three', 3, 'queued'],
  ] as const)
    await message(id, { conversation_id: 'c-one', n, state })
  await write(function* () {
    const text = `update conversations set settled_n = 1, ready_at = ${START_MS} where id = 'c-one'`
    yield [{ text, values: [] }]
  })
  await claim()
  assert.deepEqual(
    leases().map(({ messageId }) => messageId),
    ['three'],
  )
})

test('PL-2 nothing is claimed in a paused workspace, in a full one, in one that is gone, or where nothing is ready', async (t) => {
  for (const load of [{ paused: 1 }, { running: 3 }, { running: 4 }]) {
    const { message, claim, leases } = await openClaims(t, load)
    await message('m', { ready_at: START_MS - 1 })
    assert.deepEqual([await claim(), leases()], [{}, []])
  }
  const { write, claim } = await openClaims(t)
  assert.deepEqual(await claim(), {})
  assert.deepEqual(await write(() => claimReady('gone', WORKER)), [])
})

test('one transaction claims at most 32 conversations', async (t) => {
  const { message, claim, leases } = await openClaims(t, { slots: 40, running: 0 })
  const ids = Array.from({ length: 33 }, (_, index) => `m${index}`)
  await Promise.all(ids.map((id) => message(id, { ready_at: START_MS - 1 })))
  await claim()
  assert.equal(leases().length, 32)
})
