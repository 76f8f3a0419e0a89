import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SENDER } from '../../../test/fakes/letters.ts'
import { envelopeOf, NOON_MS, openStoredRows, replyOf } from '../../../test/fakes/stored-rows.ts'
import type { ConversationQuery } from '../readers.ts'
import { createConversations } from './conversations.ts'

const MIB = 1024 * 1024
const KIB = 1024

interface Talk {
  readonly id: string
  readonly envelope?: string
  readonly reply?: string
}

async function openConversations(t: TestContext) {
  const rows = await openStoredRows(t)
  const conversations = createConversations(rows.store)
  const list = (query: Partial<ConversationQuery> = {}) =>
    conversations.list({ workspaceId: 'ws_1', limit: 10, ...query })
  const ids = async (query: Partial<ConversationQuery> = {}) => {
    const page = await list(query)
    return page.conversations.map(({ id }) => id).join(' ') + (page.next === undefined ? '' : ' ...')
  }
  /** Conversations of one message each, the newest first. */
  const talks = (given: readonly Talk[]) =>
    rows.add({
      conversations: given.map(({ id }) => ({ id, last_n: 1 })),
      tasks: given.map(({ id }, index) => ({ id: `t-${id}`, conversation_id: id, updated_at: NOON_MS - index })),
      messages: given.map(({ id, ...message }) => ({ id: `t-${id}`, conversation_id: id, ...message })),
    })
  return { ...rows, list, ids, talks }
}

const sized = (bytes: number, word = '') => envelopeOf(word + 'x'.repeat(bytes - envelopeOf(word).length))

test('CV-2 conversations come once each, the last changed first, with author, title, state and size', async (t) => {
  const { add, list } = await openConversations(t)
  await add({
    conversations: [
      { id: 'c1', last_n: 3 },
      { id: 'c2', last_n: 1, context_id: 'named', principal: 'token:1' },
      { id: 'c3', last_n: 1, workspace_id: 'ws_2' },
    ],
    tasks: [
      { id: 't1', updated_at: NOON_MS + 9 },
      { id: 't2', updated_at: NOON_MS + 1, state: 'TASK_STATE_INPUT_REQUIRED' },
      { id: 't3', conversation_id: 'c2', updated_at: NOON_MS + 2 },
      { id: 't4', conversation_id: 'c3', workspace_id: 'ws_2', updated_at: NOON_MS },
    ],
    messages: [
      { id: 't1', n: 1, envelope: envelopeOf([{ text: 'paint\n it' }, { data: 1 }, { text: 'blue' }]) },
      { id: 't2', n: 2, state: 'dead' },
      { id: 'm3', n: 3, task_id: 't2' },
      { id: 't3', n: 1, conversation_id: 'c2', state: 'dead', sender: JSON.stringify({ ...SENDER, name: 'Ana' }) },
      { id: 't4', n: 1, conversation_id: 'c3', workspace_id: 'ws_2' },
    ],
  })
  const first = { id: 'c2', contextId: 'named', principal: 'token:1', title: 'hello', state: 'failed', messages: 1 }
  const second = { id: 'c1', contextId: 'c1', principal: 'people', title: 'paint it blue', messages: 3 }
  assert.deepEqual(await list(), {
    conversations: [
      { ...first, sender: { ...SENDER, name: 'Ana' }, updatedAtMs: NOON_MS + 2 },
      { ...second, sender: SENDER, state: 'waiting_for_you', updatedAtMs: NOON_MS + 1 },
    ],
  })
})

test('CV-2 a page ends at its limit, and the next one goes on after its last task, also at the same time', async (t) => {
  const { add, list } = await openConversations(t)
  const all = ['a', 'b', 'c', 'd']
  await add({
    conversations: all.map((id) => ({ id, last_n: 1 })),
    tasks: all.map((id) => ({ id, conversation_id: id, updated_at: NOON_MS - (id === 'a' ? 1 : 0) })),
    messages: all.map((id) => ({ id, conversation_id: id })),
  })
  await add({ tasks: [{ id: 'bb', workspace_id: 'ws_2', conversation_id: 'b' }] })
  const pages = async (limit: number) => {
    const found: string[] = []
    for (let after: string | undefined, page = 0; page < 9; page++) {
      const { conversations, next } = await list({ limit, ...(after !== undefined && { after }) })
      found.push(conversations.map(({ id }) => id).join(''))
      if (next === undefined) return found
      after = next
    }
    return found
  }
  assert.deepEqual([await pages(5), await pages(3), await pages(2)], [['dcba'], ['dcb', 'a'], ['dc', 'ba', '']])
})

test('CV-2 a page looks at 500 tasks, and the reader goes on from there', async (t) => {
  const { add, list, sql } = await openConversations(t)
  await add({
    conversations: [{ id: 'c1', last_n: 2 }],
    tasks: [{ id: 'last', updated_at: NOON_MS - 1 }],
    messages: [{ id: 'last', n: 2 }],
  })
  const insert = (from: number, to: number) =>
    sql(
      `insert into tasks (id, workspace_id, conversation_id, context_id, principal, state, created_at, updated_at)
       with recursive k (n) as (select $1 union all select n + 1 from k where n < $2)
       select 't' || cast(n as integer), 'ws_1', 'c1', 'c1', 'people', 'TASK_STATE_COMPLETED', 0, $3 from k`,
      ...[from, to, NOON_MS],
    )
  await insert(1001, 1499)
  assert.equal((await list()).conversations.length, 1)
  await insert(1500, 1500)
  assert.deepEqual(await list(), { conversations: [], next: `${NOON_MS}.t1001` })
  await insert(1501, 1501)
  assert.deepEqual(await list(), { conversations: [], next: `${NOON_MS}.t1002` })
  const { conversations, next } = await list({ after: `${NOON_MS}.t1001` })
  assert.deepEqual([conversations.map(({ id }) => id), next], [['c1'], undefined])
})

