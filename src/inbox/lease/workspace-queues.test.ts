/** The queue of a workspace as a whole: pause, stop, resume and end, row by row, and who learns of it. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { keyOf, openInboxRows, START_MS } from '../../../test/harness/inbox-rows.ts'
import { MoleculeError } from '../../errors.ts'
import type { Value } from '../../store/store.ts'

const CANCELED = 'TASK_STATE_CANCELED'
const isMissing = (error: unknown) =>
  error instanceof MoleculeError && error.code === 'not_found' && error.message === 'there is no workspace none'

async function openQueues(t: TestContext) {
  const rows = openInboxRows(t)
  await rows.workspace('w', { running: 2, waiting: 1 })
  await rows.workspace('other', { running: 2, waiting: 1 })
  await rows.message('first', { state: 'done', lease_epoch: 7 })
  await rows.bystanders()
  const { reception, activity } = rows.local
  /** True once a caller that waits for this task has its answer. */
  const waiter = async (taskId: string) => {
    let answered = false
    const stop = new AbortController()
    t.after(() => stop.abort())
    const wait = async () => {
      await reception.waitForResult(taskId, 1_000_000, stop.signal)
      answered = true
    }
    void wait()
    await rows.finishWork()
    return async () => {
      await rows.finishWork()
      return answered
    }
  }
  return { ...rows, activity, queues: rows.local.queues, waiter }
}

/** An open delegation of that message. */
const childOf = (parent: string): Readonly<Record<string, Value>> => ({
  parent_id: parent,
  root_id: parent,
  parent_epoch: 1,
  child_open: 1,
  delegation: '{}',
  workspace_id: 'other',
})

test('PL-2 a pause keeps the running turns, and answers callers that wait', async (t) => {
  const { queues, changes, hints, connect, waiter } = await openQueues(t)
  const { received } = await connect()
  const answered = await waiter('w-queued')
  assert.deepEqual(await changes(() => queues.pause('w', { now: false })), { 'workspace_load w': { paused: 1 } })
  assert.deepEqual([hints(), received], [['w'], []])
  assert.equal(await answered(), true)
  await assert.rejects(queues.pause('none', { now: false }), isMissing)
  await assert.rejects(queues.resume('none'), isMissing)
})

test('PL-2 a pause with `now` stops the running turns of its workspace', async (t) => {
  const { queues, changes, connect, finishWork } = await openQueues(t)
  const { received } = await connect()
  assert.deepEqual(await changes(() => queues.pause('w', { now: true })), { 'workspace_load w': { paused: 1 } })
  await finishWork()
  const stops = ['w-leased', 'w-stopping'].map((id) => ({ type: 'stop', key: keyOf(id) }))
  assert.deepEqual(received, stops)
})

test('CL-7 a stop pauses the queue, cancels every running task and what it delegated, and answers callers', async (t) => {
  const { queues, message, changes, hints, connect, waiter, finishWork, select } = await openQueues(t)
  await message('a', { state: 'leased' })
  await message('child', childOf('a'))
  const { received } = await connect()
  const answered = await waiter('w-queued')
  let stopped: readonly string[] = []
  const changed = await changes(async () => (stopped = await queues.stop('w')))
  const event = (id: string) => ({
    task_id: id,
    message_id: id,
    at_ms: START_MS,
    delta: 0,
    items: [{ t: 'status', state: CANCELED }],
  })
  assert.deepEqual(changed, {
    'workspace_load w': { paused: 1, seq: 2 },
    'tasks a': { state: CANCELED },
    'tasks w-leased': { state: CANCELED },
    'messages a': { state: 'stopping' },
    'messages w-leased': { state: 'stopping' },
    'events w 1': event('a'),
    'events w 2': event('w-leased'),
  })
  assert.deepEqual(
    [stopped, hints()],
    [
      ['a', 'w-leased'],
      ['w', 'w', 'w'],
    ],
  )
  await finishWork()
  const stops = ['a', 'w-leased'].map((id) => ({ type: 'stop', key: keyOf(id) }))
  assert.deepEqual(received, stops)
  assert.equal(await answered(), true)
  const [child] = await select(`select state from messages where id = 'child'`)
  assert.equal(child?.['state'], 'canceled')
})

test('PL-2 a resumed queue leases its waiting messages to a worker that is there', async (t) => {
  const { queues, message, changes, hints, connect, finishWork, write } = await openQueues(t)
  await write(function* () {
    yield [{ text: `update workspace_load set paused = 1`, values: [] }]
  })
  await message('m', { ready_at: START_MS })
  const { received } = await connect()
  assert.deepEqual(received, [])
  assert.deepEqual(await changes(() => queues.resume('w')), { 'workspace_load w': { paused: 0 } })
  assert.deepEqual(hints(), ['w'])
  await finishWork()
  assert.deepEqual(
    received.map(({ type }) => type),
    ['lease'],
  )
})

