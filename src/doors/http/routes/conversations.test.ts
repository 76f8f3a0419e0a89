import assert from 'node:assert/strict'
import test from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import { openTestStore } from '../../../../test/harness/stores/sqlite-store.ts'
import type { ChatPage, ConversationMessage, Conversations } from '../../../inbox/readers.ts'
import { envelopeOf, writeEnvelope } from '../../../protocol/envelope.ts'
import type { TokenRole } from '../../../workspaces/tokens.ts'

const PATH = `/workspaces/${WORKSPACE_ID}/conversations`
const SENDER = { kind: 'person', id: 'a', name: 'ana', door: 'http' } as const
const AT = 1_700_000_000_000
const at = (seconds: number) => new Date(AT + seconds * 1000).toISOString()
const BARE: ConversationMessage = {
  id: 'm_1',
  taskId: 't_1',
  n: 1,
  senderMessageId: 's_1',
  sender: SENDER,
  parts: [{ text: 'Hel' }, { text: 'lo' }],
  state: 'queued',
  admittedAtMs: AT,
  tools: [],
}
const BARE_VIEW = {
  id: 'm_1',
  task_id: 't_1',
  n: 1,
  sender_message_id: 's_1',
  sender: SENDER,
  text: 'Hello',
  attachments: [],
  state: 'queued',
  sent_at: at(0),
  tools: [],
}

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

test('CV-2 a conversation is read in pages of 20 messages; owners also see what the program printed', async (t) => {
  const page: ChatPage = {
    id: 'c_1',
    contextId: 'x',
    principal: 'people',
    messages: [BARE],
    seq: 9,
    hasNewer: false,
    before: 1,
  }
  const conversations = recordPart<Conversations>({ read: page })
  const call = await openRoutes(t, { conversations: conversations.part })
  const { json } = await call(`GET ${PATH}/c_1`, { role: 'viewer' })
  const view = { id: 'c_1', context_id: 'x', principal: 'people', messages: [BARE_VIEW], seq: 9, has_newer: false }
  assert.deepEqual(json, { ...view, before: 1 })
  await call(`GET ${PATH}/c_1?limit=50&before=1`, { role: 'member' })
  await call(`GET ${PATH}/c_1?limit=1&before=${Number.MAX_SAFE_INTEGER}`)
  const query = { workspaceId: WORKSPACE_ID, conversation: 'c_1' }
  assert.deepEqual(conversations.take(), [
    ['read', { ...query, limit: 20, detail: false }],
    ['read', { ...query, limit: 50, detail: true, before: 1 }],
    ['read', { ...query, limit: 1, detail: true, before: Number.MAX_SAFE_INTEGER }],
  ])
  for (const wrong of ['limit=0', 'limit=51', 'before=0'])
    assert.equal((await call(`GET ${PATH}/c_1?${wrong}`)).status, 400, wrong)
  const { before: _, ...first } = page
  const whole = await openRoutes(t, { conversations: recordPart<Conversations>({ read: first }).part })
  assert.deepEqual((await whole(`GET ${PATH}/c_1`)).json, view)
})

test('CV-2 a message shows its state, times, reply, tools, usage and what it waits for', async (t) => {
  const sum = { turns: 1, unknownTurns: 0, unknownCostTurns: 0, inputTokens: 1, outputTokens: 2, costUsd: null }
  const full: ConversationMessage = {
    ...BARE,
    state: 'failed',
    place: 2,
    reason: 'it broke',
    code: 'exit',
    detail: 'stderr',
    lostTurns: 1,
    nextTryAtMs: AT + 3000,
    startedAtMs: AT + 1000,
    endedAtMs: AT + 2500,
    hasMoreTools: true,
    reply: { parts: [{ text: 'Hi' }], isPartial: true, artifacts: [] },
    tools: [
      { name: 'Bash', state: 'started', atMs: AT },
      { name: 'Edit', subject: 'a', state: 'finished', atMs: AT, durationMs: 5, diffs: [{ path: 'a', diff: '+x' }] },
    ],
    usage: { ...sum, durationMs: 1500 },
    ask: { id: 'a_1', tool: 'Bash', subject: 'ls', askedAtMs: AT, expiresAtMs: AT + 60_000 },
    isHandled: true,
    replayedAs: 't_2',
  }
  const started = { ...BARE, startedAtMs: AT + 1000 }
  const page: ChatPage = {
    id: 'c',
    contextId: 'x',
    principal: 'people',
    messages: [full, started],
    seq: 9,
    hasNewer: false,
  }
  const call = await openRoutes(t, { conversations: recordPart<Conversations>({ read: page }).part })
  const [shown, running] = (await call(`GET ${PATH}/c_1`)).json.messages
  assert.deepEqual(shown, {
    ...BARE_VIEW,
    state: 'failed',
    place: 2,
    reason: 'it broke',
    code: 'exit',
    detail: 'stderr',
    interruptions: 1,
    next_try_at: at(3),
    started_at: at(1),
    ended_at: at(2.5),
    duration_ms: 1500,
    reply: { text: 'Hi', partial: true, artifacts: [] },
    tools: [
      { name: 'Bash', state: 'started', at: at(0) },
      { name: 'Edit', subject: 'a', state: 'finished', at: at(0), duration_ms: 5, diffs: [{ path: 'a', diff: '+x' }] },
    ],
    more_tools: true,
    usage: {
      turns: 1,
      unknown_turns: 0,
      unknown_cost_turns: 0,
      input_tokens: 1,
      output_tokens: 2,
      cost_usd: null,
      duration_ms: 1500,
    },
    ask: { id: 'a_1', tool: 'Bash', subject: 'ls', asked_at: at(0), expires_at: at(60) },
    handled: true,
    replayed_as: 't_2',
  })
  assert.deepEqual(running, { ...BARE_VIEW, started_at: at(1) })
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
  const message = { ...BARE, parts, reply: { parts: [], isPartial: false, artifacts } }
  const page: ChatPage = { id: 'c', contextId: 'x', principal: 'people', messages: [message], seq: 9, hasNewer: true }
  const call = await openRoutes(t, { conversations: recordPart<Conversations>({ read: page }).part })
  const [shown] = (await call(`GET ${PATH}/c_1`)).json.messages
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
