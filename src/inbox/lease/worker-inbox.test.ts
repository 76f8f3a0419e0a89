/** What workers of this process receive, and what the inbox remembers of the leases that they hold. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { letterTo } from '../../../test/fakes/letters.ts'
import { keyOf, openInboxRows, START_MS, WORKER } from '../../../test/harness/inbox-rows.ts'
import type { Value } from '../../store/store.ts'
import type { Directive, Outcome } from '../inbox.ts'

const SWEEP_MS = 5000
const DONE: Outcome = { type: 'done', finality: 'completed', parts: [{ text: 'hello' }], artifacts: [] }
const FAILURE = { code: 'exit', message: 'it broke' }

async function openWorkers(t: TestContext, load: Readonly<Record<string, Value>> = {}) {
  const rows = openInboxRows(t)
  await rows.workspace('w', { slots: 1, running: 1, waiting: 1, ...load })
  const stateOf = async (id: string) => {
    const [row] = await rows.select(
      `select m.state, m.interrupted, c.worker, c.lease_epoch as epoch
       from messages m join conversations c on c.id = m.conversation_id where m.id = $1`,
      id,
    )
    return { ...row }
  }
  return { ...rows, inbox: rows.local.inbox, stateOf }
}

/** `lease m`, `stop m` */
const named = (directives: readonly Directive[]) =>
  directives.map((each) => `${each.type} ${each.type === 'lease' ? each.lease.messageId : each.key.messageId}`)

const ready = { ready_at: START_MS }

test('IN-2 a worker that settles gets the next conversation with its free slot, and readers are told of both tasks', async (t) => {
  const { inbox, message, connect, finishWork, hints, checkpoints } = await openWorkers(t)
  await message('m', { state: 'leased' })
  const { received } = await connect()
  await message('next', ready)
  assert.equal(await inbox.settle(keyOf('m'), DONE), 'settled')
  assert.deepEqual([hints(), checkpoints], [['w', 'w'], ['settled']])
  await finishWork()
  assert.deepEqual(named(received), ['lease next'])
})

test('IN-2 the slot of a worker that is not here stays free for others', async (t) => {
  const { inbox, message, stateOf } = await openWorkers(t)
  await message('m', { state: 'leased' })
  await message('next', ready)
  await inbox.settle(keyOf('m'), DONE)
  assert.deepEqual(await stateOf('next'), { state: 'queued', interrupted: 0, worker: null, epoch: 1 })
})

test('IN-9 a turn that waits passes its slot to its worker; readers are told of both tasks', async (t) => {
  const { inbox, message, connect, finishWork, hints } = await openWorkers(t)
  await message('m', { state: 'leased' })
  const { received } = await connect()
  await message('next', ready)
  assert.equal(await inbox.suspend(keyOf('m')), 'held')
  assert.deepEqual(hints(), ['w', 'w'])
  await finishWork()
  assert.deepEqual(named(received), ['lease next'])
})

test('PL-24 a permission that a rule allows is answered at once', async (t) => {
  const { inbox, message, connect, finishWork, plant } = await openWorkers(t)
  await message('m', { state: 'leased' })
  await plant('permission_rules', {
    id: 'r',
    workspace_id: 'w',
    tool: 'Bash',
    scope: 'exact',
    pattern: 'ls',
    made_by: 'Ana',
    made_at: 1,
    made_principal: 'people',
    made_door: 'http',
  })
  const { received } = await connect()
  const ask = { id: 'a', kind: 'permission', tool: 'Bash', subject: 'ls', parts: [{ text: 'ls?' }] } as const
  assert.equal(await inbox.ask(keyOf('m'), ask), 'held')
  await finishWork()
  assert.deepEqual(received, [{ type: 'answer', key: keyOf('m'), askId: 'a', parts: [] }])
})

test('RT-6 a message that is tried again is leased again after its time', async (t) => {
  const { inbox, message, connect, finishWork, clock } = await openWorkers(t, { waiting: 0 })
  await message('m', { state: 'leased' })
  const { received } = await connect()
  const retry = { type: 'retry', failure: FAILURE, afterMs: 70, reason: 'failure', interrupted: false } as const
  await inbox.settle(keyOf('m'), retry)
  clock.advance(69)
  await finishWork()
  assert.deepEqual(received, [])
  clock.advance(1)
  await finishWork()
  assert.deepEqual(named(received), ['lease m'])
})

