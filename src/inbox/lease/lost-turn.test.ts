/** Turns whose worker is gone: after a restart of the host, and when their lease has run out. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Changes, openInboxRows, START_MS, WORKER } from '../../../test/harness/inbox-rows.ts'
import type { Value } from '../../store/store.ts'
import type { Claim } from './claim.ts'
import { findLapsed, freeLapsed, type LapsedLease, takeLapsed } from './takeover.ts'

const FREE = { worker: null, lease_until: null }
const PLANTED_MS = START_MS + 60_000
const lapsed = { lease_until: START_MS - 1 }

async function openLost(t: TestContext, load: Readonly<Record<string, Value>> = {}) {
  const rows = openInboxRows(t)
  await rows.workspace('w', { running: 5, waiting: 5, ...load })
  await rows.workspace('other', { hosted: 1 })
  const ask = (messageId: string, row: Readonly<Record<string, Value>>) =>
    rows.plant('asks', {
      message_id: messageId,
      workspace_id: 'w',
      task_id: messageId,
      epoch: 1,
      question: '[]',
      asked_at: START_MS,
      expires_at: START_MS,
      ...row,
    })
  /** A turn that asked twice: one ask is open, one was answered. */
  const asking = async (id: string, row: Readonly<Record<string, Value>>) => {
    await rows.message(id, { asked: 1, ...row })
    await rows.message(`answer-${id}`, { task_id: id, conversation_id: `c-${id}`, n: 2, state: 'answer' })
    await ask(id, { id: 'open', state: 'open' })
    await ask(id, { id: 'answered', state: 'answered', answer_message_id: `answer-${id}` })
  }
  /** Turns of other hosts, one of them with a name that only begins alike. */
  const others = async () => {
    await rows.message('other-host', { state: 'leased', worker: 'hostile.1' })
    await rows.message('other-stop', { state: 'stopping', worker: 'far.1' })
    await rows.message('waits')
    await rows.message('finished', { state: 'done' })
  }
  let lost: number | undefined
  const recovered = () => rows.changes(async () => (lost = await rows.local.recover()))
  return { ...rows, asking, others, recovered, lost: () => lost }
}

test('IN-4 after a restart a turn that had begun counts as one loss, gives up its slot, and its answer waits again', async (t) => {
  const { others, asking, message, recovered, lost } = await openLost(t)
  await others()
  await asking('m', { state: 'leased', losses: 1, suspended: 1 })
  await message('quick', { state: 'leased', losses: 3 })
  assert.deepEqual(await recovered(), {
    'workspace_load w': { running: 4, suspended: -1, waiting: 8 },
    'conversations c-m': { ...FREE, ready_at: PLANTED_MS },
    'conversations c-quick': { ...FREE, ready_at: PLANTED_MS },
    'messages m': { state: 'queued', losses: 2, interrupted: 1, suspended: 0 },
    'messages quick': { state: 'queued', losses: 4, interrupted: 1 },
    'messages answer-m': { state: 'queued', settled_at: null },
    'asks m 1 open': { state: 'void' },
    'asks m 1 answered': { state: 'void' },
  })
  assert.equal(lost(), 2)
})

test('CN-4 a turn that had not begun runs again and costs nothing', async (t) => {
  const { others, message, recovered, lost } = await openLost(t)
  await others()
  await message('m', { state: 'leased', begun: 0, suspended: 1 })
  assert.deepEqual(await recovered(), {
    'workspace_load w': { suspended: -1, waiting: 6 },
    'conversations c-m': { ...FREE, ready_at: PLANTED_MS },
    'messages m': { state: 'queued', suspended: 0 },
  })
  assert.equal(lost(), 1)
})

test('IN-8 a cancelled turn ends with its worker; its answer does not start it again', async (t) => {
  const { asking, recovered } = await openLost(t)
  await asking('m', { state: 'stopping', suspended: 1 })
  assert.deepEqual(await recovered(), {
    'workspace_load w': { suspended: -1 },
    'conversations c-m': FREE,
    'messages m': { state: 'canceled', outcome: 'stopped', suspended: 0, settled_at: START_MS },
    'asks m 1 open': { state: 'void' },
  })
})

const DEAD = { state: 'dead', outcome: 'dead', settled_at: START_MS }
const STATUS = { parts: [{ text: 'the worker was lost 5 times while running this message' }], code: 'worker_lost' }
const deadTask = (id: string): Changes => ({
  [`tasks ${id}`]: { state: 'TASK_STATE_FAILED', status_message: STATUS },
  'events w 1': {
    task_id: id,
    message_id: id,
    at_ms: START_MS,
    delta: 0,
    items: [{ t: 'status', state: 'TASK_STATE_FAILED', ...STATUS }],
  },
})

test('IN-4 the fifth loss makes a dead letter of the message, and of the others of its task', async (t) => {
  const { others, message, recovered, lost } = await openLost(t)
  await others()
  await message('m', { state: 'leased', losses: 4, suspended: 1 })
  await message('m2', { task_id: 'm', conversation_id: 'c-m', n: 2 })
  assert.deepEqual(await recovered(), {
    'workspace_load w': { suspended: -1, waiting: 4, seq: 1 },
    'conversations c-m': FREE,
    'messages m': { ...DEAD, losses: 5, suspended: 0 },
    'messages m2': DEAD,
    ...deadTask('m'),
  })
  assert.equal(lost(), 1)
})

