/** What a failed, released or stopped turn leaves of its message and its task, row by row. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Changes, keyOf, openInboxRows, START_MS } from '../../../test/harness/inbox-rows.ts'
import type { Value } from '../../store/store.ts'
import type { Failure, Outcome } from '../inbox.ts'

const NOW_MS = START_MS + 10
const HOUR_MS = 3600_000
const WORKING = 'TASK_STATE_WORKING'
const FAILURE: Failure = {
  code: 'exit',
  message: 'exit 1: no such file',
  sentence: 'The agent stopped.',
  category: 'crash',
  id: 'e1',
  details: { stderr: 'no such file' },
}
const PUBLIC = { parts: [{ text: 'The agent stopped.' }], code: 'exit', category: 'crash', errorId: 'e1' }
const OWNER = { detail: 'exit 1: no such file', stderr: 'no such file' }
const FREE = { worker: null, lease_until: null }
const PLANTED_MS = START_MS + 60_000

type Retry = Extract<Outcome, { type: 'retry' }>
const retry = (more: Partial<Retry> = {}): Retry => ({
  type: 'retry',
  failure: FAILURE,
  afterMs: 0,
  reason: 'failure',
  interrupted: false,
  ...more,
})

/** The message `m` runs in the workspace `w`; no worker waits for more. */
async function openOutcome(t: TestContext, row: Readonly<Record<string, Value>> = {}) {
  const rows = openInboxRows(t)
  await rows.workspace('w', { running: 2, waiting: 1 })
  await rows.bystanders()
  await rows.message('m', { state: 'leased', ...row })
  const session = {
    conversation_id: 'c-m',
    workspace_id: 'w',
    host: 'host',
    runtime: 'mock',
    token: 'x',
    updated_at: 1,
  }
  await rows.plant('sessions', session)
  rows.clock.advance(10)
  const settled = (outcome: Outcome) => rows.changes(() => rows.local.inbox.settle(keyOf('m'), outcome))
  return { ...rows, settled }
}

const event = (...items: object[]) => ({ task_id: 'm', message_id: 'm', at_ms: NOW_MS, delta: 0, items })

/** What every message that goes back has in common. */
const reopened = (type: string, { message, readyMs = PLANTED_MS }: { message?: object; readyMs?: number } = {}) => ({
  'conversations c-m': { ...FREE, ready_at: readyMs },
  'messages m': { state: 'queued', outcome: type, settled_epoch: 1, ...message },
})

test('RT-6 a failed attempt waits for its time, counts, and ends a phase of rate limits', async (t) => {
  const { settled } = await openOutcome(t, { failures: 1, parks: 2, parked_at: 5 })
  const readyMs = NOW_MS + 5000
  const status = { ...PUBLIC, nextTryAtMs: readyMs }
  const message = { failures: 2, ready_at: readyMs, parks: 0, parked_at: null }
  assert.deepEqual(await settled(retry({ afterMs: 5000 })), {
    'workspace_load w': { running: 1, waiting: 2, seq: 1 },
    ...reopened('retry', { message, readyMs }),
    'tasks m': { status_message: { ...status, ...OWNER }, updated_at: NOW_MS },
    'events w 1': event({ t: 'status', state: WORKING, ...status }),
  })
})

test('RT-14 a parked attempt raises its parks and no other counter, and says its next time', async (t) => {
  const { settled } = await openOutcome(t, { failures: 1, parks: 2, parked_at: 5 })
  const readyMs = NOW_MS + 60_000
  const status = {
    ...PUBLIC,
    parts: [{ text: 'parked, next try at 00:17 UTC: The agent stopped.' }],
    nextTryAtMs: readyMs,
  }
  assert.deepEqual(await settled(retry({ afterMs: 60_000, parked: true })), {
    'workspace_load w': { running: 1, waiting: 2, seq: 1 },
    ...reopened('retry', { message: { ready_at: readyMs, parks: 3 }, readyMs }),
    'tasks m': { status_message: { ...status, ...OWNER }, updated_at: NOW_MS },
    'events w 1': event({ t: 'status', state: WORKING, ...status }),
  })
})

test('RT-14 the first park of a message stores when its phase began', async (t) => {
  const { settled } = await openOutcome(t)
  const changed = await settled(retry({ parked: true }))
  const message = { parks: 1, parked_at: NOW_MS }
  assert.deepEqual(changed['messages m'], reopened('retry', { message })['messages m'])
})