test('TW-3 a dead letter cancels its open delegations at once', async (t) => {
  const { inbox, message, finishWork, stateOf } = await openWorkers(t)
  await message('m', { state: 'leased' })
  const child = { parent_id: 'm', root_id: 'm', parent_epoch: 1, child_open: 1, delegation: '{}' }
  await message('child', child)
  await inbox.settle(keyOf('m'), { type: 'dead', failure: FAILURE })
  await finishWork()
  assert.equal((await stateOf('child'))['state'], 'canceled')
})

test('IN-3 a lease that its worker holds is not taken for a lost one; a lease that no worker knows of is released', async (t) => {
  const { inbox, message, connect, finishWork, clock, stateOf, hints } = await openWorkers(t, { slots: 2 })
  await message('known', ready)
  const { received } = await connect()
  assert.deepEqual(named(received), ['lease known'])
  hints()
  assert.equal(await inbox.begin(keyOf('known', { epoch: 2 })), 'held')
  assert.deepEqual(hints(), ['w'])
  await message('lost', { state: 'leased', begun: 0, ready_at: START_MS + 90_000 })
  for (let sweeps = 0; sweeps < 2; sweeps++) {
    assert.equal((await stateOf('lost'))['state'], 'leased', 'one sweep may meet an answer that is on its way')
    clock.advance(SWEEP_MS)
    await finishWork()
  }
  assert.deepEqual(await stateOf('known'), { state: 'leased', interrupted: 0, worker: WORKER, epoch: 2 })
  assert.deepEqual(await stateOf('lost'), { state: 'queued', interrupted: 0, worker: null, epoch: 1 })
})

test('IN-4 a lease that its worker did not take goes to another worker when it leaves, uninterrupted', async (t) => {
  const { inbox, message, connect, finishWork, stateOf } = await openWorkers(t, { slots: 2, running: 0, waiting: 2 })
  await message('taken', ready)
  await message('untaken', ready)
  const { signal } = new AbortController()
  const directives = inbox.leases({ id: 'host.9', workspaces: ['w'] }, signal)[Symbol.asyncIterator]()
  const { value } = await directives.next()
  assert.deepEqual(named(value === undefined ? [] : [value]), ['lease taken'])
  const { received } = await connect()
  assert.deepEqual([received, (await stateOf('untaken'))['worker']], [[], 'host.9'])
  await directives.return?.()
  await finishWork()
  assert.deepEqual(named(received), ['lease untaken'])
  assert.deepEqual(await stateOf('untaken'), { state: 'leased', interrupted: 0, worker: WORKER, epoch: 3 })
  assert.deepEqual((await stateOf('taken'))['worker'], 'host.9')
})

test('RE-3 a lease that could not be released in an outage is released later', async (t) => {
  const { inbox, message, connect, finishWork, clock, setOutage } = await openWorkers(t, { slots: 2, running: 0 })
  await message('taken', ready)
  await message('untaken', ready)
  const { signal } = new AbortController()
  const directives = inbox.leases({ id: WORKER, workspaces: ['w'] }, signal)[Symbol.asyncIterator]()
  await directives.next()
  setOutage(true)
  await directives.return?.()
  await finishWork()
  setOutage(false)
  const { received } = await connect()
  for (let sweeps = 0; sweeps < 2; sweeps++) {
    clock.advance(SWEEP_MS)
    await finishWork()
  }
  assert.deepEqual(named(received), ['lease untaken'])
})

test('a worker that left may come again, and gets nothing meanwhile', async (t) => {
  const { connect, local, stateOf, finishWork } = await openWorkers(t, { slots: 2, running: 0, waiting: 0 })
  const { leave, received } = await connect()
  await leave()
  const { taskId } = await local.reception.admit(letterTo('w'))
  await finishWork()
  assert.deepEqual([received, (await stateOf(taskId))['state']], [[], 'queued'])
  const again = await connect()
  assert.deepEqual(named(again.received), [`lease ${taskId}`])
})
