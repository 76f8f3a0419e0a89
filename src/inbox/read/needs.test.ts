import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { envelopeOf, NOON_MS, openStoredRows } from '../../../test/fakes/stored-rows.ts'
import type { BudgetAsk, NeedKind, PendingAsk } from '../owners.ts'
import { createNeedSources } from './needs.ts'

const TODAY = Math.floor(NOON_MS / (24 * 3600_000))

async function openNeeds(t: TestContext, given: { asks?: PendingAsk[]; next?: string; budgets?: BudgetAsk[] } = {}) {
  const rows = await openStoredRows(t)
  const { asks = [], next, budgets = [] } = given
  const sources = createNeedSources(rows.store, {
    pendingAsks: { list: async () => ({ rows: asks, ...(next !== undefined && { next }) }) },
    budgets: { list: async () => budgets },
  })
  const source = (kind: NeedKind) => sources.find((each) => each.kind === kind) ?? assert.fail(`no ${kind}`)
  const count = async (kind: NeedKind) => [
    (await source(kind).summary('ws_1')).count,
    (await source(kind).summary()).count,
    (await source(kind).summary('ws_9')).count,
  ]
  const ids = async (kind: NeedKind, query: object) => (await source(kind).list(query)).rows.map(({ id }) => id)
  return { ...rows, source, count, ids, kinds: sources.map(({ kind }) => kind) }
}

const status = (text: string) => JSON.stringify({ parts: [{ text }, { data: 1 }, { text: ' now' }] })

test('CV-6 the kinds come with the most urgent one first', async (t) => {
  const { kinds } = await openNeeds(t)
  assert.deepEqual(kinds, [
    'permission',
    'question',
    'budget',
    'turn_limit',
    'dead_letter',
    'delivery',
    'damaged_reply',
  ])
})

test('CV-6 a permission is counted while its own turn runs and nobody has answered', async (t) => {
  const { add, count, source, sql } = await openNeeds(t)
  const ids = ['a1', 'a2', 'denied', 'question', 'stale', 'stopping', 'elsewhere']
  const open = (id: string, more: object = {}) => ({ message_id: id, task_id: id, epoch: 3, tool: 'Bash', ...more })
  await add({
    conversations: ids.map((id) => ({ id, lease_epoch: 3 })),
    messages: ids.map((id) => ({ id, conversation_id: id, state: id === 'stopping' ? 'stopping' : 'leased' })),
    asks: [
      open('a1', { asked_at: NOON_MS - 2 }),
      open('a2', { asked_at: NOON_MS - 1 }),
      open('denied', { state: 'denied' }),
      open('question', { tool: null }),
      open('stale', { epoch: 2 }),
      open('stopping'),
      open('elsewhere', { workspace_id: 'ws_2' }),
    ],
  })
  assert.deepEqual(await count('permission'), [2, 3, 0])
  const { mark } = await source('permission').summary('ws_1')
  await sql(`update asks set state = 'allowed' where message_id = 'a2'`)
  assert.deepEqual(await count('permission'), [1, 2, 0])
  await sql(`update asks set state = 'open', asked_at = asked_at + 1 where message_id = 'a2'`)
  assert.notEqual((await source('permission').summary('ws_1')).mark, mark)
})

test('CV-6 a permission and a budget are listed with all that a person needs to decide', async (t) => {
  const ask = {
    id: 'm1.1.1',
    workspaceId: 'ws_1',
    taskId: 't1',
    messageId: 'm1',
    tool: 'Bash',
    subject: 'make',
    askedAtMs: 5,
    expiresInMs: 6,
  }
  const budget = { id: 'b1', workspaceId: 'ws_1', limitUsd: 1, spentUsd: 1, unknownTurns: 0, waiting: 1, text: 'spent' }
  const budgets = [
    { ...budget, askedAtMs: 7 },
    { ...budget, askedAtMs: 8, taskId: 't1' },
  ]
  const { source } = await openNeeds(t, { asks: [ask], next: 'more', budgets })
  const permission = {
    kind: 'permission',
    id: 'm1.1.1',
    workspaceId: 'ws_1',
    sinceMs: 5,
    reason: 'it wants to use Bash',
    expiresInMs: 6,
    taskId: 't1',
    ask,
  }
  assert.deepEqual(await source('permission').list({}), { rows: [permission], next: 'more' })
  const need = { kind: 'budget', id: 'b1', workspaceId: 'ws_1', reason: 'spent' }
  assert.deepEqual(await source('budget').list({}), {
    rows: [
      { ...need, sinceMs: 7, budget: budgets[0] },
      { ...need, sinceMs: 8, taskId: 't1', budget: budgets[1] },
    ],
  })
  const { source: last } = await openNeeds(t, { asks: [ask] })
  assert.deepEqual(await last('permission').list({}), { rows: [permission] })
})

