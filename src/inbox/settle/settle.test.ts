/** A settle, row by row: what each outcome writes, who gets the free slot, and what a late or repeated settle changes. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { HOST, keyOf, openInboxRows, START_MS, WORKER } from '../../../test/harness/inbox-rows.ts'
import { keepSession } from '../../sessions/sessions.ts'
import type { Value } from '../../store/store.ts'
import type { LeaseKey, NumberedEvents, Outcome } from '../inbox.ts'
import { type SettleOutput, settle } from './settle.ts'

const NOW_MS = START_MS + 10
const DONE: Outcome = { type: 'done', finality: 'completed', parts: [{ text: 'hello' }], artifacts: [] }
const RELEASED: Outcome = { type: 'released', interrupted: false }
const DEAD: Outcome = { type: 'dead', failure: { code: 'exit', message: 'it broke' } }
const RETRY: Outcome = {
  type: 'retry',
  failure: { code: 'exit', message: 'it broke' },
  afterMs: 0,
  reason: 'failure',
  interrupted: false,
}
const FREE = { worker: null, lease_until: null }

interface SettleOptions {
  readonly outcome?: Outcome
  readonly unsent?: NumberedEvents
  readonly accepts?: (workerId: string) => boolean
}

/** The message `m` runs in the workspace `w`, beside messages in every state. */
async function openSettle(t: TestContext, load: Readonly<Record<string, Value>> = {}) {
  const rows = openInboxRows(t)
  await rows.workspace('w', { running: 2, waiting: 1, ...load })
  await rows.workspace('other', { running: 2, waiting: 1 })
  await rows.bystanders()
  rows.clock.advance(10)
  let output: SettleOutput | undefined
  const settled = (key: LeaseKey, { outcome = DONE, unsent, accepts = () => false }: SettleOptions = {}) =>
    rows.changes(async () => {
      const keep = (own: LeaseKey, token: string | undefined) => keepSession(HOST, own, token)
      output = await rows.write(() => settle({ key, outcome, unsent, accepts, keepSession: keep }))
    })
  return { ...rows, settled, output: () => output }
}

const event = (id: string, ...items: object[]) => ({
  task_id: id,
  message_id: id,
  at_ms: NOW_MS,
  delta: 0,
  items,
})

test('IN-3 a reply is stored with its session, its usage, its delivery and the events that the log did not have', async (t) => {
  const { message, plant, settled, output } = await openSettle(t)
  const workspace = {
    id: 'w',
    name: 'test',
    role: '',
    runtime: 'mock',
    settings: '{}',
    status: 'online',
    created_at: 1,
  }
  await plant('workspaces', workspace)
  const replyTo = JSON.stringify({ door: 'chat', channel: 'general' })
  await message('m', { state: 'leased', reply_to: replyTo, appended: 1, suspended: 0 })
  const usage = { inputTokens: 1, outputTokens: 2, costUsd: 0.5, durationMs: 30 }
  const outcome: Outcome = { ...DONE, metadata: { model: 'x' }, session: 'token', usage }
  const events = ['a', 'b'].map((delta) => ({ type: 'text', delta }) as const)
  const reply = { parts: [{ text: 'hello' }], artifacts: [], metadata: { model: 'x' } }
  assert.deepEqual(await settled(keyOf('m'), { outcome, unsent: { from: 1, events } }), {
    'workspace_load w': { running: 1, seq: 1 },
    'conversations c-m': { ...FREE, settled_n: 1 },
    'tasks m': { state: 'TASK_STATE_COMPLETED', updated_at: NOW_MS },
    'messages m': { state: 'done', outcome: 'done', reply, settled_at: NOW_MS, settled_epoch: 1 },
    'events w 1': event(
      'm',
      { t: 'turn', event: { type: 'text', delta: 'b' } },
      { t: 'reply' },
      { t: 'status', state: 'TASK_STATE_COMPLETED' },
    ),
    'deliveries id-1': {
      workspace_id: 'w',
      task_id: 'm',
      message_id: 'm',
      door: 'chat',
      channel: 'general',
      state: 'pending',
      body: { state: 'TASK_STATE_COMPLETED', parts: [{ text: 'hello' }] },
      tries: 0,
      next_at: NOW_MS,
      created_at: NOW_MS,
    },
    'sessions c-m': { workspace_id: 'w', host: 'host', runtime: 'mock', token: 'token', updated_at: NOW_MS },
    'turn_usage m 1': {
      workspace_id: 'w',
      task_id: 'm',
      outcome: 'done',
      ended_at: NOW_MS,
      duration_ms: 30,
      input_tokens: 1,
      output_tokens: 2,
      cost_usd: 0.5,
    },
  })
  const result = { state: 'TASK_STATE_COMPLETED', reply, atMs: NOW_MS }
  assert.deepEqual(output(), { answer: 'settled', next: undefined, result, endsDelegation: false })
})

