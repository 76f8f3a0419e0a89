/** The contract of tokens, run on every engine: who a secret is, until when, and what a revocation ends. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ulid } from '../../src/ids.ts'
import { type Store, sql } from '../../src/store/store.ts'
import { readTokens } from '../../src/views/tokens.ts'
import {
  beginTokenRun,
  createConversationTokens,
  ensureConversationSecret,
} from '../../src/workspaces/tokens/conversation-tokens.ts'
import { createTokens } from '../../src/workspaces/tokens/token-store.ts'
import type { IssuedToken, Tokens } from '../../src/workspaces/tokens.ts'
import { type ManualClock, manualClock } from '../fakes/manual-clock.ts'
import { insertWorkspace } from '../harness/stores/insert-workspace.ts'
import { waitUntil } from '../harness/wait.ts'
import { hasCode } from './inbox/harness.ts'
import type { StoreUnderTest } from './store-contract.ts'

const ADMIN = 'a-token-of-thirty-two-bytes-or-so'
const MINUTE_MS = 60_000
const DAY_MS = 24 * 3600_000

interface TokensUnderTest {
  store: Store
  clock: ManualClock
  tokens: Tokens
  /** Another process of the same store. */
  start(): Tokens
  /** The name behind a secret, as a process says that has verified nothing yet. */
  nameOf(secret: string): Promise<string | undefined>
  /** Time passes, for the store and for the processes. */
  pass(ms: number): Promise<void>
  workspace(name: string): Promise<string>
}

export function tokenContract({ name, open }: StoreUnderTest): void {
  describe(`tokens on ${name}`, () => {
    const opened = {} as TokensUnderTest
    let dispose: () => Promise<void>
    before(async () => {
      const { store, dispose: end } = await open()
      dispose = end
      Object.assign(opened, openTokens(store))
    })
    after(() => dispose())
    secretTests(opened)
    changeTests(opened)
    sessionTests(opened)
    conversationTests(opened)
  })
}

function openTokens(store: Store): TokensUnderTest {
  const clock = manualClock(Date.now())
  const start = () => createTokens({ store, clock, adminToken: ADMIN })
  return {
    store,
    clock,
    tokens: start(),
    start,
    nameOf: async (secret) => (await start().verify(secret))?.name,
    async pass(ms) {
      const older = ['expires_at', 'old_until', 'last_used_at'].map((column) => `${column} = ${column} - ${ms}`)
      await store.write(() => sql(`update tokens set ${older.join(', ')}`))
      clock.advance(ms)
    },
    workspace: (label) => insertWorkspace(store, { name: label }),
  }
}

/** Writes down the name of each secret whose streams end. */
async function watch(tokens: Tokens, secrets: Readonly<Record<string, string>>): Promise<string[]> {
  const ended: string[] = []
  for (const [name, secret] of Object.entries(secrets)) {
    const identity = await tokens.verify(secret)
    assert.ok(identity, name)
    tokens.onRevoked(identity, () => void ended.push(name))
  }
  return ended
}