test('CV-2 the title is the first 80 characters of the first message; a large one has its size instead', async (t) => {
  const { list, talks } = await openConversations(t)
  await talks([
    { id: 'a', envelope: envelopeOf('x'.repeat(80)) },
    { id: 'b', envelope: envelopeOf('x'.repeat(81)) },
    { id: 'c', envelope: sized(16 * KIB) },
    { id: 'd', envelope: sized(16 * KIB + 1) },
    { id: 'e', envelope: envelopeOf([{ data: 1 }]) },
  ])
  const cut = `${'x'.repeat(79)}…`
  assert.deepEqual(
    (await list()).conversations.map(({ title }) => title),
    ['x'.repeat(80), cut, cut, 'a message of 17 KB', 'a message without text'],
  )
})

test('CV-2 a search finds words of messages and replies in any case, with all their characters, and no field names', async (t) => {
  const { ids, talks } = await openConversations(t)
  await talks([
    { id: 'plain', envelope: envelopeOf('Paint the House', 'id~1') },
    { id: 'reply', reply: replyOf('The house is 100% "done"') },
    { id: 'other', envelope: envelopeOf('ÄPFEL and snake_case\nhere'), reply: replyOf('100 of snakeXcase done!') },
    { id: 'data', envelope: envelopeOf('none'), reply: JSON.stringify({ parts: [{ data: '~' }], artifacts: [] }) },
  ])
  const found = (search: string) => ids({ search })
  assert.equal(await found('HOUSE'), 'plain reply')
  assert.equal(await found('100%'), 'reply')
  assert.equal(await found('"done"'), 'reply')
  assert.equal(await found('snake_case'), 'other')
  assert.equal(await found('case\nhere'), 'other')
  assert.equal(await found('äpfel'), 'other')
  assert.equal(await found('done!'), 'other')
  assert.equal(await found('~'), '')
  assert.equal(await found('messageId'), '')
})

test('CV-2 a search reads the last 50 messages of a conversation, up to 32 KiB each, and five that seem to match', async (t) => {
  const { add, ids, talks, sql } = await openConversations(t)
  await talks([{ id: 'c1' }])
  await sql(`update conversations set last_n = 60`)
  await sql(`update messages set n = 60`)
  const message = (n: number, envelope: string) => ({ id: `m${n}`, n, task_id: 't-c1', envelope })
  await add({
    messages: [
      ...[message(10, envelopeOf('ten')), message(11, envelopeOf('eleven'))],
      ...[message(12, sized(32 * KIB, 'twelve ')), message(13, sized(32 * KIB + 1, 'thirteen '))],
      ...[message(14, envelopeOf('role')), message(15, envelopeOf('a role'))],
      ...[16, 17, 18, 19].map((n) => message(n, envelopeOf('x'))),
    ],
  })
  const found = async (search: string) => (await ids({ search })) === 'c1'
  assert.deepEqual([await found('ten'), await found('eleven')], [false, true])
  assert.deepEqual([await found('twelve'), await found('thirteen')], [true, false])
  // Every stored message has a field of this name. The newest is 60, so five are 60, 19, 18, 17 and 16.
  assert.equal(await found('role'), false)
  await sql('delete from messages where n = 16')
  assert.deepEqual([await found('a role'), await found('role')], [true, true])
  const reply = (bytes: number) => replyOf('y'.repeat(bytes - replyOf('').length))
  await sql('update messages set reply = $1 where n = 11', reply(32 * KIB))
  assert.equal(await found('yyy'), true)
  await sql('update messages set reply = $1 where n = 11', reply(32 * KIB + 1))
  assert.equal(await found('yyy'), false)
})

test('CV-2 a search ends after 4 MiB of messages and replies, and the reader goes on from there', async (t) => {
  const { ids, talks, sql } = await openConversations(t)
  const large = (bytes: number) => replyOf('x'.repeat(bytes - replyOf('').length - envelopeOf('').length))
  await talks([
    { id: 'a', envelope: envelopeOf(''), reply: large(4 * MIB - 1) },
    { id: 'b', envelope: sized(33 * KIB) },
    { id: 'c', envelope: envelopeOf('paint') },
  ])
  assert.equal(await ids({ search: 'paint' }), 'c ...')
  assert.equal(await ids({ search: 'none' }), ' ...')
  await sql(`update messages set envelope = $1 where id = 't-c'`, sized(33 * KIB))
  assert.equal(await ids({ search: 'none' }), '')
  await sql(`update messages set reply = $1 where id = 't-a'`, large(4 * MIB))
  assert.equal(await ids({ search: 'none' }), ' ...')
  assert.equal(await ids({ search: 'none', after: `${NOON_MS}.t-a` }), '')
})
