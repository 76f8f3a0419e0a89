import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SENDER } from '../../../test/fakes/letters.ts'
import { envelopeOf, NOON_MS, openStoredRows } from '../../../test/fakes/stored-rows.ts'
import { dedupeOf, dedupeRange } from '../admit/dedupe.ts'
import type { StoryQuery, StoryScope } from '../readers.ts'
import type { LogItem } from './event-log.ts'
import { createStories } from './story.ts'

const OWNER: StoryScope = { detail: true }
const ADMITTED = { atMs: NOON_MS, type: 'admitted', text: 'admitted from person "admin" through http' }
const itemsOf = (...items: LogItem[]) => JSON.stringify(items)
const working = itemsOf({ t: 'status', state: 'TASK_STATE_WORKING' })

async function openStories(t: TestContext) {
  const rows = await openStoredRows(t)
  const stories = createStories(rows.store)
  const find = (id: string, query: Partial<StoryQuery> = {}) => stories.find({ id, scopeOf: () => OWNER, ...query })
  const found = async (id: string, scopeOf: StoryQuery['scopeOf'] = () => ({})) =>
    (await find(id, { scopeOf }))?.messageId
  return { ...rows, find, found }
}

test('CL-1 a story is found by the id of its message, of its request, or of its task in an older store', async (t) => {
  const { add, found } = await openStories(t)
  await add({
    tasks: [{ id: 't1' }, { id: 'old' }],
    messages: [
      { id: 't1', n: 1 },
      { id: 'm2', n: 2, task_id: 't1' },
      { id: 'm4', n: 4, task_id: 'old' },
      { id: 'm3', n: 3, task_id: 'old' },
    ],
  })
  const ids = ['t1', 'req_t1', 'm2', 'm4', 'old', 'none', 'xreq_t1']
  assert.deepEqual(await Promise.all(ids.map((id) => found(id))), ['t1', 't1', 'm2', 'm4', 'm3', undefined, undefined])
})

test('CL-1 PL-12 a reader finds only the messages of its principal', async (t) => {
  const { add, found } = await openStories(t)
  await add({ tasks: [{ id: 't1', principal: 'ws:A/c1' }], messages: [{ id: 't1' }] })
  const seen = (principal: string) => found('t1', () => ({ principal }))
  assert.deepEqual([await seen('ws:A'), await seen('ws:B'), await seen('ws:A/c2')], ['t1', undefined, undefined])
})

test('CL-1 a sender finds its message by its own id: of several the one that it may see', async (t) => {
  const { add, found } = await openStories(t)
  const sent = (id: string, workspaceId: string, principal: string) => ({
    id,
    workspace_id: workspaceId,
    conversation_id: id,
    idempotency_key: 'mine',
    dedupe: dedupeOf({ workspaceId, principal, key: 'mine' }),
  })
  const [from] = dedupeRange('mine')
  await add({
    workspace_load: [{ workspace_id: 'ws_1' }, { workspace_id: 'ws_2' }],
    tasks: [
      { id: 'a', principal: 'token:1' },
      { id: 'b', principal: 'token:2' },
      { id: 'c', principal: 'token:1', workspace_id: 'ws_2' },
      { id: 'd', principal: 'token:1', workspace_id: 'ws_9' },
      { id: 'e', principal: 'token:1', workspace_id: 'ws_2' },
    ],
    messages: [
      ...[sent('a', 'ws_1', 'token:1'), sent('b', 'ws_1', 'token:2'), sent('c', 'ws_2', 'token:1')],
      { ...sent('d', 'ws_9', 'token:1') },
      // A message of another sender's id may have a dedupe key in the same range.
      { ...sent('e', 'ws_2', 'people'), idempotency_key: 'other', dedupe: Buffer.concat([from, Buffer.alloc(1)]) },
    ],
  })
  assert.equal(await found('mine'), 'c')
  assert.equal(await found('mine', (id) => (id === 'ws_2' ? { principal: 'people' } : {})), 'a')
  assert.equal(await found('mine', () => ({ principal: 'token:2' })), 'b')
  assert.equal(await found('mine', () => ({ principal: 'people' })), undefined)
  assert.equal(await found('other'), undefined)
})