function secretTests(opened: TokensUnderTest): void {
  test('PL-12 each role has its identity; a workspace token speaks with the name of its workspace', async () => {
    const { tokens, workspace } = opened
    const id = await workspace('painter')
    const made = [
      await tokens.create({ name: 'Ada', role: 'viewer' }),
      await tokens.create({ name: 'ci', role: 'caller', workspaces: [id, 'ws_2'] }),
      await tokens.create({ name: 'bridge', role: 'workspace', workspaceId: id }),
      await tokens.create({ name: 'turn', role: 'conversation', workspaceId: id, conversationId: 'c_1' }),
    ]
    const who = await Promise.all(made.map(({ secret }) => tokens.verify(secret)))
    assert.deepEqual(
      who.map((one) => [one?.role, one?.principal, one?.sender.kind, one?.sender.id, one?.sender.name]),
      [
        ['viewer', 'people', 'person', made[0]?.id, 'Ada'],
        ['caller', `token:${made[1]?.id}`, 'program', made[1]?.id, 'ci'],
        ['workspace', `ws:${id}`, 'agent', id, 'painter'],
        ['conversation', `ws:${id}/c_1`, 'agent', id, 'painter'],
      ],
    )
    assert.deepEqual([who[1]?.workspaces, who[3]?.conversationId], [[id, 'ws_2'], 'c_1'])
    for (const { secret } of made) assert.match(secret, /^mol_[\w-]{43}$/)
    const everything = JSON.stringify([
      await opened.store.read(() => sql('select * from tokens')),
      await readTokens(opened.store),
    ])
    for (const { secret } of made) assert.ok(!everything.includes(secret), 'a secret is shown once')
  })

  test('the admin token is the admin, a person, and may have 512 characters; any other text is refused', async () => {
    const { tokens, store, clock } = opened
    const admin = await tokens.verify(ADMIN)
    assert.deepEqual([admin?.role, admin?.principal, admin?.sender.kind], ['admin', 'people', 'person'])
    for (const wrong of ['', 'x', `${ADMIN}x`, ADMIN.toUpperCase(), `mol_${'x'.repeat(43)}`, 'y'.repeat(100_000)])
      assert.equal(await tokens.verify(wrong), undefined)
    const as = (adminToken: string) => createTokens({ store, clock, adminToken }).verify(adminToken)
    assert.equal((await as('x'.repeat(512)))?.role, 'admin')
    assert.deepEqual([await as('x'.repeat(513)), await as('')], [undefined, undefined])
  })

  test('PL-12 a damaged row gives no rights: no workspaces to call, no principal of a workspace', async () => {
    const { tokens, store } = opened
    const caller = await tokens.create({ name: 'ci', role: 'caller', workspaces: ['ws_1'] })
    const bridge = await tokens.create({ name: 'bridge', role: 'workspace', workspaceId: 'ws_1' })
    const damage = 'update tokens set workspaces = null, workspace_id = null where id in ($1, $2)'
    await store.write(() => sql(damage, [caller.id, bridge.id]))
    assert.deepEqual((await tokens.verify(caller.secret))?.workspaces, [])
    const identity = await tokens.verify(bridge.secret)
    assert.deepEqual([identity?.principal, identity?.workspaceId], ['ws:', ''])
  })

  test('PL-12 a token with a missing or a needless field is refused, and the error names the field', async () => {
    const { tokens } = opened
    const refused = (input: Parameters<Tokens['create']>[0], path: string, verb: string) =>
      assert.rejects(tokens.create(input), {
        code: 'invalid_request',
        details: { path },
        message: `a token with the role ${input.role} ${verb} "${path}"`,
      })
    await refused({ name: 'x', role: 'workspace' }, 'workspace_id', 'needs')
    await refused({ name: 'x', role: 'viewer', workspaceId: 'w' }, 'workspace_id', 'has no')
    await refused({ name: 'x', role: 'conversation', workspaceId: 'w' }, 'conversation_id', 'needs')
    await refused({ name: 'x', role: 'workspace', workspaceId: 'w', conversationId: 'c' }, 'conversation_id', 'has no')
    for (const workspaces of [undefined, []]) {
      const given = workspaces === undefined ? {} : { workspaces }
      await refused({ name: 'x', role: 'caller', ...given }, 'workspaces', 'needs')
    }
    await refused({ name: 'x', role: 'member', workspaces: ['w'] }, 'workspaces', 'has no')
  })

  test('PL-12 the last use of a token is stored at most once a minute, for this token alone', async () => {
    const { tokens, pass, store } = opened
    const made = [
      await tokens.create({ name: 'used', role: 'member' }),
      await tokens.create({ name: 'idle', role: 'member' }),
    ]
    const lastUsed = async () => {
      // The request does not wait for that write; a write after it is committed after it.
      await store.write(() => sql('select 1 as one'))
      const listed = await readTokens(store)
      return made.map(({ id }) => Date.parse(listed.find((token) => token.id === id)?.last_used_at ?? '1970-01-01'))
    }
    await tokens.verify(made[0]?.secret ?? '')
    const [first = 0, idle] = await lastUsed()
    assert.deepEqual([first > 0, idle], [true, 0])
    await pass(59_000)
    await tokens.verify(made[0]?.secret ?? '')
    assert.equal((await lastUsed())[0], first - 59_000)
    await pass(1000)
    await tokens.verify(made[0]?.secret ?? '')
    assert.ok(((await lastUsed())[0] ?? 0) >= first)
  })

  test('there may be 10,000 tokens; then one must be revoked first', async () => {
    const { tokens, store } = opened
    const first = await tokens.create({ name: 'first', role: 'member' })
    const fill = `insert into tokens (id, kind, name, role, hash, created_at)
      with recursive rows (n) as (select 1 union all select n + 1 from rows where n < 10000 - (select count(*) from tokens))
      select 'full-' || n, 'token', 'many', 'member', 'hash-' || n, 0 from rows`
    await store.write(() => sql(fill))
    await assert.rejects(tokens.create({ name: 'too many', role: 'member' }), {
      code: 'invalid_request',
      message: 'there are already 10000 tokens: revoke some first',
    })
    await tokens.revoke(first.id)
    await tokens.create({ name: 'again', role: 'member' })
    await store.write(() => sql(`delete from tokens where id like 'full-%'`))
  })
}

