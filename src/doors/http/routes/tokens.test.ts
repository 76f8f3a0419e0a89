import assert from 'node:assert/strict'
import test from 'node:test'
import { createFakePlatform, secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes } from '../../../../test/harness/clients/route-calls.ts'
import { type OpenDoor, openDoor, sendParams } from '../../../../test/harness/open-door.ts'
import { openTestStore, START_MS } from '../../../../test/harness/stores/sqlite-store.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import type { Tokens } from '../../../workspaces/tokens.ts'

const admin = { token: secretOf('admin') }
const create = ({ sendRequest }: OpenDoor, input: unknown) =>
  sendRequest('/tokens', { ...admin, method: 'POST', body: JSON.stringify(input) })

test('PL-12 a token is created, used, rotated and revoked over HTTP', async (t) => {
  const opened = await openDoor(t)
  const made = await create(opened, { name: 'ci', role: 'caller', workspaces: [WORKSPACE_ID], expires_in: '720h' })
  assert.equal(made.status, 201)
  assert.deepEqual(Object.keys(made.json), ['id', 'token'])
  assert.equal(made.headers['cache-control'], 'no-store')
  const { id, token } = made.json
  assert.ok((await opened.rpc('SendMessage', sendParams('hello'), { token })).json.result)
  const rotated = await opened.sendRequest(`/tokens/${id}/rotate`, {
    ...admin,
    method: 'POST',
    body: '{"overlap":"5m"}',
  })
  assert.equal(rotated.json.id, id)
  assert.ok((await opened.rpc('SendMessage', sendParams('hello'), { token: rotated.json.token })).json.result)
  assert.equal((await opened.sendRequest(`/tokens/${id}`, { ...admin, method: 'DELETE' })).status, 204)
  assert.equal((await opened.rpc('SendMessage', sendParams('hello'), { token: rotated.json.token })).status, 401)
  assert.equal((await opened.sendRequest(`/tokens/${id}`, { ...admin, method: 'DELETE' })).status, 404)
})

test('PL-12 an invalid token is refused with the name of the field', async (t) => {
  const opened = await openDoor(t)
  const wrong: readonly [string, unknown][] = [
    ['name', { role: 'member' }],
    ['name', { name: ' ', role: 'member' }],
    ['role', { name: 'x' }],
    ['role', { name: 'x', role: 'owner' }],
    ['expires_in', { name: 'x', role: 'member', expires_in: '30 days' }],
    ['expires_in', { name: 'x', role: 'member', expires_in: '-5m' }],
    ['expires_in', { name: 'x', role: 'member', expires_in: '1000000h' }],
    ['workspace_id', { name: 'x', role: 'workspace', workspace_id: 'ws_nobody' }],
    ['workspaces', { name: 'x', role: 'caller', workspaces: [WORKSPACE_ID, 'ws_nobody'] }],
    ['workspaces', { name: 'x', role: 'caller', workspaces: [] }],
    ['scope', { name: 'x', role: 'member', scope: 'all' }],
  ]
  for (const [field, input] of wrong) {
    const { status, json } = await create(opened, input)
    assert.equal(status, 400, JSON.stringify(input))
    assert.ok(json.error.message.includes(`"${field}"`), json.error.message)
  }
  const overlap = { ...admin, method: 'POST', body: '{"overlap":"300h"}' }
  assert.equal((await opened.sendRequest('/tokens/member/rotate', overlap)).status, 400)
})

test('PL-12 revoking a token ends its waiting calls with that reason', async (t) => {
  const opened = await openDoor(t)
  const { json } = await create(opened, { name: 'gone', role: 'member' })
  const waiting = opened.rpc('SendMessage', sendParams('slow'), { token: json.token })
  await waitUntil(() => opened.fakePlatform.waiting() === 1, 'the call waits')
  await opened.sendRequest(`/tokens/${json.id}`, { ...admin, method: 'DELETE' })
  const answer = await waiting
  assert.equal(answer.status, 401)
  assert.match(answer.json.error.message, /revoked while its call waited/)
  assert.doesNotMatch(answer.text, /"task"/)
})

/** The tokens of a fake platform, with a memory of what was made and rotated. */
function createTokens() {
  const { tokens } = createFakePlatform()
  const calls: unknown[][] = []
  const recorded: Tokens = {
    ...tokens,
    async create(input) {
      calls.push(['create', input])
      return { id: 'tok_1', secret: 'made' }
    },
    async rotate(id, overlapMs) {
      calls.push(['rotate', id, overlapMs])
      return { id, secret: 'rotated' }
    },
    async revokeConversations(id) {
      calls.push(['revokeConversations', id])
    },
  }
  return { tokens: recorded, take: () => calls.splice(0) }
}

const NOTHING_MORE = {
  workspaceId: undefined,
  conversationId: undefined,
  workspaces: undefined,
  expiresInMs: undefined,
}

test('PL-12 a token is made with the fields that were given, and its secret is only in that answer', async (t) => {
  const { tokens, take } = createTokens()
  const call = await openRoutes(t, { tokens })
  const make = (body: object) => call('POST /tokens', { body })
  const { status, json, headers } = await make({ name: ' ci ', role: 'viewer' })
  assert.deepEqual([status, json], [201, { id: 'tok_1', token: 'made' }])
  assert.deepEqual([headers.location, headers['cache-control']], ['/tokens/tok_1', 'no-store'])
  const scope = { workspace_id: WORKSPACE_ID, conversation_id: 'c_1', expires_in: '1.5h' }
  await make({ name: 'turn', role: 'conversation', ...scope })
  await make({ name: 'ci', role: 'caller', workspaces: [WORKSPACE_ID] })
  assert.deepEqual(take(), [
    ['create', { ...NOTHING_MORE, name: 'ci', role: 'viewer' }],
    [
      'create',
      {
        ...NOTHING_MORE,
        name: 'turn',
        role: 'conversation',
        workspaceId: WORKSPACE_ID,
        conversationId: 'c_1',
        expiresInMs: 5_400_000,
      },
    ],
    ['create', { ...NOTHING_MORE, name: 'ci', role: 'caller', workspaces: [WORKSPACE_ID] }],
  ])
})

