import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { ulid, workspaceId } from '../../ids.ts'
import { openSqlite } from '../../store/sqlite/sqlite.ts'
import { type Store, sql } from '../../store/store.ts'
import { beginTokenRun, createConversationTokens, ensureConversationSecret } from './conversation-tokens.ts'
import { createTokens } from './token-store.ts'

const PERIOD_MS = 12 * 3600_000
const START_MS = 1000 * PERIOD_MS
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

function open(t: TestContext) {
  const clock = manualClock(START_MS)
  const store = openSqlite({ path: join(temporaryDir(t), 'm.db'), clock })
  t.after(() => store.close())
  /** Another process of the same store: it has verified nothing yet. */
  const start = () => createTokens({ store, clock, adminToken: 'the-admin-token' })
  const verify = async (secret: string) => (await start().verify(secret))?.name
  return { clock, store, start, verify, tokens: start() }
}

const addWorkspace = async (store: Store, name: string) => {
  const id = workspaceId()
  await store.write(() =>
    sql(
      `insert into workspaces (id, name, role, runtime, settings, status, created_at)
       values ($1, $2, '', 'mock', '{}', 'online', 0)`,
      [id, name],
    ),
  )
  return id
}

test('PL-12 each role has its identity, and a workspace token speaks with the name of its workspace', async (t) => {
  const { store, tokens } = open(t)
  const [first, second] = [await addWorkspace(store, 'first'), await addWorkspace(store, 'second')]
  const person = await tokens.create({ name: 'Ada', role: 'viewer' })
  const caller = await tokens.create({ name: 'ci', role: 'caller', workspaces: [first] })
  const workspace = await tokens.create({ name: 'bridge', role: 'workspace', workspaceId: second })
  const conversation = await tokens.create({
    name: 'turn',
    role: 'conversation',
    workspaceId: first,
    conversationId: 'c',
  })
  const known = ({ id, secret }: { id: string; secret: string }) => ({ tokenId: id, secretId: sha256(secret) })
  assert.deepEqual(await tokens.verify(person.secret), {
    ...known(person),
    name: 'Ada',
    role: 'viewer',
    principal: 'people',
    sender: { kind: 'person', id: person.id, name: 'Ada', door: 'http' },
  })
  assert.deepEqual(await tokens.verify(caller.secret), {
    ...known(caller),
    name: 'ci',
    role: 'caller',
    principal: `token:${caller.id}`,
    workspaces: [first],
    sender: { kind: 'program', id: caller.id, name: 'ci', door: 'http' },
  })
  assert.deepEqual(await tokens.verify(workspace.secret), {
    ...known(workspace),
    name: 'bridge',
    role: 'workspace',
    principal: `ws:${second}`,
    workspaceId: second,
    sender: { kind: 'agent', id: second, name: 'second', door: 'http' },
  })
  assert.deepEqual(await tokens.verify(conversation.secret), {
    ...known(conversation),
    name: 'turn',
    role: 'conversation',
    principal: `ws:${first}/c`,
    workspaceId: first,
    conversationId: 'c',
    sender: { kind: 'agent', id: first, name: 'first', door: 'http' },
  })
  assert.deepEqual(await tokens.verify('the-admin-token'), {
    tokenId: 'admin',
    secretId: 'admin',
    name: 'admin',
    role: 'admin',
    principal: 'people',
    sender: { kind: 'person', id: 'admin', name: 'admin', door: 'http' },
  })
})

test('PL-12 a damaged row gives no rights: no workspaces to call, no principal of a workspace', async (t) => {
  const { store, tokens } = open(t)
  const caller = await tokens.create({ name: 'ci', role: 'caller', workspaces: ['ws_1'] })
  const bridge = await tokens.create({ name: 'bridge', role: 'workspace', workspaceId: 'ws_1' })
  await store.write(() => sql('update tokens set workspaces = null, workspace_id = null'))
  assert.deepEqual((await tokens.verify(caller.secret))?.workspaces, [])
  const identity = await tokens.verify(bridge.secret)
  assert.deepEqual([identity?.principal, identity?.workspaceId, identity?.sender.name], ['ws:', '', 'bridge'])
})