function changeTests(opened: TokensUnderTest): void {
  test('PL-12 an old secret is valid until its overlap ends, then it says since when; a second rotation ends it at once', async () => {
    const { tokens, nameOf, pass, store } = opened
    const first = await tokens.create({ name: 'rotated', role: 'member' })
    const other = await tokens.create({ name: 'other', role: 'member' })
    assert.ok(await tokens.verify(first.secret))
    const second = await tokens.rotate(first.id, 10 * MINUTE_MS)
    assert.equal(second.id, first.id)
    await pass(9 * MINUTE_MS)
    assert.deepEqual([await nameOf(first.secret), await nameOf(second.secret)], ['rotated', 'rotated'])
    assert.equal(await tokens.whyRefused(first.secret), undefined)
    assert.ok((await readTokens(store)).find(({ id }) => id === first.id)?.old_secret_until)
    await pass(MINUTE_MS)
    assert.equal(await tokens.verify(first.secret), undefined, 'the cache must not extend the overlap')
    assert.equal((await tokens.whyRefused(first.secret))?.reason, 'replaced')
    assert.equal((await readTokens(store)).find(({ id }) => id === first.id)?.old_secret_until, undefined)
    const third = await tokens.rotate(first.id, 10 * MINUTE_MS)
    const fourth = await tokens.rotate(first.id, 0)
    const names = await Promise.all([second, third, fourth, other].map(({ secret }) => nameOf(secret)))
    assert.deepEqual(names, [undefined, undefined, 'rotated', 'other'])
    await assert.rejects(tokens.rotate('nobody', 0), hasCode('not_found'))
  })

  test('PL-12 an expired token is refused, says since when, stays in the list and cannot be rotated', async () => {
    const { tokens, nameOf, pass, store } = opened
    const made = await tokens.create({ name: 'short', role: 'member', expiresInMs: MINUTE_MS })
    await tokens.rotate((await tokens.create({ name: 'other', role: 'member' })).id, 0)
    assert.deepEqual([await nameOf(made.secret), await tokens.whyRefused(made.secret)], ['short', undefined])
    await pass(MINUTE_MS)
    assert.equal(await nameOf(made.secret), undefined)
    const refused = await tokens.whyRefused(made.secret)
    assert.ok(refused?.reason === 'expired' && refused.sinceMs < MINUTE_MS)
    assert.ok((await readTokens(store)).find(({ id }) => id === made.id)?.expires_at)
    await assert.rejects(tokens.rotate(made.id, 0), hasCode('not_found'))
    await tokens.revoke(made.id)
    for (const text of [made.secret, `mol_${'x'.repeat(43)}`, '', 'x'])
      assert.equal(await tokens.whyRefused(text), undefined)
  })

  test('PL-12 a revoked token is refused at once, its callbacks run once, and a verification in flight does not undo it', async () => {
    const { tokens, store } = opened
    const { id, secret } = await tokens.create({ name: 'gone', role: 'member' })
    const ended = await watch(tokens, { gone: secret })
    const identity = await tokens.verify(secret)
    assert.ok(identity)
    tokens.onRevoked(identity, () => assert.fail('a callback that stopped watching was called'))()
    await Promise.all([tokens.verify(secret), tokens.revoke(id)])
    assert.deepEqual([await tokens.verify(secret), ended], [undefined, ['gone']])
    await assert.rejects(tokens.revoke(id), hasCode('not_found'))
    assert.ok(!(await readTokens(store)).some((token) => token.id === id))
  })

  test('PL-12 tokens that expire, are replaced, or are revoked by another process end their streams within 5 s, and no others', async () => {
    const { start, pass } = opened
    const [here, elsewhere] = [start(), start()]
    const make = (name: string, more: object = {}): Promise<IssuedToken> =>
      here.create({ name, role: 'member', ...more })
    const [endless, expiring, replaced, revoked] = [
      ...[await make('endless'), await make('expiring', { expiresInMs: 5000 })],
      ...[await make('replaced'), await make('revoked')],
    ] as [IssuedToken, IssuedToken, IssuedToken, IssuedToken]
    const ended = await watch(here, {
      endless: endless.secret,
      expiring: expiring.secret,
      replaced: replaced.secret,
      revoked: revoked.secret,
    })
    const renewed = await watch(here, { renewed: (await here.rotate(replaced.id, 5000)).secret })
    await elsewhere.revoke(revoked.id)
    await pass(5000)
    await waitUntil(() => ended.length === 3, 'the end of three streams')
    assert.deepEqual([ended.toSorted(), renewed], [['expiring', 'replaced', 'revoked'], []])
    assert.equal(await here.verify(revoked.secret), undefined)
    assert.ok(await here.verify(endless.secret))
  })
}

