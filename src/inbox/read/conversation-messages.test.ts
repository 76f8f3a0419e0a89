import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SENDER } from '../../../test/fakes/letters.ts'
import { envelopeOf, NOON_MS, openStoredRows, replyOf } from '../../../test/fakes/stored-rows.ts'
import { MoleculeError } from '../../errors.ts'
import { createConversations } from './conversations.ts'

const PAGE = { workspaceId: 'ws_1', conversation: 'c1', limit: 20, detail: false }
const NOTHING = { unknownTurns: 0, unknownCostTurns: 0, inputTokens: 1, outputTokens: 2, costUsd: 3, durationMs: 4 }

async function openChats(t: TestContext) {
  const rows = await openStoredRows(t)
  const { read } = createConversations(rows.store)
  const message = async (id: string, query: object = {}) => {
    const page = await read({ ...PAGE, ...query })
    return page.messages.find((each) => each.id === id) ?? assert.fail(`no message ${id}`)
  }
  return { ...rows, read, message }
}

const status = (text: string, more: object = {}) => JSON.stringify({ parts: [{ text }], ...more })

/** Neighbours that no page of `c1` may show: another conversation, and another workspace. */
const NEIGHBOURS = {
  workspaces: [{ id: 'ws_1' }, { id: 'ws_2' }],
  workspace_load: [
    { workspace_id: 'ws_1', seq: 70, slots: 9 },
    { workspace_id: 'ws_2', seq: 80, slots: 9 },
  ],
  conversations: [
    { id: 'c1', last_n: 3 },
    { id: 'c2', context_id: 'named', last_n: 1 },
    { id: 'c3', workspace_id: 'ws_2', context_id: 'named' },
    { id: 'c4', context_id: 'secret', principal: 'token:1' },
  ],
}

const answered = (id: string, n: number, more: object = {}) => ({
  id,
  n,
  settled_at: NOON_MS - 10,
  reply: replyOf(`reply to ${id}`),
  envelope: envelopeOf(`hello ${id}`, `s-${id}`),
  ...more,
})

test('CV-2 a chat comes in pages from its end, the oldest message of a page first, and says where the log stands', async (t) => {
  const { add, read } = await openChats(t)
  const ids = ['m1', 'm2', 'm3', 'm4']
  await add({
    ...NEIGHBOURS,
    tasks: [...ids.map((id) => ({ id })), { id: 'x1', conversation_id: 'c2' }],
    messages: [
      ...ids.map((id, index) => answered(id, index + 1)),
      ...[0, 1, 2, 9].map((n) => answered(`x${n}`, n, { conversation_id: 'c2', task_id: 'x1' })),
    ],
  })
  const paged = async (query: object) => {
    const { messages, ...page } = await read({ ...PAGE, ...query })
    return { ...page, ids: messages.map(({ id }) => id) }
  }
  const known = { id: 'c1', contextId: 'c1', principal: 'people', seq: 70, hasNewer: false }
  assert.deepEqual(await paged({}), { ...known, ids })
  assert.deepEqual(await paged({ limit: 4 }), { ...known, ids })
  assert.deepEqual(await paged({ limit: 2 }), { ...known, ids: ['m3', 'm4'], before: 3 })
  assert.deepEqual(await paged({ limit: 2, before: 3 }), { ...known, ids: ['m1', 'm2'], hasNewer: true })
  assert.deepEqual(await paged({ before: 1 }), { ...known, ids: [], hasNewer: true })
  const other = await paged({ conversation: 'c2', limit: 1 })
  assert.deepEqual(other, { ...known, id: 'c2', contextId: 'named', ids: ['x9'], before: 9 })
  assert.deepEqual(await paged({ conversation: 'named', limit: 1 }), other)
  assert.equal((await paged({ conversation: 'c3', workspaceId: 'ws_2' })).seq, 80)
  for (const conversation of ['c3', 'secret', 'none']) {
    await assert.rejects(
      read({ ...PAGE, conversation }),
      (error) => error instanceof MoleculeError && error.code === 'not_found' && error.message.includes(conversation),
    )
  }
})

