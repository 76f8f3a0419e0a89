import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type ManualClock, manualClock } from '../../../test/fakes/manual-clock.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { ulid, workspaceId } from '../../ids.ts'
import { openSqlite } from '../../store/sqlite/sqlite.ts'
import { type Store, sql } from '../../store/store.ts'
import type { Identity, Tokens } from '../tokens.ts'
import { beginTokenRun, createConversationTokens, ensureConversationSecret } from './conversation-tokens.ts'
import { createRevocations } from './revocations.ts'
import { createTokens } from './token-store.ts'

const ADMIN = 'a-token-of-thirty-two-bytes-or-so'
let folder: string
let store: Store
let clock: ManualClock
let tokens: Tokens
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'molecule-tokens-'))
  clock = manualClock(Date.now())
  store = openSqlite({ path: join(folder, 'molecule.db'), clock })
  tokens = createTokens({ store, clock, adminToken: ADMIN })
})
after(async () => {
  await store.close()
  await rm(folder, { recursive: true })
})

async function mustVerify(from: Tokens, secret: string): Promise<Identity> {
  const identity = await from.verify(secret)
  assert.ok(identity)
  return identity
}

test('the admin token is the admin, a person; any other text is refused', async () => {
  const admin = await tokens.verify(ADMIN)
  assert.deepEqual([admin?.role, admin?.principal, admin?.sender.kind], ['admin', 'people', 'person'])
  for (const wrong of ['', 'x', `${ADMIN}x`, ADMIN.toUpperCase(), 'y'.repeat(100_000)]) {
    assert.equal(await tokens.verify(wrong), undefined)
  }
})

test('PL-1 a login code works once, and its session until it is revoked', async () => {
  const code = tokens.issueLoginCode()
  const session = await tokens.exchangeLoginCode(code)
  assert.ok(session)
  assert.equal(await tokens.exchangeLoginCode(code), undefined)
  assert.equal((await tokens.verify(session.secret))?.role, 'admin')
  const stored = await store.read(() => sql<{ hash: string }>('select hash from tokens'))
  assert.ok(stored.every(({ hash }) => hash !== session.secret && hash.length === 64))
  await tokens.revokeBrowserSession(session.secret)
  assert.equal(await tokens.verify(session.secret), undefined)
})

test('a login code expires after ten minutes, and a session after thirty days', async () => {
  const late = tokens.issueLoginCode()
  const session = await tokens.exchangeLoginCode(tokens.issueLoginCode())
  clock.advance(10 * 60_000 + 1)
  assert.equal(await tokens.exchangeLoginCode(late), undefined)
  assert.ok(await tokens.verify(session?.secret ?? ''))
  clock.advance(30 * 24 * 3600_000)
  assert.equal(await tokens.verify(session?.secret ?? ''), undefined)
})

test('PL-12 a token is shown once, stored as its hash, and has its role', async () => {
  const made = await Promise.all([
    tokens.create({ name: 'Ada', role: 'member' }),
    tokens.create({ name: 'ci', role: 'caller', workspaces: ['ws_1', 'ws_2'] }),
    tokens.create({ name: 'bridge', role: 'workspace', workspaceId: 'ws_1' }),
    tokens.create({ name: 'turn', role: 'conversation', workspaceId: 'ws_1', conversationId: 'c_1' }),
  ])
  for (const { secret } of made) assert.match(secret, /^mol_[\w-]{43}$/)
  const who = await Promise.all(made.map(({ secret }) => tokens.verify(secret)))
  const [, caller] = made
  assert.deepEqual(
    who.map((identity) => [identity?.principal, identity?.sender.kind, identity?.sender.id]),
    [
      ['people', 'person', made[0]?.id],
      [`token:${caller?.id}`, 'program', caller?.id],
      ['ws:ws_1', 'agent', 'ws_1'],
      ['ws:ws_1/c_1', 'agent', 'ws_1'],
    ],
  )
  assert.deepEqual(who[1]?.workspaces, ['ws_1', 'ws_2'])
  assert.equal(who[3]?.conversationId, 'c_1')
  const everything = JSON.stringify(await store.read(() => sql('select * from tokens')))
  for (const { secret } of made) assert.ok(!everything.includes(secret))
  assert.ok(!JSON.stringify(await tokens.list()).includes('hash'))
})