test('IN-7 the status message of a task is the question, the own words of the agent, or the notice of the platform', async (t) => {
  const { message, settled } = await openSettle(t)
  const replyTo = JSON.stringify({ door: 'chat', channel: 'general' })
  const asked = { type: 'done', finality: 'input_required', parts: [{ text: 'which?' }], artifacts: [] } as const
  const file = { artifactId: 'f', parts: [{ text: 'file' }] }
  const cases: readonly (readonly [Outcome, string, object | undefined, readonly string[]])[] = [
    [asked, 'INPUT_REQUIRED', { parts: [{ text: 'which?' }] }, ['which?']],
    [{ ...asked, parts: [] }, 'INPUT_REQUIRED', undefined, []],
    [
      { ...asked, notice: 'cut' },
      'INPUT_REQUIRED',
      { parts: [{ text: 'which?' }, { text: '\n\ncut' }] },
      ['which?', '\n\ncut'],
    ],
    [{ ...DONE, notice: 'cut' }, 'COMPLETED', { parts: [{ text: 'cut' }] }, ['hello', '\n\ncut']],
    [
      { ...asked, finality: 'rejected', parts: [], artifacts: [file], said: { parts: [{ text: 'no' }] } },
      ...['REJECTED', { parts: [{ text: 'no' }] }, ['file', 'no']],
    ] as const,
    [
      { ...asked, finality: 'auth_required', parts: [], notice: 'cut' },
      'AUTH_REQUIRED',
      { parts: [{ text: 'cut' }] },
      ['cut'],
    ],
  ]
  for (const [index, [outcome, name, status, texts]] of cases.entries()) {
    const id = `m${index}`
    await message(id, { state: 'leased', reply_to: replyTo })
    const changed = await settled(keyOf(id), { outcome })
    const state = `TASK_STATE_${name}`
    const stored = { state, ...(status && { status_message: status }), updated_at: NOW_MS }
    assert.deepEqual(changed[`tasks ${id}`], stored, id)
    assert.deepEqual((changed['deliveries id-1'] as { body: unknown }).body, {
      state,
      parts: texts.map((text) => ({ text })),
    })
    const items = [{ t: 'reply' }, { t: 'status', state, ...status }]
    assert.deepEqual(changed[`events w ${index + 1}`], event(id, ...items))
  }
})

test('IN-2 a task with another open message is not final, and its last message makes it final', async (t) => {
  const { message, settled, output } = await openSettle(t)
  await message('m', { state: 'leased' })
  await message('m2', { conversation_id: 'c-m', task_id: 'm', n: 2, ready_at: START_MS + 5 })
  const reply = { parts: [{ text: 'hello' }], artifacts: [] }
  const closed = { state: 'done', outcome: 'done', reply, settled_at: NOW_MS, settled_epoch: 1 }
  assert.deepEqual(await settled(keyOf('m')), {
    'workspace_load w': { running: 1, seq: 1 },
    'conversations c-m': { ...FREE, settled_n: 1, ready_at: START_MS + 5 },
    'messages m': closed,
    'events w 1': event('m', { t: 'reply' }),
  })
  assert.deepEqual(output(), { answer: 'settled', next: undefined, result: undefined, endsDelegation: false })
})

test('IN-2 the last message of a task makes it final; its callers read the whole task', async (t) => {
  const { message, settled, output } = await openSettle(t)
  await message('m', { state: 'done', n: 1 })
  await message('m2', { task_id: 'm', state: 'leased', n: 4 })
  const changed = await settled(keyOf('m2', { taskId: 'm' }))
  assert.deepEqual(changed['tasks m'], { updated_at: NOW_MS })
  assert.deepEqual(changed['conversations c-m2'], { ...FREE, settled_n: 4 })
  assert.equal(output()?.result, undefined)
})