test('CV-2 a settled message has its times, reply, use and reason; of a failed one the owner also sees the detail', async (t) => {
  const { add, message } = await openChats(t)
  const failed = status('it ', {
    parts: [{ text: 'it ' }, { data: 1 }, { text: 'broke' }],
    code: 'exit',
    detail: 'stderr',
  })
  await add({
    ...NEIGHBOURS,
    tasks: [
      { id: 'm1' },
      { id: 'm2', state: 'TASK_STATE_FAILED', status_message: failed },
      { id: 'm3', state: 'TASK_STATE_FAILED' },
      { id: 'm4', state: 'TASK_STATE_FAILED' },
      { id: 'm5', state: 'TASK_STATE_CANCELED', updated_at: NOON_MS - 3 },
    ],
    messages: [
      answered('m1', 1, { leased_at: NOON_MS - 20, losses: 1, ready_at: NOON_MS + 1 }),
      { id: 'm2', n: 2, state: 'dead', settled_at: NOON_MS },
      { id: 'm3', n: 3, state: 'dead', settled_at: NOON_MS, replayed_as: 'm9' },
      { id: 'm4', n: 4, state: 'dead', settled_at: NOON_MS, discarded_at: NOON_MS },
      { id: 'm5', n: 5, state: 'stopping', begun: 1 },
      { id: 'm6', n: 6, state: 'answer', task_id: 'm5', settled_at: NOON_MS },
    ],
    turn_usage: [
      { message_id: 'm1', input_tokens: 1, output_tokens: 2, cost_usd: 3, duration_ms: 4 },
      { message_id: 'x1', epoch: 2 },
    ],
  })
  const base = { n: 2, sender: SENDER, senderMessageId: 'sent', parts: [{ text: 'hello' }], tools: [] }
  const times = { admittedAtMs: NOON_MS, startedAtMs: NOON_MS, endedAtMs: NOON_MS }
  assert.deepEqual(await message('m1'), {
    ...base,
    ...times,
    id: 'm1',
    taskId: 'm1',
    n: 1,
    senderMessageId: 's-m1',
    parts: [{ text: 'hello m1' }],
    state: 'answered',
    startedAtMs: NOON_MS - 20,
    endedAtMs: NOON_MS - 10,
    lostTurns: 1,
    reply: { parts: [{ text: 'reply to m1' }], artifacts: [], isPartial: false },
    usage: { turns: 1, ...NOTHING },
  })
  const dead = { ...base, ...times, id: 'm2', taskId: 'm2', state: 'failed', isHandled: false }
  assert.deepEqual(await message('m2'), { ...dead, reason: 'it broke', code: 'exit' })
  assert.deepEqual(await message('m2', { detail: true }), {
    ...dead,
    reason: 'it broke',
    code: 'exit',
    detail: 'stderr',
  })
  assert.deepEqual(await message('m3'), { ...dead, id: 'm3', taskId: 'm3', n: 3, isHandled: true, replayedAs: 'm9' })
  assert.deepEqual(await message('m4'), { ...dead, id: 'm4', taskId: 'm4', n: 4, isHandled: true })
  const stopping = { ...base, ...times, id: 'm5', taskId: 'm5', n: 5, state: 'stopped' }
  assert.deepEqual(await message('m5'), { ...stopping, endedAtMs: NOON_MS - 3 })
  const { startedAtMs: _, ...answer } = { ...base, ...times, id: 'm6', taskId: 'm5', n: 6, state: 'answered' }
  assert.deepEqual(await message('m6'), answer)
})