test('PL-12 a token with a missing or a needless field is refused, and the error names the field', async () => {
  const refused = (input: Parameters<typeof tokens.create>[0], message: RegExp) =>
    assert.rejects(tokens.create(input), { code: 'invalid_request', message })
  await refused({ name: 'x', role: 'workspace' }, /needs "workspace_id"/)
  await refused({ name: 'x', role: 'caller' }, /needs "workspaces"/)
  await refused({ name: 'x', role: 'caller', workspaces: [] }, /needs "workspaces"/)
  await refused({ name: 'x', role: 'conversation', workspaceId: 'w' }, /needs "conversation_id"/)
  await refused({ name: 'x', role: 'admin', workspaceId: 'w' }, /has no "workspace_id"/)
})

test('PL-12 after a rotation the new secret is valid at once, and the old one until the overlap ends', async () => {
  const first = await tokens.create({ name: 'rotated', role: 'viewer' })
  assert.ok(await tokens.verify(first.secret))
  const second = await tokens.rotate(first.id, 600_000)
  assert.equal(second.id, first.id)
  assert.equal((await tokens.verify(second.secret))?.tokenId, first.id)
  assert.equal((await tokens.verify(first.secret))?.tokenId, first.id)
  clock.advance(599_000)
  assert.ok(await tokens.verify(first.secret))
  clock.advance(1001)
  assert.equal(await tokens.verify(first.secret), undefined, 'the cache must not extend the overlap')
  assert.ok(await tokens.verify(second.secret))
  const third = await tokens.rotate(first.id, 0)
  assert.equal(await tokens.verify(second.secret), undefined)
  assert.ok(await tokens.verify(third.secret))
  await assert.rejects(tokens.rotate('nobody', 0), { code: 'not_found' })
})

test('PL-12 a rotation ends the streams of the old secret after the overlap, and no stream of the new one', async () => {
  const first = await tokens.create({ name: 'streaming', role: 'viewer' })
  const ended: string[] = []
  const watch = async (name: string, secret: string) =>
    tokens.onRevoked(await mustVerify(tokens, secret), () => ended.push(name))
  await watch('first', first.secret)
  const second = await tokens.rotate(first.id, 60_000)
  await watch('second', second.secret)
  clock.advance(59_000)
  await clock.settle()
  assert.deepEqual(ended, [])
  for (let poll = 0; poll < 2; poll++) {
    clock.advance(5000)
    await store.read(() => sql('select 1 as one'))
    await clock.settle()
  }
  assert.deepEqual(ended, ['first'])
  const third = await tokens.rotate(first.id, 60_000)
  await watch('third', third.secret)
  await tokens.rotate(first.id, 0)
  assert.deepEqual(ended, ['first', 'second', 'third'], 'a second rotation replaces the old secret at once')
})

test('PL-12 a revoked token is refused at once, and its callbacks run once', async () => {
  const { id, secret } = await tokens.create({ name: 'gone', role: 'member' })
  const identity = await mustVerify(tokens, secret)
  let calls = 0
  tokens.onRevoked(identity, () => calls++)
  tokens.onRevoked(identity, () => assert.fail('a callback that stopped watching was called'))()
  await tokens.revoke(id)
  assert.equal(await tokens.verify(secret), undefined)
  assert.equal(calls, 1)
  await assert.rejects(tokens.revoke(id), { code: 'not_found' })
  assert.ok(!(await tokens.list()).some((token) => token.id === id))
})

test('PL-12 a verification in flight does not undo a revocation', async () => {
  const { id, secret } = await tokens.create({ name: 'raced', role: 'member' })
  await Promise.all([tokens.verify(secret), tokens.revoke(id)])
  assert.equal(await tokens.verify(secret), undefined)
})

test('PL-12 a token that another process revokes is refused, and its streams end, within 5 s', async () => {
  const here = createTokens({ store, clock, adminToken: ADMIN })
  const { id, secret } = await tokens.create({ name: 'elsewhere', role: 'member' })
  const identity = await mustVerify(here, secret)
  const revoked = new Promise<void>((resolve) => here.onRevoked(identity, resolve))
  await tokens.revoke(id)
  clock.advance(5000)
  assert.equal(await here.verify(secret), undefined)
  await revoked
})