test('CV-6 a budget is counted while a message waits for it, a budget of a day only on that day', async (t) => {
  const { add, count, clock } = await openNeeds(t)
  const asked = (id: string, more: object = {}) => ({ id, state: 'asked', asked_at: NOON_MS, ...more })
  await add({
    messages: [
      { id: 'waits', conversation_id: 'c1' },
      { id: 'settled', conversation_id: 'c2', settled_at: NOON_MS },
      { id: 'waits for none', conversation_id: 'c3' },
    ],
    budgets: [
      asked('b1'),
      asked('today', { day: TODAY }),
      asked('today 2', { day: TODAY }),
      asked('yesterday', { day: TODAY - 1 }),
      asked('ended'),
      asked('not needed'),
      asked('elsewhere', { workspace_id: 'ws_2' }),
      { id: 'raised', state: 'open' },
    ],
    budget_waits: [
      { message_id: 'waits', budget_id: 'b1' },
      { message_id: 'w2', budget_id: 'today' },
      { message_id: 'w3', budget_id: 'today 2' },
      { message_id: 'w4', budget_id: 'yesterday' },
      { message_id: 'settled', budget_id: 'ended' },
      { message_id: 'w5', budget_id: 'elsewhere' },
      { message_id: 'w6', budget_id: 'raised' },
    ],
  })
  await add({ messages: ['w2', 'w3', 'w4', 'w5', 'w6'].map((id) => ({ id, conversation_id: id })) })
  assert.deepEqual(await count('budget'), [3, 4, 0])
  clock.advance(12 * 3600_000 - 1)
  assert.deepEqual(await count('budget'), [3, 4, 0])
  clock.advance(1)
  assert.deepEqual(await count('budget'), [1, 2, 0])
})

test('CV-6 a question is a task of people that asks, and not one that waits for a permission', async (t) => {
  const { add, count, source, ids } = await openNeeds(t)
  const asking = { state: 'TASK_STATE_INPUT_REQUIRED' }
  const ask = (taskId: string, more: object = {}) => ({ message_id: taskId, task_id: taskId, ...more })
  await add({
    tasks: [
      { id: 'q1', ...asking, updated_at: NOON_MS - 9, status_message: status('which\n  colour?') },
      { id: 'q2', state: 'TASK_STATE_AUTH_REQUIRED', updated_at: NOON_MS - 8 },
      { id: 'q3', ...asking, updated_at: NOON_MS - 7 },
      { id: 'permission', ...asking },
      { id: 'of a program', ...asking, principal: 'token:1' },
      { id: 'working', state: 'TASK_STATE_WORKING' },
      { id: 'elsewhere', ...asking, workspace_id: 'ws_2' },
    ],
    asks: [
      ask('permission', { tool: 'Bash', expires_at: NOON_MS + 1 }),
      ask('q1', { id: '0', state: 'answered', tool: 'Bash', expires_at: NOON_MS + 2 }),
      ask('q1', { id: '1', expires_at: NOON_MS + 3 }),
      ask('q2', { id: '2', state: 'void', expires_at: NOON_MS + 4 }),
      ask('q3', { id: '3', expires_at: NOON_MS - 5 }),
    ],
  })
  const need = { kind: 'question', workspaceId: 'ws_1', contextId: 'c1' }
  assert.deepEqual(await source('question').list({ workspaceId: 'ws_1' }), {
    rows: [
      {
        ...need,
        id: 'q1',
        taskId: 'q1',
        sinceMs: NOON_MS - 9,
        reason: 'the agent asks: which colour? now',
        text: 'which\n  colour? now',
        expiresInMs: 3,
      },
      { ...need, id: 'q2', taskId: 'q2', sinceMs: NOON_MS - 8, reason: 'the agent asks for something' },
      { ...need, id: 'q3', taskId: 'q3', sinceMs: NOON_MS - 7, reason: 'the agent asks for something', expiresInMs: 0 },
    ],
  })
  assert.deepEqual(await ids('question', {}), ['q1', 'q2', 'q3', 'elsewhere'])
  assert.deepEqual(await ids('question', { workspaceId: 'ws_9' }), [])
  assert.deepEqual(await count('question'), [3, 4, 0])
})