function sessionTests(opened: TokensUnderTest): void {
  const login = async () => (await opened.tokens.exchangeLoginCode(opened.tokens.issueLoginCode()))?.secret ?? ''

  test('PL-1 a login code works once and for ten minutes; a hundred wait at a time, and the next one drops the oldest', async () => {
    const { tokens, nameOf, pass } = opened
    const code = tokens.issueLoginCode()
    const late = tokens.issueLoginCode()
    const session = await tokens.exchangeLoginCode(code)
    assert.equal(session?.maxAgeSeconds, 30 * 24 * 3600)
    assert.deepEqual(
      [await nameOf(session?.secret ?? ''), await tokens.exchangeLoginCode(code)],
      ['browser', undefined],
    )
    await pass(10 * MINUTE_MS + 1)
    assert.equal(await tokens.exchangeLoginCode(late), undefined)
    const codes = Array.from({ length: 101 }, () => tokens.issueLoginCode({ role: 'viewer', name: 'Ada' }))
    assert.equal(await tokens.exchangeLoginCode(codes[0] ?? ''), undefined)
    const last = await tokens.exchangeLoginCode(codes[1] ?? '')
    assert.equal((await tokens.verify(last?.secret ?? ''))?.role, 'viewer')
  })

  test('PL-1 a session ends after thirty days, is listed until then, and is removed by a new token later', async () => {
    const { tokens, nameOf, pass, store } = opened
    const secret = await login()
    const person = await tokens.create({ name: 'person', role: 'member', expiresInMs: 30 * DAY_MS })
    const sessions = async () => (await readTokens(store)).filter(({ kind }) => kind === 'session').length
    await pass(30 * DAY_MS - MINUTE_MS)
    assert.deepEqual([await nameOf(secret), (await sessions()) > 0], ['browser', true])
    await pass(2 * MINUTE_MS)
    assert.deepEqual([await nameOf(secret), await sessions()], [undefined, 0])
    assert.equal((await tokens.whyRefused(secret))?.reason, 'expired')
    await tokens.create({ name: 'new', role: 'member' })
    assert.equal(await tokens.whyRefused(secret), undefined)
    assert.equal((await tokens.whyRefused(person.secret))?.reason, 'expired', 'the token of a person stays')
  })

  test('PL-1 a logout ends its own session, no other one and no token; a session cannot be rotated', async () => {
    const { tokens, nameOf, store } = opened
    const [mine, yours] = [await login(), await login()]
    const token = await tokens.create({ name: 'token', role: 'member' })
    const session = (await readTokens(store)).find(({ kind }) => kind === 'session')
    await assert.rejects(tokens.rotate(session?.id ?? '', 0), hasCode('not_found'))
    await tokens.revokeBrowserLogin(mine)
    await tokens.revokeBrowserLogin(token.secret)
    assert.deepEqual(await Promise.all([mine, yours, token.secret].map(nameOf)), [undefined, 'browser', 'token'])
  })
}