test('CL-1 of many messages with one sender id, a reader finds its own', async (t) => {
  const { add, found } = await openStories(t)
  const ids = Array.from({ length: 101 }, (_, n) => `ws_${100 + n}`)
  await add({
    workspace_load: ids.map((id) => ({ workspace_id: id })),
    tasks: ids.map((id) => ({ id, workspace_id: id })),
    messages: ids.map((id) => ({
      id,
      workspace_id: id,
      conversation_id: id,
      idempotency_key: 'mine',
      dedupe: dedupeOf({ workspaceId: id, principal: 'people', key: 'mine' }),
    })),
  })
  assert.equal(await found('mine', (id) => ({ principal: id === 'ws_100' ? 'people' : 'token:1' })), 'ws_100')
})

test('CL-1 a story has the rows of its message, and the detail of a failure for the owner only', async (t) => {
  const { add, find } = await openStories(t)
  const status = JSON.stringify({ parts: [{ text: 'it broke' }], detail: 'stderr' })
  const event = (seq: number, more: object = {}) => ({ seq, task_id: 't1', message_id: 't1', items: working, ...more })
  const progress = (text: string) => itemsOf({ t: 'turn', event: { type: 'status', text } })
  await add({
    tasks: [{ id: 't1', state: 'TASK_STATE_FAILED', status_message: status }, { id: 't2' }],
    messages: [
      {
        id: 't1',
        state: 'dead',
        envelope: envelopeOf([{ text: 'x'.repeat(200) }, { data: 1 }, { text: 'y'.repeat(101) }]),
      },
      { id: 't2', n: 2, envelope: envelopeOf('x'.repeat(300)) },
    ],
    events: [
      event(2),
      event(3, { items: progress('of t1') }),
      event(4, { delta: 1, items: progress('delta') }),
      event(5, { message_id: 'm2', items: progress('another message') }),
      event(6, { task_id: 't2', items: progress('another task') }),
      event(7, { task_id: 't2', message_id: 't2' }),
      ...[2, 3, 4, 8].map((seq) => event(seq, { workspace_id: 'ws_2', task_id: 't9', items: progress('elsewhere') })),
    ],
  })
  const started = { atMs: NOON_MS, type: 'started', text: 'attempt 1 began' }
  const dead = { atMs: NOON_MS, type: 'waiting', text: 'it is a dead letter: a person may replay or discard it' }
  const steps = [ADMITTED, started, { atMs: NOON_MS, type: 'progress', text: 'of t1' }]
  const story = {
    messageId: 't1',
    taskId: 't1',
    workspaceId: 'ws_1',
    contextId: 'c1',
    sender: SENDER,
    senderMessageId: 'sent',
    text: `${'x'.repeat(200)}${'y'.repeat(99)}…`,
    taskState: 'TASK_STATE_FAILED',
    deliveries: [],
  }
  assert.deepEqual(await find('t1', { scopeOf: () => ({}) }), { ...story, steps: [...steps, dead] })
  const detail = { atMs: NOON_MS, type: 'detail', text: 'the program said: stderr' }
  assert.deepEqual(await find('t1'), { ...story, steps: [...steps, detail, dead] })
  const second = await find('t2')
  assert.deepEqual([second?.text, second?.steps], ['x'.repeat(300), [ADMITTED, started]])
})

test('CL-1 a story comes in parts of 2000 rows, and the next part goes on with the same attempt', async (t) => {
  const { add, find, sql } = await openStories(t)
  await add({ tasks: [{ id: 't1' }], messages: [{ id: 't1' }] })
  await sql(
    `insert into events (workspace_id, seq, task_id, message_id, at_ms, items) with recursive k (seq) as
       (select 1 union all select seq + 1 from k where seq < 2001)
     select 'ws_1', seq, 't1', 't1', 0, case when seq = 1 then $1 when seq >= 2000 then $2 else '[]' end from k`,
    ...[working, itemsOf({ t: 'late', parts: [] })],
  )
  const part = async (after: string | undefined) => {
    const story = await find('t1', { ...(after !== undefined && { after }) })
    return [story?.steps.map(({ type }) => type), story?.next]
  }
  assert.deepEqual(await part(undefined), [['admitted', 'started', 'late'], '2000.1.1.0'])
  assert.deepEqual(await part('2000.1.1.0'), [['late'], undefined])
  await add({ events: [{ seq: 2002, task_id: 't1', message_id: 't1', items: itemsOf({ t: 'reply' }) }] })
  const last = await find('t1', { after: '2001.1.1.0' })
  assert.deepEqual(last?.steps, [{ atMs: NOON_MS, type: 'answered', text: 'attempt 1 gave the answer' }])
  await assert.rejects(find('t1', { after: 'x' }), { code: 'invalid_request' })
})