test('RT-5 a lost session is dropped, and its message runs again at once without a failure', async (t) => {
  const { settled } = await openOutcome(t, { parks: 2, parked_at: 5 })
  const changed = await settled(retry({ reason: 'session_lost', interrupted: true }))
  assert.deepEqual(changed, {
    'workspace_load w': { running: 1, waiting: 2, seq: 1 },
    ...reopened('retry', { message: { interrupted: 1, session_retried: 1 } }),
    'tasks m': { status_message: { ...PUBLIC, ...OWNER }, updated_at: NOW_MS },
    'events w 1': event({ t: 'status', state: WORKING, ...PUBLIC }),
    'sessions c-m': 'deleted',
  })
})

test('RT-6 a failure that is no lost session keeps the session and marks no new run', async (t) => {
  const { settled } = await openOutcome(t)
  const changed = await settled(retry())
  assert.deepEqual(changed['messages m'], reopened('retry', { message: { failures: 1 } })['messages m'])
  assert.equal(changed['sessions c-m'], undefined)
})

test('IN-4 a released message keeps its place and costs nothing; a stopped one says that it was interrupted', async (t) => {
  const cases: readonly (readonly [Outcome, object | undefined])[] = [
    [{ type: 'released', interrupted: false }, undefined],
    [{ type: 'released', interrupted: true }, { interrupted: 1 }],
    [{ type: 'stopped' }, { interrupted: 1 }],
  ]
  for (const [outcome, message = {}] of cases) {
    const { settled } = await openOutcome(t)
    assert.deepEqual(await settled(outcome), {
      'workspace_load w': { running: 1, waiting: 2 },
      ...reopened(outcome.type, { message }),
    })
  }
})

test('RT-13 a parked message waits with its reason for its time, at most an hour', async (t) => {
  const cases = [
    [1500.2, 1501],
    [HOUR_MS + 1, HOUR_MS],
    [-5, undefined],
  ] as const
  for (const [afterMs, waitMs] of cases) {
    const { settled } = await openOutcome(t)
    const said = { parts: [{ text: 'too many turns' }] }
    const changed = await settled({ type: 'released', interrupted: false, parked: { afterMs, said } })
    const readyMs = waitMs === undefined ? PLANTED_MS : NOW_MS + waitMs
    const message = waitMs === undefined ? {} : { ready_at: readyMs }
    assert.deepEqual(changed, {
      'workspace_load w': { running: 1, waiting: 2, seq: 1 },
      ...reopened('released', { message, readyMs }),
      'tasks m': { status_message: { ...said, code: 'waiting' }, updated_at: NOW_MS },
      'events w 1': event({ t: 'status', state: WORKING, ...said, code: 'waiting' }),
    } satisfies Changes)
  }
})

test('IN-4 a dead letter ends every message of its task, and each sender gets the clean sentence', async (t) => {
  const replyTo = JSON.stringify({ door: 'chat', channel: 'general' })
  const { settled, message } = await openOutcome(t, { failures: 3, reply_to: replyTo })
  await message('m2', { task_id: 'm', conversation_id: 'c-m', n: 2, reply_to: replyTo })
  await message('m0', { task_id: 'm', conversation_id: 'c-m', n: 3, state: 'done' })
  const artifacts = [{ artifactId: 'f', parts: [{ text: 'file' }] }]
  const {
    'deliveries id-1': first,
    'deliveries id-2': second,
    ...changed
  } = await settled({
    type: 'dead',
    failure: FAILURE,
    artifacts,
  })
  const failed = { state: 'TASK_STATE_FAILED', ...PUBLIC }
  assert.deepEqual(changed, {
    'workspace_load w': { running: 1, waiting: 0, seq: 1 },
    'conversations c-m': { ...FREE, settled_n: 1 },
    'tasks m': { state: 'TASK_STATE_FAILED', status_message: { ...PUBLIC, ...OWNER }, updated_at: NOW_MS },
    'messages m': {
      state: 'dead',
      outcome: 'dead',
      failures: 4,
      settled_at: NOW_MS,
      settled_epoch: 1,
      reply: { parts: [], artifacts },
    },
    'messages m2': { state: 'dead', outcome: 'dead', settled_at: NOW_MS },
    'events w 1': event({ t: 'status', ...failed }),
  })
  for (const [delivery, id] of [[first, 'm'] as const, [second, 'm2'] as const]) {
    const { body, message_id } = delivery as { body: unknown; message_id: string }
    assert.deepEqual([body, message_id], [failed, id])
  }
})

test('IN-4 a dead letter without artifacts has no reply', async (t) => {
  const { settled } = await openOutcome(t)
  const changed = await settled({ type: 'dead', failure: { code: 'exit', message: 'it broke' } })
  const message = { state: 'dead', outcome: 'dead', failures: 1, settled_at: NOW_MS, settled_epoch: 1 }
  assert.deepEqual(changed['messages m'], message)
  assert.deepEqual(changed['workspace_load w'], { running: 1, seq: 1 })
})