test('IN-3 leases that ran out are found for the workers of this process, the longest silent first', async (t) => {
  const { workspace, message, write } = await openLost(t)
  await workspace('paused', { hosted: 1, paused: 1 })
  await message('named', { state: 'leased', lease_until: START_MS - 2, worker: 'far.1' })
  await message('hosted', { workspace_id: 'other', state: 'leased', lease_until: START_MS - 3 })
  await message('paused', { workspace_id: 'paused', state: 'leased', ...lapsed })
  await message('paused-stop', { workspace_id: 'paused', state: 'stopping', ...lapsed })
  await message('renewed', { workspace_id: 'other', state: 'leased' })
  await message('queued', { workspace_id: 'other' })
  await message('done', { workspace_id: 'other', state: 'done' })
  const find = (...names: string[]) => write(() => findLapsed(names))
  const found = (id: string, workspaceId: string, more: Partial<LapsedLease>) => ({
    workspaceId,
    conversationId: `c-${id}`,
    hosted: true,
    worker: WORKER,
    stopping: false,
    ...more,
  })
  const hosted = found('hosted', 'other', {})
  const named = found('named', 'w', { hosted: false, worker: 'far.1' })
  const stopping = found('paused-stop', 'paused', { stopping: true })
  assert.deepEqual(await find(), [hosted, stopping])
  assert.deepEqual(await find('none', 'w'), [hosted, named, stopping])
})

test('one sweep takes over at most 50 leases', async (t) => {
  const { message, write } = await openLost(t)
  const ids = Array.from({ length: 51 }, (_, index) => `m${index}`)
  await Promise.all(ids.map((id) => message(id, { state: 'leased', ...lapsed })))
  assert.equal((await write(() => findLapsed(['w']))).length, 50)
})

async function openTakeover(t: TestContext) {
  const rows = await openLost(t)
  await rows.others()
  await rows.message('another', { state: 'leased', ...lapsed })
  await rows.message('another-stop', { state: 'stopping', ...lapsed })
  const lease = (id: string, hosted: boolean): LapsedLease => ({
    workspaceId: 'w',
    conversationId: `c-${id}`,
    hosted,
    worker: WORKER,
    stopping: false,
  })
  let claim: Claim | undefined
  const taken = (id: string, hosted = false) =>
    rows.changes(async () => (claim = await rows.write(() => takeLapsed(lease(id, hosted), 'host.2'))))
  const freed = (id: string) => rows.changes(() => rows.write(() => freeLapsed(lease(id, false))))
  return { ...rows, taken, freed, claim: () => claim }
}

const takenConversation = { lease_epoch: 2, worker: 'host.2', lease_until: START_MS + 30_000 }

test('IN-3 a takeover counts one loss, raises the epoch, resets the reply, and takes the slot back', async (t) => {
  const { asking, taken, claim } = await openTakeover(t)
  await asking('m', { state: 'leased', losses: 1, suspended: 1, ...lapsed })
  assert.deepEqual(await taken('m'), {
    'workspace_load w': { running: 6, suspended: -1, waiting: 6, seq: 1 },
    'conversations c-m': takenConversation,
    'messages m': { losses: 2, interrupted: 1, suspended: 0, begun: 0, leased_at: START_MS, asked: 0 },
    'messages answer-m': { state: 'queued', settled_at: null },
    'asks m 1 open': { state: 'void' },
    'asks m 1 answered': { state: 'void' },
    'events w 1': {
      task_id: 'm',
      message_id: 'm',
      at_ms: START_MS,
      delta: 0,
      items: [{ t: 'status', state: 'TASK_STATE_WORKING' }, { t: 'reset' }],
    },
  })
  const { lease } = claim() as Claim
  assert.deepEqual([lease.messageId, lease.epoch, lease.losses, lease.interrupted], ['m', 2, 2, true])
})

test('CN-4 a takeover of a turn that had not begun costs nothing', async (t) => {
  const { message, taken, claim } = await openTakeover(t)
  await message('m', { state: 'leased', begun: 0, losses: 1, ...lapsed })
  assert.deepEqual((await taken('m', true))['messages m'], { begun: 1, leased_at: START_MS })
  const { lease } = claim() as Claim
  assert.deepEqual([lease.losses, lease.interrupted], [1, false])
})

test('IN-4 a takeover that is the fifth loss ends the message', async (t) => {
  const { message, taken, claim } = await openTakeover(t)
  await message('m', { state: 'leased', losses: 4, ...lapsed })
  assert.deepEqual(await taken('m'), {
    'workspace_load w': { running: 4, seq: 1 },
    'conversations c-m': FREE,
    'messages m': { ...DEAD, losses: 5 },
    ...deadTask('m'),
  })
  assert.equal(claim(), undefined)
})

test('IN-3 a lease that was renewed or settled meanwhile is neither taken over nor freed', async (t) => {
  const { message, taken, freed, claim } = await openTakeover(t)
  await message('m', { state: 'leased' })
  await message('stop', { state: 'stopping' })
  for (const id of ['m', 'finished', 'waits']) {
    assert.deepEqual(await taken(id), {})
    assert.equal(claim(), undefined)
  }
  for (const id of ['stop', 'another', 'finished']) assert.deepEqual(await freed(id), {})
})

test('IN-8 a cancelled turn whose lease ran out frees its conversation', async (t) => {
  const { message, freed } = await openTakeover(t)
  await message('m', { state: 'stopping', ...lapsed })
  assert.deepEqual(await freed('m'), {
    'workspace_load w': { running: 4 },
    'conversations c-m': FREE,
    'messages m': { state: 'canceled', outcome: 'stopped', settled_at: START_MS },
  })
})
