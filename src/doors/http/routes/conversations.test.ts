import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes } from '../../../../test/harness/clients/route-calls.ts'
import { openTestStore } from '../../../../test/harness/stores/sqlite-store.ts'
import { envelopeOf, writeEnvelope } from '../../../protocol/envelope.ts'
import { writeReply } from '../../../protocol/stored-reply.ts'
import type { Value } from '../../../store/store.ts'
import type { TokenRole } from '../../../workspaces/tokens.ts'

const PATH = `/workspaces/${WORKSPACE_ID}/conversations`
const SENDER = { kind: 'person', id: 'a', name: 'ana', door: 'http' } as const
const AT = 1_700_000_000_000
const at = (seconds: number) => new Date(AT + seconds * 1000).toISOString()
test('CV-2 the conversations of a workspace are listed in pages of 30, and searched', async (t) => {
  const { store, insert } = openTestStore(t)
  const add = async (id: string, text: string, n: number) => {
    const common = { workspace_id: WORKSPACE_ID, conversation_id: `c_${id}` }
    await insert('conversations', { id: `c_${id}`, workspace_id: WORKSPACE_ID, context_id: id, last_n: 1 })
    await insert('tasks', { ...common, id: `t_${id}`, state: 'TASK_STATE_COMPLETED', updated_at: AT + n * 1000 })
    const envelope = writeEnvelope(envelopeOf({ messageId: 's', parts: [{ text }] }))
    const sender = JSON.stringify(SENDER)
    await insert('messages', { ...common, id: `m_${id}`, task_id: `t_${id}`, n: 1, state: 'done', sender, envelope })
  }
  for (let n = 1; n <= 31; n++) await add(String(n), n === 1 ? 'Hello first' : 'Hello', n)
  const call = await openRoutes(t, { store })
  const list = async (query: string) => (await call(`GET ${PATH}${query}`)).json
  const page = await list('')
  assert.deepEqual([page.conversations.length, page.next], [30, `${AT + 2000}.t_2`])
  const oldest = {
    id: 'c_1',
    context_id: '1',
    principal: 'people',
    sender: SENDER,
    title: 'Hello first',
    state: 'answered',
    messages: 1,
    updated_at: at(1),
  }
  assert.deepEqual(await list(`?after=${page.next}`), { conversations: [oldest] })
  assert.deepEqual(await list('?limit=50&search=%20first%20'), { conversations: [oldest] })
  assert.equal((await list('?limit=1&search=%20')).conversations.length, 1)
  for (const wrong of ['limit=0', 'limit=51', `search=${'x'.repeat(201)}`])
    assert.equal((await call(`GET ${PATH}?${wrong}`)).status, 400, wrong.slice(0, 20))
  assert.equal((await call('GET /workspaces/ws_01M7FPH65GBDK8DY0646KAE618/conversations')).status, 404)
})

/** A conversation `c` of this many failed messages, and a door on its store. */
async function openChat(t: TestContext, messages: number, more: Readonly<Record<string, Value>> = {}) {
  const { store, insert } = openTestStore(t)
  const common = { workspace_id: WORKSPACE_ID, conversation_id: 'c' }
  await insert('workspace_load', { workspace_id: WORKSPACE_ID, slots: 1, hosted: 1, seq: 9 })
  await insert('conversations', { id: 'c', workspace_id: WORKSPACE_ID, context_id: 'x', last_n: messages })
  const status = JSON.stringify({ parts: [{ text: 'it broke' }], code: 'exit', detail: 'stderr' })
  for (let n = 1; n <= messages; n++) {
    const id = `m_${n}`
    await insert('tasks', { ...common, id, context_id: 'x', state: 'TASK_STATE_FAILED', status_message: status })
    const envelope = writeEnvelope(envelopeOf({ messageId: `s_${n}`, parts: [{ text: 'Hel' }, { text: 'lo' }] }))
    const times = { begun: 1, admitted_at: AT, ready_at: AT, leased_at: AT + 1000, settled_at: AT + 2500 }
    const row = { ...common, ...times, id, task_id: id, n, state: 'dead', sender: JSON.stringify(SENDER), envelope }
    await insert('messages', { ...row, ...more })
  }
  return { insert, call: await openRoutes(t, { store }) }
}

test('CV-2 a conversation is read in pages of 20 messages; owners also see what the program printed', async (t) => {
  const { call } = await openChat(t, 51)
  const read = async (query: string, role: TokenRole = 'viewer') => {
    const { messages, before, has_newer } = (await call(`GET ${PATH}/c${query}`, { role })).json
    return [messages.length, messages.at(-1).n, before, has_newer, messages[0].detail]
  }
  assert.deepEqual(await read(''), [20, 51, 32, false, undefined])
  assert.deepEqual(await read('?limit=50&before=51', 'member'), [50, 50, undefined, true, 'stderr'])
  assert.deepEqual(await read(`?limit=1&before=${Number.MAX_SAFE_INTEGER}`, 'admin'), [1, 51, 51, false, 'stderr'])
  assert.deepEqual(await read('?limit=4&at=m_5'), [4, 6, 3, true, undefined])
  for (const wrong of ['limit=0', 'limit=51', 'before=0'])
    assert.equal((await call(`GET ${PATH}/c?${wrong}`)).status, 400, wrong)
})