test('PL-12 an expired token is refused, and its waiting calls end', async () => {
  const { id, secret } = await tokens.create({ name: 'short', role: 'member', expiresInMs: 3000 })
  const identity = await mustVerify(tokens, secret)
  const revoked = new Promise<void>((resolve) => tokens.onRevoked(identity, resolve))
  clock.advance(3001)
  assert.equal(await tokens.verify(secret), undefined)
  clock.advance(2000)
  await revoked
  const info = (await tokens.list()).find((token) => token.id === id)
  assert.ok(info?.expiresAtMs, 'it stays in the list')
})

test('PL-12 the last use of a token is stored at most once a minute', async () => {
  const { id, secret } = await tokens.create({ name: 'used', role: 'member' })
  const lastUsed = async () => (await tokens.list()).find((token) => token.id === id)?.lastUsedAtMs
  assert.equal(await lastUsed(), undefined)
  await tokens.verify(secret)
  // The request does not wait for that write; a write after it is committed after it.
  await store.write(() => sql('select 1 as one'))
  const first = await lastUsed()
  assert.ok(first)
  clock.advance(59_000)
  await tokens.verify(secret)
  await store.write(() => sql('select 1 as one'))
  assert.equal(await lastUsed(), first)
  clock.advance(1001)
  await tokens.verify(secret)
  await store.write(() => sql('select 1 as one'))
  assert.ok(((await lastUsed()) ?? 0) > first)
})

test('PL-12 a conversation token is refused after its expiry, a new generation, and a new run of its host', async () => {
  const id = workspaceId()
  await store.write(() =>
    sql(
      `insert into workspaces (id, name, role, runtime, settings, status, created_at)
       values ($1, 'w', '', 'mock', '{}', 'online', 0)`,
      [id],
    ),
  )
  const secret = await ensureConversationSecret(store)
  const subject = { workspaceId: id, conversationId: ulid() }
  const start = async () => {
    const run = await beginTokenRun(store, 'this-host')
    await beginTokenRun(store, 'another-host')
    const conversations = createConversationTokens({ secret, run, nowMs: clock.nowMs })
    return { conversations, here: createTokens({ store, clock, adminToken: ADMIN, conversations }) }
  }
  const first = await start()
  const token = first.conversations.issue(subject, { generation: 0, isForBridge: false })
  const forBridge = first.conversations.issue(subject, { generation: 0, isForBridge: true })
  const identity = await mustVerify(first.here, token)
  assert.deepEqual(
    [identity.principal, identity.workspaceId, identity.role],
    [`ws:${id}/${subject.conversationId}`, id, 'conversation'],
  )
  const second = await start()
  assert.equal(await second.here.verify(token), undefined, 'its platform was started again')
  assert.ok(await second.here.verify(forBridge), "a bridge's processes go on")
  const revoked = new Promise<void>((resolve) => {
    void mustVerify(second.here, forBridge).then((watched) => second.here.onRevoked(watched, resolve))
  })
  await mustVerify(second.here, forBridge)
  await second.here.revokeConversations(id)
  await revoked
  assert.equal(await second.here.verify(forBridge), undefined)
  const third = second.conversations.issue(subject, { generation: 1, isForBridge: false })
  assert.ok(await second.here.verify(third))
  clock.advance(12 * 3600_000 - 5001)
  assert.ok(await second.here.verify(third))
  clock.advance(12 * 3600_000 + 5001)
  assert.equal(await second.here.verify(third), undefined)
})

test('a verified secret costs no lookup for a while', async () => {
  let reads = 0
  const counting: Store = {
    ...store,
    read(transaction) {
      reads += 1
      return store.read(transaction)
    },
  }
  const counted = createTokens({ store: counting, clock, adminToken: ADMIN })
  const { secret } = await counted.create({ name: 'busy', role: 'member' })
  for (let call = 0; call < 100; call++) await counted.verify(secret)
  assert.equal(reads, 1)
})

test('PL-12 one poll checks 500 secrets with open streams, and the next poll the others', async () => {
  const time = manualClock()
  const polls: number[] = []
  const findValid = async (identities: readonly Identity[]) => {
    polls.push(identities.length)
    return new Set(identities.map(({ secretId }) => secretId))
  }
  const revocations = createRevocations({ clock: time, findValid })
  for (let count = 0; count < 501; count++)
    revocations.watch({ secretId: `${count}` } as Identity, () => assert.fail('its token is valid'))
  for (const expected of [[500], [500, 1], [500, 1, 500]]) {
    time.advance(5000)
    await waitUntil(() => polls.length === expected.length, 'a poll')
    await time.settle()
    assert.deepEqual(polls, expected)
  }
})