test('CV-6 a dead letter is listed until it is handled, with its attempts, its reason and its text', async (t) => {
  const { add, count, source, ids } = await openNeeds(t)
  const fits = envelopeOf('x'.repeat(16 * 1024 - envelopeOf('').length))
  const dead = (id: string, n: number, more: object = {}) => ({
    id,
    n,
    task_id: 't1',
    state: 'dead',
    settled_at: NOON_MS + n,
    ...more,
  })
  await add({
    tasks: [
      { id: 't1', status_message: status('it\n broke') },
      { id: 't2', conversation_id: 'c2' },
    ],
    messages: [
      dead('d1', 1, { failures: 1, envelope: fits }),
      dead('d2', 2, { failures: 1, losses: 1, envelope: fits.replace('xx', 'xxx') }),
      dead('d3', 3, { task_id: 't2', envelope: envelopeOf([{ data: 1 }]) }),
      dead('replayed', 4, { replayed_as: 'd9' }),
      dead('discarded', 5, { discarded_at: NOON_MS }),
      dead('done', 6, { state: 'done' }),
      dead('elsewhere', 7, { workspace_id: 'ws_2' }),
    ],
  })
  const need = { kind: 'dead_letter', workspaceId: 'ws_1', taskId: 't1', contextId: 'c1' }
  const text = `${'x'.repeat(499)}…`
  assert.deepEqual(await source('dead_letter').list({ workspaceId: 'ws_1' }), {
    rows: [
      { ...need, id: 'd1', sinceMs: NOON_MS + 1, reason: 'a message failed for good: it broke now', text },
      { ...need, id: 'd2', sinceMs: NOON_MS + 2, reason: 'a message failed on all 2 attempts: it broke now' },
      { ...need, taskId: 't2', contextId: 'c2', id: 'd3', sinceMs: NOON_MS + 3, reason: 'a message failed for good' },
    ],
  })
  assert.deepEqual(await ids('dead_letter', {}), ['d1', 'd2', 'd3', 'elsewhere'])
  assert.deepEqual(await count('dead_letter'), [3, 4, 0])
})

test('CV-6 an answer that was not sent is listed until a person has handled it', async (t) => {
  const { add, count, source, ids } = await openNeeds(t)
  const body = JSON.stringify({ parts: [{ text: 'blue' }] })
  await add({
    deliveries: [
      { id: 'd1', state: 'failed', body, created_at: NOON_MS - 2 },
      { id: 'd2', state: 'unknown', error: 'the connection\n broke', channel: 'two', created_at: NOON_MS - 1 },
      { id: 'handled', state: 'failed', finished_at: NOON_MS },
      { id: 'pending' },
      { id: 'elsewhere', state: 'failed', workspace_id: 'ws_2' },
    ],
  })
  const need = { kind: 'delivery', workspaceId: 'ws_1', taskId: 't1' }
  const reason = 'an answer to discord'
  assert.deepEqual(await source('delivery').list({ workspaceId: 'ws_1' }), {
    rows: [
      {
        ...need,
        id: 'd1',
        sinceMs: NOON_MS - 2,
        reason: `${reason} could not be sent`,
        to: 'discord general',
        text: 'blue',
      },
      {
        ...need,
        id: 'd2',
        sinceMs: NOON_MS - 1,
        to: 'discord two',
        reason: `${reason} may not have arrived: the connection broke`,
      },
    ],
  })
  assert.deepEqual(await ids('delivery', {}), ['d1', 'd2', 'elsewhere'])
  assert.deepEqual(await count('delivery'), [2, 3, 0])
})

test('CV-6 a page has 100 needs, the oldest first, and the next one goes on where it ended', async (t) => {
  const { add, source } = await openNeeds(t)
  const id = (n: number) => `d${String(n).padStart(3, '0')}`
  const dead = (n: number, atMs: number) => ({ id: id(n), n, task_id: 't1', state: 'dead', settled_at: atMs })
  // The last two of the first page and the second page are of one time.
  await add({
    tasks: [{ id: 't1' }],
    messages: Array.from({ length: 102 }, (_, index) => dead(101 - index, NOON_MS + Math.min(101 - index, 98))),
  })
  const first = await source('dead_letter').list({ workspaceId: 'ws_1' })
  assert.deepEqual(
    first.rows.map((need) => need.id),
    Array.from({ length: 100 }, (_, n) => id(n)),
  )
  assert.equal(first.next, `${NOON_MS + 98}.d099`)
  const second = await source('dead_letter').list({ workspaceId: 'ws_1', after: first.next ?? '' })
  assert.deepEqual([second.rows.map((need) => need.id), second.next], [['d100', 'd101'], undefined])
  const { count, mark } = await source('dead_letter').summary('ws_1')
  assert.equal(count, 102)
  await add({ messages: [dead(103, NOON_MS + 103)] })
  assert.notEqual((await source('dead_letter').summary('ws_1')).mark, mark)
  const one = await source('dead_letter').list({ after: `${NOON_MS + 98}.d100` })
  assert.deepEqual(
    one.rows.map((need) => need.id),
    ['d101', 'd103'],
  )
})