test('CV-2 a message shows its state, times, reply, tools and usage', async (t) => {
  const reply = writeReply({ parts: [{ text: 'Hi' }], artifacts: [] })
  const { call, insert } = await openChat(t, 1, { losses: 1, replayed_as: 't_2', reply })
  const use = { type: 'tool', name: 'Edit', subject: 'a' }
  const diffs = [{ path: 'a', diff: '+x' }]
  for (const [seq, event] of [
    { ...use, state: 'started' },
    { ...use, state: 'finished', diffs },
  ].entries()) {
    const place = { workspace_id: WORKSPACE_ID, task_id: 'm_1', message_id: 'm_1' }
    await insert('events', { ...place, seq, at_ms: AT + 5 * seq, items: JSON.stringify([{ t: 'turn', event }]) })
  }
  const used = { input_tokens: 1, output_tokens: 2, duration_ms: 1500, ended_at: AT }
  await insert('turn_usage', { workspace_id: WORKSPACE_ID, message_id: 'm_1', ...used })
  const { json } = await call(`GET ${PATH}/c`)
  const message = {
    id: 'm_1',
    task_id: 'm_1',
    n: 1,
    sender_message_id: 's_1',
    sender: SENDER,
    text: 'Hello',
    attachments: [],
    state: 'failed',
    reason: 'it broke',
    code: 'exit',
    detail: 'stderr',
    sent_at: at(0),
    started_at: at(1),
    ended_at: at(2.5),
    duration_ms: 1500,
    interruptions: 1,
    reply: { text: 'Hi', partial: false, artifacts: [] },
    tools: [{ ...use, type: undefined, state: 'finished', at: at(0), duration_ms: 5, diffs }],
    usage: {
      turns: 1,
      unknown_turns: 0,
      unknown_cost_turns: 1,
      input_tokens: 1,
      output_tokens: 2,
      cost_usd: null,
      duration_ms: 1500,
    },
    handled: true,
    replayed_as: 't_2',
  }
  const page = { id: 'c', context_id: 'x', principal: 'people', messages: [message], seq: 9, has_newer: false }
  assert.deepEqual(json, JSON.parse(JSON.stringify(page)))
})

test('CV-2 files of a message and of a reply are shown by name, type and size, and long texts are cut', async (t) => {
  const raw = Buffer.from('12345').toString('base64')
  const parts = [
    { text: 'a' },
    { raw, filename: 'a.png', mediaType: 'image/png' },
    { data: { x: 1 } },
    { url: 'https://elsewhere.test/x' },
    { text: 'b' },
  ]
  const files = [
    { name: 'a.png', media_type: 'image/png', bytes: 5, part: 1 },
    { media_type: 'application/json', part: 2 },
    { url: 'https://elsewhere.test/x', part: 3 },
  ]
  const artifacts = [
    { artifactId: 'f', name: 'n', description: 'd', parts },
    { artifactId: 'long', parts: [{ text: 'x'.repeat(2001) }] },
    { artifactId: 'file', parts: [{ raw }] },
  ]
  const envelope = writeEnvelope(envelopeOf({ messageId: 's', parts }))
  const { call } = await openChat(t, 1, { envelope, reply: writeReply({ parts: [], artifacts }) })
  const [shown] = (await call(`GET ${PATH}/c`)).json.messages
  assert.deepEqual([shown.text, shown.attachments], ['ab', files])
  assert.deepEqual(shown.reply, {
    text: '',
    partial: false,
    artifacts: [
      { id: 'f', name: 'n', description: 'd', text: 'ab', files },
      { id: 'long', text: 'x'.repeat(2000), files: [] },
      { id: 'file', files: [{ bytes: 5, part: 0 }] },
    ],
  })
})

test('CV-11 an agent searches only its own workspace, and a search needs a text', async (t) => {
  const { store, insert } = openTestStore(t)
  for (const [id, workspace] of [['1', WORKSPACE_ID] as const, ['2', 'ws_other'] as const]) {
    await insert('conversations', { id: `c_${id}`, workspace_id: workspace })
    const envelope = writeEnvelope(envelopeOf({ messageId: 's', parts: [{ text: 'wax' }] }))
    const place = { workspace_id: workspace, conversation_id: `c_${id}` }
    await insert('messages', { ...place, id: `m_${id}`, state: 'done', sender: JSON.stringify(SENDER), envelope })
  }
  const call = await openRoutes(t, { store })
  const search = async (query: string, role: TokenRole = 'admin') =>
    (await call(`GET /messages?${query}`, { role })).json.messages.map(({ id }: { id: string }) => id)
  assert.deepEqual(await search('search=x'), ['m_2', 'm_1'])
  assert.deepEqual(await search('search=x&after=m_2'), ['m_1'])
  assert.deepEqual(await search('search=x', 'workspace'), ['m_1'])
  assert.equal((await call('GET /messages?search=x&workspace_id=ws_other', { role: 'workspace' })).status, 403)
  for (const query of ['', '?search=%20', '?search=x&after=%27', '?search=x&limit=51']) {
    assert.equal((await call(`GET /messages${query}`)).status, 400, query)
  }
})