test('PL-12 each field of a token has its limit: the most passes, one more is refused by name', async (t) => {
  const { tokens } = createTokens()
  const call = await openRoutes(t, { tokens })
  const make = (fields: object) => call('POST /tokens', { body: { name: 'x', role: 'viewer', ...fields } })
  const years = 10 * 365 * 24
  const pairs: [string, object, object][] = [
    ['name', { name: 'n'.repeat(100) }, { name: 'n'.repeat(101) }],
    ['conversation_id', { conversation_id: 'c'.repeat(200) }, { conversation_id: 'c'.repeat(201) }],
    ['conversation_id', { conversation_id: 'c' }, { conversation_id: ' ' }],
    ['expires_in', { expires_in: `${years}h` }, { expires_in: `${years}h1ms` }],
    ['expires_in', { expires_in: '1s' }, { expires_in: '999ms' }],
    ['workspaces', { workspaces: Array(100).fill(WORKSPACE_ID) }, { workspaces: Array(101).fill(WORKSPACE_ID) }],
  ]
  for (const [field, most, more] of pairs) {
    assert.equal((await make(most)).status, 201, JSON.stringify(most))
    const { status, json } = await make(more)
    assert.equal(status, 400, JSON.stringify(more))
    assert.ok(json.error.message.includes(`"${field}"`), json.error.message)
  }
})

test('PL-12 the old secret of a rotated token works for ten minutes more, or for at most a week', async (t) => {
  const { tokens, take } = createTokens()
  const call = await openRoutes(t, { tokens })
  const rotate = (body?: object) => call('POST /tokens/tok_1/rotate', { body })
  const { status, json, headers } = await rotate()
  assert.deepEqual([status, json, headers['cache-control']], [200, { id: 'tok_1', token: 'rotated' }, 'no-store'])
  for (const overlap of ['0s', '168h']) assert.equal((await rotate({ overlap })).status, 200, overlap)
  assert.deepEqual(
    take().map(([, , overlapMs]) => overlapMs),
    [600_000, 0, 604_800_000],
  )
  assert.equal((await rotate({ overlap: '168h1ms' })).status, 400)
})

test('PL-12 the list of tokens shows what each one may do and when it was used, and no secret', async (t) => {
  const { store, insert } = openTestStore(t)
  const row = { kind: 'token', name: 'ci', role: 'viewer', hash: 'secret 1', created_at: START_MS }
  await insert('tokens', { ...row, id: 'tok_1' })
  const scope = { workspace_id: 'w', conversation_id: 'c' }
  const times = { expires_at: START_MS + 1000, last_used_at: START_MS + 2000, old_until: START_MS + 3000 }
  const session = { ...row, ...scope, ...times, kind: 'session', hash: 'secret 2', old_hash: 'secret 3' }
  await insert('tokens', { ...session, id: 'tok_2', workspaces: '["w"]' })
  await insert('tokens', { ...row, id: 'tok_3', hash: 'secret 4', expires_at: 1, old_until: START_MS })
  await insert('tokens', { ...row, id: 'tok_4', hash: 'secret 5', kind: 'session', expires_at: 1 })
  const call = await openRoutes(t, { store })
  const { json, text } = await call('GET /tokens')
  const at = (second: number) => `2026-01-15T12:00:0${second}.000Z`
  const view = { name: 'ci', role: 'viewer', created_at: at(0), expires_at: null, last_used_at: null }
  const used = { expires_at: at(1), last_used_at: at(2), old_secret_until: at(3) }
  assert.deepEqual(json.tokens, [
    { ...view, id: 'tok_1', kind: 'token' },
    { ...view, ...scope, ...used, id: 'tok_2', kind: 'session', workspaces: ['w'] },
    { ...view, id: 'tok_3', kind: 'token', expires_at: '1970-01-01T00:00:00.001Z' },
  ])
  assert.doesNotMatch(text, /secret \d/)
})

test('PL-12 a caller learns its own name, role and actions; an agent also its workspace', async (t) => {
  const call = await openRoutes(t, {})
  const person = await call('GET /me', { role: 'viewer' })
  assert.equal(person.headers['cache-control'], 'no-store')
  const { actions, ...me } = person.json
  assert.deepEqual(me, { token_id: 'viewer', name: 'viewer', role: 'viewer', principal: 'people' })
  assert.ok(actions.includes('workspace.read') && !actions.includes('workspace.create'))
  assert.equal((await call('GET /me', { role: 'workspace' })).json.workspace_id, WORKSPACE_ID)
})

test('PL-12 the tokens of the processes of a workspace are revoked together', async (t) => {
  const { tokens, take } = createTokens()
  const call = await openRoutes(t, { tokens })
  assert.equal((await call(`DELETE /workspaces/${WORKSPACE_ID}/conversation-tokens`)).status, 204)
  assert.deepEqual(take(), [['revokeConversations', WORKSPACE_ID]])
})
