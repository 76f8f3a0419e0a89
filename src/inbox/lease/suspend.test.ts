/** Waiting turns, row by row: a turn gives up its slot, the next conversation gets it, and the turn takes one back. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { keyOf, openInboxRows, START_MS } from '../../../test/harness/inbox-rows.ts'
import type { Value } from '../../store/store.ts'
import type { LeaseKey } from '../inbox.ts'
import { resume, type SuspendOutput, suspend } from './suspend.ts'

/** The worker of the turns that are not of the test takes no more. */
const OWN_WORKER = 'host.2'
const own = { state: 'leased', worker: OWN_WORKER }

async function openSuspend(t: TestContext, load: Readonly<Record<string, Value>> = {}) {
  const rows = openInboxRows(t)
  await rows.workspace('w', { slots: 2, running: 2, waiting: 1, suspended: 7, ...load })
  await rows.workspace('other', { suspended: 8 })
  await rows.message('first', { state: 'leased', lease_epoch: 7 })
  await rows.bystanders()
  await rows.message('m', own)
  let output: SuspendOutput | undefined
  const accepts = (worker: string) => worker === OWN_WORKER
  const suspended = (key: LeaseKey) =>
    rows.changes(async () => (output = await rows.write(() => suspend(key, accepts))))
  let answer: string | undefined
  const resumed = (key: LeaseKey) => rows.changes(async () => (answer = await rows.write(() => resume(key))))
  return { ...rows, suspended, resumed, output: () => output, answer: () => answer }
}

const nothing = (answer: string) => ({ answer, next: undefined })

test('IN-9 a turn that waits gives its slot to the next ready conversation', async (t) => {
  const { message, suspended, output } = await openSuspend(t)
  await message('next', { ready_at: START_MS })
  assert.deepEqual(await suspended(keyOf('m')), {
    'workspace_load w': { suspended: 8, waiting: 0, seq: 1 },
    'conversations c-next': {
      lease_epoch: 2,
      worker: OWN_WORKER,
      lease_until: START_MS + 30_000,
      ready_at: null,
    },
    'tasks next': { state: 'TASK_STATE_WORKING' },
    'messages m': { suspended: 1 },
    'messages next': { state: 'leased', leased_at: START_MS },
    'events w 1': {
      task_id: 'next',
      message_id: 'next',
      at_ms: START_MS,
      delta: 0,
      items: [{ t: 'status', state: 'TASK_STATE_WORKING' }],
    },
  })
  assert.deepEqual([output()?.answer, output()?.next?.worker], ['held', OWN_WORKER])
  assert.equal(output()?.next?.claim.lease.messageId, 'next')
})

test('IN-9 the turn that gets the slot in a hosted workspace has begun', async (t) => {
  const { message, suspended } = await openSuspend(t, { hosted: 1 })
  await message('next', { ready_at: START_MS })
  const changed = await suspended(keyOf('m'))
  assert.deepEqual(changed['messages next'], { state: 'leased', begun: 1, leased_at: START_MS })
})

test('IN-9 a slot is only given up where nothing is ready, over the limit, or where the worker takes no more', async (t) => {
  for (const [load, row, ready] of [
    [{}, own, START_MS + 1],
    [{ slots: 1 }, own, START_MS],
    [{}, { state: 'leased' }, START_MS],
  ] as const) {
    const { message, suspended, output } = await openSuspend(t, load)
    await message('next', { ready_at: ready })
    await message('turn', row)
    assert.deepEqual(await suspended(keyOf('turn')), {
      'workspace_load w': { running: 1, suspended: 8 },
      'messages turn': { suspended: 1 },
    })
    assert.deepEqual(output(), nothing('held'))
  }
})

test('IN-9 a ninth waiting turn is refused; a cancelled turn must stop; a turn that waits already is held', async (t) => {
  const full = await openSuspend(t, { suspended: 8 })
  assert.deepEqual(await full.suspended(keyOf('m')), {})
  assert.deepEqual(full.output(), nothing('refused'))
  await full.message('waiting', { ...own, suspended: 1 })
  assert.deepEqual(await full.suspended(keyOf('waiting')), {})
  assert.deepEqual(full.output(), nothing('held'))
  assert.deepEqual(await full.suspended(keyOf('w-stopping')), {})
  assert.deepEqual(full.output(), nothing('stop'))
})

test('IN-3 a lease with another epoch, of a message that does not run, or of a workspace that is gone is stale', async (t) => {
  const { suspended, resumed, output, answer, message } = await openSuspend(t)
  await message('lonely', { ...own, workspace_id: 'gone' })
  for (const key of [
    keyOf('m', { epoch: 2 }),
    keyOf('w-queued'),
    keyOf('w-done'),
    keyOf('none'),
    keyOf('lonely', { workspaceId: 'gone' }),
  ]) {
    assert.deepEqual(await suspended(key), {})
    assert.deepEqual(output(), nothing('stale'))
    assert.deepEqual(await resumed(key), {})
    assert.equal(answer(), 'stale')
  }
})

test('IN-9 a turn that waited takes a slot back, over the limit if need be, once', async (t) => {
  const { resumed, answer, message } = await openSuspend(t)
  await message('waiting', { ...own, suspended: 1 })
  await message('stopped', { ...own, state: 'stopping', suspended: 1 })
  assert.deepEqual(await resumed(keyOf('waiting')), {
    'workspace_load w': { running: 3, suspended: 6 },
    'messages waiting': { suspended: 0 },
  })
  assert.equal(answer(), 'held')
  assert.deepEqual(await resumed(keyOf('waiting')), {})
  assert.equal(answer(), 'held')
  assert.deepEqual((await resumed(keyOf('stopped')))['messages stopped'], { suspended: 0 })
  assert.equal(answer(), 'stop')
})