test('PL-12 an old secret is valid until the millisecond in which its overlap ends, and so is its place in the list', async (t) => {
  const { clock, tokens, verify } = open(t)
  const before = await tokens.create({ name: 'before', role: 'member' })
  await tokens.rotate(before.id, 60_000)
  const first = await tokens.create({ name: 'rotated', role: 'member' })
  const second = await tokens.rotate(first.id, 1000)
  const oldUntil = async () => (await tokens.list()).find(({ id }) => id === first.id)?.oldUntilMs
  clock.advance(999)
  assert.deepEqual([await verify(first.secret), await verify(second.secret)], ['rotated', 'rotated'])
  assert.equal(await oldUntil(), START_MS + 1000)
  assert.equal(await tokens.whyRefused(first.secret), undefined)
  clock.advance(1)
  assert.deepEqual([await verify(first.secret), await verify(second.secret)], [undefined, 'rotated'])
  assert.equal(await oldUntil(), undefined)
  assert.deepEqual(await tokens.whyRefused(first.secret), { reason: 'replaced', sinceMs: 0 })
  clock.advance(500)
  assert.deepEqual(await tokens.whyRefused(first.secret), { reason: 'replaced', sinceMs: 500 })
  assert.equal(await tokens.whyRefused(second.secret), undefined)
})

test('PL-12 an expired secret says since when; an unknown one, a revoked one and another text say nothing', async (t) => {
  const { clock, tokens, store } = open(t)
  const other = await tokens.create({ name: 'other', role: 'member', expiresInMs: 10 })
  await tokens.rotate(other.id, 5)
  const short = await tokens.create({ name: 'short', role: 'member', expiresInMs: 1000 })
  const gone = await tokens.create({ name: 'gone', role: 'member', expiresInMs: 1000 })
  clock.advance(999)
  assert.equal(await tokens.whyRefused(short.secret), undefined)
  clock.advance(1)
  assert.deepEqual(await tokens.whyRefused(short.secret), { reason: 'expired', sinceMs: 0 })
  clock.advance(7)
  assert.deepEqual(await tokens.whyRefused(short.secret), { reason: 'expired', sinceMs: 7 })
  await tokens.revoke(gone.id)
  for (const text of [gone.secret, `mol_${'x'.repeat(43)}`, '', 'x'])
    assert.equal(await tokens.whyRefused(text), undefined)
  const setSecret = (secret: string) =>
    store.write(() => sql('update tokens set hash = $1 where id = $2', [sha256(secret), short.id]))
  const longest = `mol_${'x'.repeat(508)}`
  await setSecret(longest)
  assert.equal((await tokens.whyRefused(longest))?.reason, 'expired')
  for (const refused of [`${longest}x`, 'another text']) {
    await setSecret(refused)
    assert.equal(await tokens.whyRefused(refused), undefined)
  }
})

test('a new token removes expired sessions and conversation tokens, and neither valid ones nor those of people', async (t) => {
  const { clock, tokens, verify } = open(t)
  const login = async () => (await tokens.exchangeLoginCode(tokens.issueLoginCode()))?.secret ?? ''
  const expiring = { workspaceId: 'ws_1', conversationId: 'c', expiresInMs: 30 * 24 * 3600_000 }
  const expired = [
    await login(),
    (await tokens.create({ name: 'turn', role: 'conversation', ...expiring })).secret,
    (await tokens.create({ name: 'person', role: 'member', expiresInMs: expiring.expiresInMs })).secret,
  ]
  clock.advance(1000)
  const session = await login()
  const turn = await tokens.create({ name: 'valid turn', role: 'conversation', ...expiring })
  clock.advance(expiring.expiresInMs - 1000)
  const reasons = () => Promise.all(expired.map(async (secret) => (await tokens.whyRefused(secret))?.reason))
  await tokens.create({ name: 'in that millisecond', role: 'member' })
  assert.deepEqual(await reasons(), ['expired', 'expired', 'expired'])
  clock.advance(1)
  await tokens.create({ name: 'new', role: 'member' })
  assert.deepEqual(await reasons(), [undefined, undefined, 'expired'])
  assert.deepEqual([await verify(session), await verify(turn.secret)], ['browser', 'valid turn'])
})