const FAILURE = { code: 'deleted', message: 'the workspace was deleted' }
const STATUS = { parts: [{ text: FAILURE.message }], code: 'deleted' }
const failed = { state: 'TASK_STATE_FAILED', status_message: STATUS }
const dead = { state: 'dead', outcome: 'dead', settled_at: START_MS, discarded_at: START_MS }
const event = (id: string) => ({
  task_id: id,
  message_id: id,
  at_ms: START_MS,
  delta: 0,
  items: [{ t: 'status', state: 'TASK_STATE_FAILED', ...STATUS }],
})
/** No call of a worker with an earlier epoch counts any more. */
const closed = { lease_epoch: 2 }

async function openEnd(t: TestContext) {
  const rows = await openQueues(t)
  for (const workspace of ['w', 'other']) {
    const place = { workspace_id: workspace, tool: 'Bash', scope: 'x', pattern: 'ls', made_by: 'Ana' }
    await rows.plant('permission_rules', {
      id: `rule-${workspace}`,
      ...place,
      made_principal: 'people',
      made_door: 'http',
      made_at: 1,
    })
    const session = { workspace_id: workspace, host: 'host', runtime: 'mock', token: 'x', updated_at: 1 }
    await rows.plant('sessions', { conversation_id: `c-${workspace}-leased`, ...session })
    for (const state of ['open', 'answered'])
      await rows.plant('asks', {
        message_id: `${workspace}-leased`,
        id: state,
        workspace_id: workspace,
        task_id: `${workspace}-${state}`,
        epoch: 1,
        state,
        question: '[]',
        asked_at: 1,
        expires_at: 1,
      })
  }
  return rows
}

test('PL-2 an ended queue fails its open tasks, cancels what runs, and leaves nothing of itself', async (t) => {
  const { queues, message, changes, hints, connect, finishWork } = await openEnd(t)
  await message('m2', { task_id: 'w-queued', conversation_id: 'c-w-queued', n: 2 })
  await message('old-dead', { state: 'dead', settled_at: 1, discarded_at: 2 })
  await message('replayed', { state: 'dead', settled_at: 1, replayed_as: 'x' })
  const { received } = await connect()
  let ended = 0
  const changed = await changes(async () => (ended = await queues.end('w', FAILURE)))
  assert.deepEqual(changed, {
    'workspace_load w': 'deleted',
    'conversations c-first': { lease_epoch: 8 },
    'conversations c-w-queued': { ...closed, ready_at: null },
    'conversations c-w-leased': { ...closed, worker: null, lease_until: null },
    'conversations c-w-stopping': { ...closed, worker: null, lease_until: null },
    ...Object.fromEntries(
      ['w-done', 'w-dead', 'w-canceled', 'old-dead', 'replayed'].map((id) => [`conversations c-${id}`, closed]),
    ),
    'tasks w-queued': failed,
    'tasks w-leased': failed,
    'messages w-queued': dead,
    'messages m2': dead,
    'messages w-leased': dead,
    'messages w-stopping': { state: 'canceled', outcome: 'stopped', settled_at: START_MS },
    'messages w-dead': { discarded_at: START_MS },
    'events w 1': event('w-leased'),
    'events w 2': event('w-queued'),
    'asks w-leased 1 open': { state: 'void' },
    'sessions c-w-leased': 'deleted',
    'permission_rules rule-w': 'deleted',
  })
  assert.deepEqual([ended, hints()], [2, ['w', 'w']])
  await finishWork()
  const stops = ['w-leased', 'w-stopping'].map((id) => ({ type: 'stop', key: keyOf(id) }))
  assert.deepEqual(received, stops)
})

test('PL-7 the end of a queue ends its readers, also where no task was open', async (t) => {
  const { queues, workspace, activity, finishWork } = await openQueues(t)
  await workspace('quiet')
  const stop = new AbortController()
  t.after(() => stop.abort())
  const rows: unknown[] = []
  const follow = async () => {
    for await (const row of activity.follow('quiet', 0, stop.signal)) rows.push(row)
    rows.push('end')
  }
  const following = follow()
  await finishWork()
  await queues.end('quiet', FAILURE)
  await finishWork()
  assert.deepEqual(rows, ['end'])
  await following
})

test('TW-3 the end of a queue cancels what its messages delegated', async (t) => {
  const { queues, message, finishWork, select } = await openQueues(t)
  await message('child', childOf('w-leased'))
  await queues.end('w', FAILURE)
  await finishWork()
  const [child] = await select(`select state from messages where id = 'child'`)
  assert.equal(child?.['state'], 'canceled')
})