function conversationTests(opened: TokensUnderTest): void {
  const start = async (host: string) => {
    const { store, clock } = opened
    const conversations = createConversationTokens({
      secret: await ensureConversationSecret(store),
      run: await beginTokenRun(store, host),
      nowMs: clock.nowMs,
    })
    const issue = (id: string, grant: object = {}) =>
      conversations.issue({ workspaceId: id, conversationId: ulid() }, { generation: 0, isForBridge: false, ...grant })
    return { issue, tokens: createTokens({ store, clock, adminToken: ADMIN, conversations }) }
  }

  test('RT-12 a conversation token is its conversation until it expires, and ends with its workspace', async () => {
    const { workspace, store, clock } = opened
    const { issue, tokens } = await start('expiry')
    const [id, gone] = [await workspace('painter'), await workspace('gone')]
    const [token, lost] = [issue(id), issue(gone)]
    const identity = await tokens.verify(token)
    assert.deepEqual([identity?.role, identity?.workspaceId, identity?.sender.name], ['conversation', id, 'painter'])
    assert.equal(identity?.principal, `ws:${id}/${identity?.conversationId}`)
    await store.write(() => sql('update workspaces set deleted_at = 1 where id = $1', [gone]))
    assert.equal(await tokens.verify(lost), undefined)
    clock.advance(DAY_MS)
    assert.equal(await tokens.verify(token), undefined)
    assert.equal((await tokens.whyRefused(token))?.reason, 'expired')
  })

  test('RT-12 a restart of its host ends a conversation token, a restart of another host or a bridge does not', async () => {
    const id = await opened.workspace('painter')
    const first = await start('restarted')
    const [token, forBridge] = [first.issue(id), first.issue(id, { isForBridge: true })]
    const other = await start('another host')
    assert.deepEqual([(await other.tokens.verify(token))?.workspaceId, first.issue === other.issue], [id, false])
    const again = await start('restarted')
    assert.equal(await again.tokens.verify(token), undefined, 'its platform was started again')
    assert.ok(await again.tokens.verify(forBridge), "a bridge's processes go on")
  })

  test("PL-12 with a workspace's own token its conversation tokens end, here at once and elsewhere within 5 s; not the other way", async () => {
    const { workspace, pass } = opened
    const [one, other] = [await workspace('one'), await workspace('other')]
    const { issue, tokens: here } = await start('revoking')
    const conversations = await start('looking')
    const bridge = await here.create({ name: 'bridge', role: 'workspace', workspaceId: one })
    const secrets = { turn: issue(one), 'turn of another': issue(other) }
    const ended = await watch(here, { bridge: bridge.secret, ...secrets })
    const endedElsewhere = await watch(conversations.tokens, secrets)
    await here.revokeConversations(one)
    assert.deepEqual(ended, ['turn'])
    await pass(5000)
    await waitUntil(() => endedElsewhere.length > 0, 'the end elsewhere')
    assert.deepEqual(endedElsewhere, ['turn'])
    const renewed = issue(one, { generation: 1 })
    const second = await watch(here, { renewed })
    await here.revoke(bridge.id)
    assert.deepEqual([second, ended], [['renewed'], ['turn', 'bridge']])
    assert.deepEqual(
      [await here.verify(renewed), (await here.verify(secrets['turn of another']))?.workspaceId],
      [undefined, other],
    )
  })

  test('RT-12 every node has the same secret for conversation tokens', async () => {
    const secret = await ensureConversationSecret(opened.store)
    assert.deepEqual([secret.length, await ensureConversationSecret(opened.store)], [32, secret])
  })
}