test('TW-3 the relatives of a message are looked after when it has ended: as a child, as a parent, and as a dead letter', async (t) => {
  const { message, settled, output } = await openSettle(t)
  const cases: readonly (readonly [Readonly<Record<string, Value>>, Outcome, boolean])[] = [
    [{ child_open: 1 }, DONE, true],
    [{ has_children: 1 }, DONE, true],
    [{ child_open: 0, has_children: 0 }, DONE, false],
    [{}, DEAD, true],
    [{ child_open: 1 }, RETRY, false],
  ]
  for (const [index, [row, outcome, expected]] of cases.entries()) {
    await message(`m${index}`, { state: 'leased', ...row })
    await settled(keyOf(`m${index}`), { outcome })
    assert.equal(output()?.endsDelegation, expected, `case ${index}`)
  }
})

test('IN-8 a cancelled turn frees its conversation, and its reply is dropped', async (t) => {
  const { message, plant, settled } = await openSettle(t)
  await message('m', { state: 'stopping', asked: 1, suspended: 1 })
  await plantAsk(plant, 'm', { id: 'open', state: 'open' })
  await plantAsk(plant, 'm', { id: 'answered', state: 'answered', answer_message_id: 'answer' })
  await message('answer', { task_id: 'm', conversation_id: 'c-m', n: 2, state: 'answer' })
  assert.deepEqual(await settled(keyOf('m'), { outcome: { type: 'stopped' } }), {
    'workspace_load w': { suspended: -1 },
    'conversations c-m': { ...FREE, settled_n: 1 },
    'messages m': { state: 'canceled', outcome: 'stopped', settled_at: NOW_MS, settled_epoch: 1, suspended: 0 },
    'asks m 1 open': { state: 'void' },
  })
})

type Plant = Awaited<ReturnType<typeof openSettle>>['plant']

const plantAsk = (plant: Plant, messageId: string, row: Readonly<Record<string, Value>>) =>
  plant('asks', {
    message_id: messageId,
    workspace_id: 'w',
    task_id: messageId,
    epoch: 1,
    question: '[]',
    asked_at: START_MS,
    expires_at: START_MS,
    ...row,
  })

test('IN-9 an answer to a turn that runs again goes back into the queue; an answer to a turn that ended is used up', async (t) => {
  const { message, plant, settled } = await openSettle(t)
  for (const id of ['again', 'ended', 'failed']) {
    await message(id, { state: 'leased', asked: 1 })
    await message(`answer-${id}`, { task_id: id, conversation_id: `c-${id}`, n: 2, state: 'answer' })
    await plantAsk(plant, id, { id: 'open', state: 'open' })
    await plantAsk(plant, id, { id: 'answered', state: 'answered', answer_message_id: `answer-${id}` })
  }
  const again = await settled(keyOf('again'), { outcome: RETRY })
  assert.deepEqual(again['workspace_load w'], { running: 1, waiting: 3, seq: 1 })
  assert.deepEqual(again['messages answer-again'], { state: 'queued', settled_at: null })
  assert.deepEqual([again['asks again 1 open'], again['asks again 1 answered']], [{ state: 'void' }, { state: 'void' }])
  for (const [id, outcome] of [['ended', DONE] as const, ['failed', DEAD] as const]) {
    const changed = await settled(keyOf(id), { outcome })
    assert.deepEqual(changed[`asks ${id} 1 open`], { state: 'void' })
    assert.deepEqual([changed[`asks ${id} 1 answered`], changed[`messages answer-${id}`]], [undefined, undefined])
  }
})

test('IN-9 a released turn puts its answer back too, and its own message', async (t) => {
  const { message, plant, settled } = await openSettle(t)
  await message('m', { state: 'leased', asked: 1 })
  await message('answer', { task_id: 'm', conversation_id: 'c-m', n: 2, state: 'answer' })
  await plantAsk(plant, 'm', { id: 'answered', state: 'answered', answer_message_id: 'answer' })
  const changed = await settled(keyOf('m'), { outcome: RELEASED })
  assert.deepEqual(changed['workspace_load w'], { running: 1, waiting: 3 })
})

test('IN-3 a late result is kept in the log; a late failure, a foreign epoch and a message that waits change nothing', async (t) => {
  const { message, settled, output, write } = await openSettle(t)
  await message('m', { state: 'leased' })
  const late = await settled(keyOf('m', { epoch: 0 }))
  assert.deepEqual(late, {
    'workspace_load w': { seq: 1 },
    'events w 1': event('m', { t: 'late', parts: [{ text: 'hello' }] }),
  })
  assert.deepEqual(output(), { answer: 'stale', next: undefined })
  assert.deepEqual(await settled(keyOf('m', { epoch: 0 }), { outcome: DEAD }), {})
  assert.deepEqual(await settled(keyOf('w-queued'), { outcome: DEAD }), {})
  assert.deepEqual(output(), { answer: 'stale', next: undefined })
  await settled(keyOf('m'))
  assert.deepEqual(await settled(keyOf('m')), {})
  assert.deepEqual(output(), { answer: 'settled', next: undefined })
  assert.deepEqual(await settled(keyOf('m'), { outcome: DEAD }), {})
  assert.deepEqual(output(), { answer: 'stale', next: undefined })
  assert.deepEqual(await settled(keyOf('none')), {})
  assert.equal(output()?.answer, 'stale')
  await write(function* () {
    yield [{ text: `delete from workspace_load where workspace_id = 'w'`, values: [] }]
  })
  assert.deepEqual(await settled(keyOf('w-leased')), {})
  assert.equal(output()?.answer, 'stale')
})