test('CV-2 a queued message says its place, why it waits and when it is tried again', async (t) => {
  const { add, message } = await openChats(t)
  await add({
    ...NEIGHBOURS,
    conversations: [{ id: 'c1', last_n: 7, settled_n: 1 }, { id: 'c2' }],
    tasks: [
      { id: 'm1' },
      { id: 'm3', state: 'TASK_STATE_WORKING' },
      { id: 'm5', state: 'TASK_STATE_SUBMITTED' },
      { id: 'm6', state: 'TASK_STATE_WORKING', status_message: status('next try soon', { code: 'waiting' }) },
      { id: 'm7', state: 'TASK_STATE_SUBMITTED' },
      { id: 'x1', conversation_id: 'c2' },
    ],
    messages: [
      answered('m1', 1),
      answered('m2', 2, { task_id: 'm1' }),
      { id: 'm3', n: 3, state: 'leased', ready_at: NOON_MS + 1 },
      { id: 'm5', n: 5, state: 'queued' },
      { id: 'm6', n: 6, state: 'queued', ready_at: NOON_MS + 1 },
      { id: 'm7', n: 7, state: 'queued', ready_at: NOON_MS + 1, parks: 1 },
      ...[1, 2, 3].map((n) => ({ id: `x${n}`, n, task_id: 'x1', state: 'queued', conversation_id: 'c2' })),
    ],
  })
  const shown = async (id: string) => {
    const { state, place, nextTryAtMs, reason, code, startedAtMs } = await message(id)
    return { state, place, nextTryAtMs, reason, code, startedAtMs }
  }
  const behind = 'waiting behind message m3 of the same conversation'
  const queued = { place: 1, nextTryAtMs: undefined, reason: behind, code: 'waiting', startedAtMs: undefined }
  assert.deepEqual(await shown('m5'), { ...queued, state: 'queued' })
  const parked = { ...queued, state: 'parked', place: 2, nextTryAtMs: NOON_MS + 1, reason: 'next try soon' }
  assert.deepEqual(await shown('m6'), parked)
  assert.deepEqual(await shown('m7'), { ...parked, state: 'rate_limited', place: 3, reason: behind })
  const none = { place: undefined, nextTryAtMs: undefined, reason: undefined, code: undefined }
  assert.deepEqual(await shown('m3'), { ...none, state: 'running', startedAtMs: NOON_MS })
})

test('CV-2 only the newest message of a task shows what the task says', async (t) => {
  const { add, message } = await openChats(t)
  const asking = { state: 'TASK_STATE_INPUT_REQUIRED', status_message: status('which colour?') }
  await add({
    ...NEIGHBOURS,
    tasks: [{ id: 'm1', ...asking }, { id: 'm3' }, { id: 'x2', conversation_id: 'c2' }],
    messages: [
      answered('m1', 1),
      answered('m2', 2, { task_id: 'm1' }),
      answered('m3', 3),
      answered('x2', 4, { conversation_id: 'c2', task_id: 'm1' }),
    ],
  })
  const shown = async (id: string) => {
    const { state, reason } = await message(id)
    return [state, reason]
  }
  assert.deepEqual(await shown('m1'), ['answered', undefined])
  assert.deepEqual(await shown('m2'), ['waiting_for_you', 'which colour?'])
  assert.deepEqual(await shown('m3'), ['answered', undefined])
})

test('CV-2 a running message shows its open permission ask, and neither a question nor another one', async (t) => {
  const { add, message, sql } = await openChats(t)
  const ask = (messageId: string, more: object = {}) => ({
    message_id: messageId,
    task_id: messageId,
    tool: 'Bash',
    ...more,
  })
  await add({
    ...NEIGHBOURS,
    tasks: [
      { id: 'm1', state: 'TASK_STATE_INPUT_REQUIRED' },
      { id: 'm2', state: 'TASK_STATE_WORKING' },
      { id: 'x1', state: 'TASK_STATE_INPUT_REQUIRED', conversation_id: 'c2' },
    ],
    messages: [
      { id: 'm1', n: 1, state: 'leased' },
      { id: 'm2', n: 2, state: 'queued' },
      { id: 'x1', n: 1, state: 'leased', conversation_id: 'c2' },
    ],
    asks: [
      ask('x1', { id: 'of another', asked_at: NOON_MS - 9 }),
      ask('m1', { id: 'denied', state: 'denied', asked_at: NOON_MS - 5 }),
      ask('m1', { id: '7', epoch: 3, asked_at: NOON_MS - 4, expires_at: NOON_MS + 5 }),
      ask('m1', { id: 'later and void', state: 'void', asked_at: NOON_MS - 3 }),
      ask('m2', { id: 'not shown' }),
    ],
  })
  const open = { tool: 'Bash', subject: '', askedAtMs: NOON_MS - 4, expiresAtMs: NOON_MS + 5 }
  const { id, ...shown } = (await message('m1')).ask ?? assert.fail('no ask')
  assert.deepEqual(shown, open)
  assert.match(id, /m1.*3.*7/)
  assert.equal((await message('m2')).ask, undefined)
  await sql(`update asks set subject = 'make' where id = '7'`)
  assert.equal((await message('m1')).ask?.subject, 'make')
  await sql(`update asks set tool = null where id = '7'`)
  assert.equal((await message('m1')).ask, undefined)
})