test('CL-1 AG-16 the decisions about permissions stay in the story when its log is pruned', async (t) => {
  const { add, find } = await openStories(t)
  const ask = (id: string, answeredAt: number | null, more: object = {}) => ({
    message_id: 't1',
    task_id: 't1',
    id,
    state: 'answered',
    tool: 'Bash',
    answered_at: answeredAt,
    ...more,
  })
  await add({
    tasks: [{ id: 't1' }],
    messages: [{ id: 't1' }],
    asks: [
      ask('1', 4, { answered_by: 'Ana', answered_principal: 'people', answered_door: 'discord' }),
      ask('2', 3, { state: 'denied' }),
      ask('3', 2, { state: 'denied', answered_by: 'Bo' }),
      ask('a question', 1, { tool: null }),
      ask('open', null, { state: 'open' }),
      ask('of another', 5, { message_id: 't2', task_id: 't2' }),
    ],
  })
  const steps = async (scope: StoryScope) =>
    (await find('t1', { scopeOf: () => scope }))?.steps.map(({ atMs, text }) => [atMs, text]).slice(1)
  const pruned = [NOON_MS, 'later events are no longer kept']
  assert.deepEqual(await steps(OWNER), [
    [2, '"Bo" () denied the use of Bash through '],
    [3, 'no answer came in time, so the use of Bash was denied'],
    [4, '"Ana" (people) allowed the use of Bash through discord'],
    pruned,
  ])
  await add({ events: [{ seq: 1, task_id: 't1', message_id: 't1', items: working }] })
  assert.deepEqual(await steps(OWNER), [[NOON_MS, 'attempt 1 began']])
})

test('CL-1 a story has the deliveries of its message and the webhooks of its task; URLs and errors are for the owner', async (t) => {
  const { add, find } = await openStories(t)
  const hook = (id: string, url: string, more: object = {}) => ({
    task_id: 't1',
    id,
    config: JSON.stringify({ url }),
    ...more,
  })
  await add({
    tasks: [{ id: 't1' }],
    messages: [{ id: 't1' }],
    deliveries: [
      { id: 'd2', state: 'failed', tries: 3, error: 'no such channel' },
      { id: 'd1', channel: 'random', tries: 1 },
      { id: 'd3', message_id: 'm2' },
      { id: 'd4', task_id: 't2' },
    ],
    push_configs: [
      hook('p2', 'https://example.com/secret', { tries: 2, reason: 'refused' }),
      hook('p1', 'no url'),
      { ...hook('p3', 'https://example.org/'), task_id: 't2' },
    ],
  })
  const deliveries = async (scope: StoryScope) => (await find('t1', { scopeOf: () => scope }))?.deliveries
  const random = { to: 'discord random', state: 'pending', tries: 1 }
  const general = { to: 'discord general', state: 'failed', tries: 3 }
  const webhook = { to: 'webhook', state: 'active', tries: 0 }
  assert.deepEqual(await deliveries({}), [random, general, webhook, { ...webhook, tries: 2 }])
  assert.deepEqual(await deliveries(OWNER), [
    ...[random, { ...general, error: 'no such channel' }, webhook],
    { ...webhook, to: 'webhook https://example.com', tries: 2, error: 'refused' },
  ])
  await add({ deliveries: Array.from({ length: 21 }, (_, n) => ({ id: `e${n}` })) })
  assert.equal((await deliveries(OWNER))?.length, 25)
})