test('the list has every token with its fields, and of the sessions only the valid ones, in the order of their ids', async (t) => {
  const { clock, tokens } = open(t)
  const member = await tokens.create({ name: 'a', role: 'member', expiresInMs: 1000 })
  const caller = await tokens.create({ name: 'b', role: 'caller', workspaces: ['ws_1'] })
  const turn = await tokens.create({ name: 'c', role: 'conversation', workspaceId: 'ws_1', conversationId: 'c_1' })
  await tokens.exchangeLoginCode(tokens.issueLoginCode({ role: 'viewer', name: 'Ada' }))
  const createdAtMs = START_MS
  const listed = async () => {
    const infos = await tokens.list()
    assert.deepEqual(
      infos.map(({ id }) => id),
      infos.map(({ id }) => id).sort(),
    )
    return new Map(infos.map((info) => [info.name, info]))
  }
  const infos = await listed()
  assert.deepEqual([...infos.keys()].sort(), ['Ada', 'a', 'b', 'c'])
  assert.deepEqual(infos.get('a'), {
    id: member.id,
    kind: 'token',
    name: 'a',
    role: 'member',
    createdAtMs,
    expiresAtMs: START_MS + 1000,
  })
  assert.deepEqual(infos.get('b'), {
    id: caller.id,
    kind: 'token',
    name: 'b',
    role: 'caller',
    createdAtMs,
    workspaces: ['ws_1'],
  })
  assert.deepEqual(infos.get('c'), {
    id: turn.id,
    kind: 'token',
    name: 'c',
    role: 'conversation',
    createdAtMs,
    workspaceId: 'ws_1',
    conversationId: 'c_1',
  })
  const { id: _, ...session } = infos.get('Ada') ?? {}
  const expiresAtMs = START_MS + 30 * 24 * 3600_000
  assert.deepEqual(session, { kind: 'session', name: 'Ada', role: 'viewer', createdAtMs, expiresAtMs })
  clock.advance(30 * 24 * 3600_000)
  assert.deepEqual([...(await listed()).keys()].sort(), ['a', 'b', 'c'])
})

test('PL-12 a rotation changes its token and no other; an expired token and a session have none', async (t) => {
  const { clock, store, tokens, verify } = open(t)
  const endless = await tokens.create({ name: 'endless', role: 'member' })
  const expiring = await tokens.create({ name: 'expiring', role: 'member', expiresInMs: 1000 })
  const other = await tokens.create({ name: 'other', role: 'member' })
  const session = await tokens.exchangeLoginCode(tokens.issueLoginCode())
  await tokens.rotate(endless.id, 0)
  const rotated = await tokens.rotate(expiring.id, 0)
  assert.deepEqual(
    await Promise.all([rotated, other, { secret: session?.secret ?? '' }].map((each) => verify(each.secret))),
    ['expiring', 'other', 'browser'],
  )
  const [row] = await store.read(() => sql<{ id: string }>(`select id from tokens where kind = 'session'`))
  await assert.rejects(tokens.rotate(row?.id ?? '', 0), { code: 'not_found' })
  clock.advance(1000)
  await assert.rejects(tokens.rotate(expiring.id, 0), {
    code: 'not_found',
    message: `there is no token ${expiring.id}`,
  })
})

test('a logout ends its own session, no other one and no token', async (t) => {
  const { tokens, verify } = open(t)
  const login = async () => (await tokens.exchangeLoginCode(tokens.issueLoginCode()))?.secret ?? ''
  const [mine, yours] = [await login(), await login()]
  const token = await tokens.create({ name: 'token', role: 'member' })
  await tokens.revokeBrowserSession(mine)
  await tokens.revokeBrowserSession(token.secret)
  assert.deepEqual(
    [await verify(mine), await verify(yours), await verify(token.secret)],
    [undefined, 'browser', 'token'],
  )
})

test('there may be 10,000 tokens; then one must be revoked first', async (t) => {
  const { store, tokens } = open(t)
  const first = await tokens.create({ name: 'first', role: 'member' })
  await store.write(() =>
    sql(`with recursive rows (n) as (select 1 union all select n + 1 from rows where n < 9998)
         insert into tokens (id, kind, name, role, hash, created_at)
         select 'token-' || n, 'token', 'many', 'member', 'hash-' || n, 0 from rows`),
  )
  await tokens.create({ name: 'last', role: 'member' })
  await assert.rejects(tokens.create({ name: 'too many', role: 'member' }), {
    code: 'invalid_request',
    message: 'there are already 10000 tokens: revoke some first',
  })
  await tokens.revoke(first.id)
  await tokens.create({ name: 'again', role: 'member' })
})