test('IN-2 the free slot goes to the oldest ready conversation of the workspace, where the worker takes more', async (t) => {
  const { message, settled, output } = await openSettle(t, { slots: 2, hosted: 1 })
  await message('m', { state: 'leased' })
  await message('next', { ready_at: START_MS + 10 })
  await message('foreign', { workspace_id: 'other', ready_at: START_MS })
  const changed = await settled(keyOf('m'), { accepts: (worker) => worker === WORKER })
  assert.deepEqual(changed['workspace_load w'], { waiting: 0, seq: 2 })
  assert.deepEqual(changed['conversations c-next'], {
    lease_epoch: 2,
    worker: WORKER,
    lease_until: NOW_MS + 30_000,
    ready_at: null,
  })
  assert.deepEqual(changed['messages next'], { state: 'leased', begun: 1, leased_at: NOW_MS })
  assert.deepEqual(changed['tasks next'], { state: 'TASK_STATE_WORKING', updated_at: NOW_MS })
  assert.deepEqual(changed['events w 2'], event('next', { t: 'status', state: 'TASK_STATE_WORKING' }))
  assert.deepEqual([output()?.next?.worker, output()?.next?.claim.lease.messageId], [WORKER, 'next'])
  assert.deepEqual(
    Object.keys(changed).filter((name) => name.includes('foreign')),
    [],
  )
})

test('IN-2 no conversation gets the slot of a turn that waited, that ran over the limit, or whose worker takes no more', async (t) => {
  const { message, settled, output, write } = await openSettle(t)
  await message('next', { ready_at: START_MS })
  const cases: readonly (readonly [Readonly<Record<string, Value>>, string, object])[] = [
    [{ suspended: 1 }, 'slots = 10, running = 2, waiting = 1', { suspended: -1, seq: 1 }],
    [{}, 'slots = 1, running = 2, waiting = 1', { running: 1, seq: 2 }],
    [{}, 'slots = 10, running = 2, waiting = 0', { running: 1, seq: 3 }],
    [{ worker: null }, 'slots = 10, running = 2, waiting = 1', { running: 1, seq: 4 }],
    [{ worker: 'full' }, 'slots = 10, running = 2, waiting = 1', { running: 1, seq: 5 }],
  ]
  for (const [index, [row, set, expected]] of cases.entries()) {
    await message(`m${index}`, { state: 'leased', ...row })
    await write(function* () {
      yield [{ text: `update workspace_load set ${set}, suspended = 0 where workspace_id = 'w'`, values: [] }]
    })
    const changed = await settled(keyOf(`m${index}`), { accepts: (worker) => worker !== 'full' })
    assert.deepEqual(changed['workspace_load w'], expected, `case ${index}`)
    assert.deepEqual(changed['messages next'], undefined)
    assert.equal(output()?.next, undefined)
  }
})

test('IN-2 a message that goes back is claimed again at once where nothing else waits; a parked one is not', async (t) => {
  const { message, settled, output } = await openSettle(t, { waiting: 0 })
  await message('m', { state: 'leased', ready_at: START_MS })
  await message('parked', { state: 'leased', ready_at: START_MS })
  const changed = await settled(keyOf('m'), { outcome: RELEASED, accepts: () => true })
  assert.equal(output()?.next?.claim.lease.epoch, 2)
  assert.deepEqual(changed['workspace_load w'], { seq: 1 })
  assert.deepEqual(changed['messages m'], { begun: 0, leased_at: NOW_MS, outcome: 'released', settled_epoch: 1 })
  const parked = await settled(keyOf('parked'), { outcome: { ...RETRY, afterMs: 1 }, accepts: () => true })
  assert.equal(output()?.next, undefined)
  assert.deepEqual(parked['workspace_load w'], { running: 1, waiting: 1, seq: 2 })
})