/** Two workspaces of one host, with conversation tokens of the current run. */
async function openConversations(t: TestContext) {
  const { clock, store } = open(t)
  const secret = await ensureConversationSecret(store)
  const run = await beginTokenRun(store, 'this-host')
  const conversations = createConversationTokens({ secret, run, nowMs: clock.nowMs })
  const start = () => createTokens({ store, clock, adminToken: 'the-admin-token', conversations })
  const [one, other] = [await addWorkspace(store, 'one'), await addWorkspace(store, 'other')]
  const issue = (id: string, conversationId = ulid()) =>
    conversations.issue({ workspaceId: id, conversationId }, { generation: 0, isForBridge: false })
  return { clock, store, start, one, other, issue }
}

test('RT-12 a conversation token is its conversation, until the millisecond in which it expires', async (t) => {
  const { clock, start, other, issue } = await openConversations(t)
  const conversationId = ulid()
  const token = issue(other, conversationId)
  assert.deepEqual(await start().verify(token), {
    tokenId: `conversation:${conversationId}`,
    secretId: token.slice(0, -43),
    role: 'conversation',
    name: 'conversation of other',
    principal: `ws:${other}/${conversationId}`,
    workspaceId: other,
    conversationId,
    sender: { kind: 'agent', id: other, name: 'other', door: 'http' },
  })
  clock.advance(2 * PERIOD_MS - 1)
  assert.ok(await start().verify(token))
  assert.equal(await start().whyRefused(token), undefined)
  clock.advance(1)
  assert.equal(await start().verify(token), undefined)
  assert.deepEqual(await start().whyRefused(token), { reason: 'expired', sinceMs: 0 })
  clock.advance(9)
  assert.deepEqual(await start().whyRefused(token), { reason: 'expired', sinceMs: 9 })
})

test('RT-12 the conversation tokens of a deleted workspace are refused', async (t) => {
  const { store, start, one, other, issue } = await openConversations(t)
  const [gone, kept] = [issue(one), issue(other)]
  await store.write(() => sql('update workspaces set deleted_at = 1 where id = $1', [one]))
  assert.deepEqual([await start().verify(gone), (await start().verify(kept))?.workspaceId], [undefined, other])
})

test("PL-12 with a workspace's own token its conversation tokens end, here at once and elsewhere with the next poll", async (t) => {
  const { clock, store, start, one, other, issue } = await openConversations(t)
  const [here, elsewhere] = [start(), start()]
  const bridge = await here.create({ name: 'bridge', role: 'workspace', workspaceId: one })
  const member = await here.create({ name: 'Ada', role: 'member' })
  const secrets = { ended: issue(one), kept: issue(other) }
  const ended: string[] = []
  for (const [place, tokens] of Object.entries({ here, elsewhere }))
    for (const [name, secret] of Object.entries(secrets)) {
      const identity = await tokens.verify(secret)
      assert.ok(identity)
      tokens.onRevoked(identity, () => void ended.push(`${name} ${place}`))
    }
  const poll = async () => {
    clock.advance(5000)
    await store.read(() => sql('select 1 as one'))
    await clock.settle()
  }
  await poll()
  await here.revoke(member.id)
  assert.deepEqual(ended, [])
  await here.revoke(bridge.id)
  assert.deepEqual(ended, ['ended here'])
  assert.equal(await start().verify(secrets.ended), undefined)
  assert.ok(await start().verify(secrets.kept))
  for (let count = 0; count < 3; count++) await poll()
  assert.deepEqual(ended, ['ended here', 'ended elsewhere'])
})

test('PL-12 the end of the conversation tokens of a workspace is not the end of its own token', async (t) => {
  const { start, one, other, issue } = await openConversations(t)
  const tokens = start()
  const own = await tokens.create({ name: 'bridge', role: 'workspace', workspaceId: one })
  const ended: string[] = []
  for (const [name, secret] of Object.entries({ own: own.secret, turn: issue(one), other: issue(other) })) {
    const identity = await tokens.verify(secret)
    assert.ok(identity)
    tokens.onRevoked(identity, () => void ended.push(name))
  }
  await tokens.revokeConversations(one)
  assert.deepEqual(ended, ['turn'])
})

test('RT-12 every node has the same secret for conversation tokens, whatever other secrets are stored', async (t) => {
  const { store } = open(t)
  await store.write(() => sql(`insert into secrets (name, value) values ('another', 'ff')`))
  const first = await ensureConversationSecret(store)
  assert.equal(first.length, 32)
  assert.deepEqual(await ensureConversationSecret(store), first)
  await store.write(() => sql(`update secrets set value = '0a0b' where name = 'conversation-tokens'`))
  assert.deepEqual(await ensureConversationSecret(store), Buffer.from('0a0b', 'hex'))
})
