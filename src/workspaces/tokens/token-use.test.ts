import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { openSqlite } from '../../store/sqlite/sqlite.ts'
import { sql } from '../../store/store.ts'
import { createTokens } from './token-store.ts'

const START_MS = 1_000_000

function open(t: TestContext, adminToken = 'the-admin-token') {
  const clock = manualClock(START_MS)
  const store = openSqlite({ path: join(temporaryDir(t), 'm.db'), clock })
  t.after(() => store.close())
  return { clock, store, tokens: createTokens({ store, clock, adminToken }) }
}

test('PL-12 the use of one token is stored for this token, and another token does not make it stored again', async (t) => {
  const { clock, store, tokens } = open(t)
  const [used, other, idle] = [
    await tokens.create({ name: 'used', role: 'member' }),
    await tokens.create({ name: 'other', role: 'member' }),
    await tokens.create({ name: 'idle', role: 'member' }),
  ]
  const verify = async (secret: string) => {
    assert.ok(await tokens.verify(secret))
    // The request does not wait for that write; a write after it is committed after it.
    await store.write(() => sql('select 1 as one'))
  }
  const lastUsed = async () => {
    const infos = await tokens.list()
    return [used, other, idle].map(({ id }) => infos.find((info) => info.id === id)?.lastUsedAtMs)
  }
  await verify(used.secret)
  clock.advance(10_000)
  await verify(other.secret)
  await verify(used.secret)
  assert.deepEqual(await lastUsed(), [START_MS, START_MS + 10_000, undefined])
  clock.advance(49_999)
  await verify(used.secret)
  assert.deepEqual((await lastUsed())[0], START_MS)
  clock.advance(1)
  await verify(used.secret)
  assert.deepEqual(await lastUsed(), [START_MS + 60_000, START_MS + 10_000, undefined])
})

test('PL-1 a login code works until the end of its tenth minute, also when another one is made then', async (t) => {
  const { clock, tokens } = open(t)
  const codes = [tokens.issueLoginCode(), tokens.issueLoginCode()]
  clock.advance(600_000)
  tokens.issueLoginCode()
  const session = await tokens.exchangeLoginCode(codes[0] ?? '')
  assert.equal(session?.maxAgeSeconds, 30 * 24 * 3600)
  assert.equal((await tokens.verify(session?.secret ?? ''))?.name, 'browser')
  clock.advance(1)
  assert.equal(await tokens.exchangeLoginCode(codes[1] ?? ''), undefined)
})

test('PL-1 a hundred login codes wait at a time; the next one drops the oldest', async (t) => {
  const { tokens } = open(t)
  const codes = Array.from({ length: 101 }, () => tokens.issueLoginCode({ role: 'viewer', name: 'Ada' }))
  const roleOf = async (code: string | undefined) => {
    const session = await tokens.exchangeLoginCode(code ?? '')
    return session && (await tokens.verify(session.secret))?.role
  }
  assert.deepEqual(
    [await roleOf(codes[0]), await roleOf(codes[1]), await roleOf(codes[100])],
    [undefined, 'viewer', 'viewer'],
  )
})

test('a browser session ends in the millisecond after thirty days', async (t) => {
  const { clock, tokens } = open(t)
  const session = await tokens.exchangeLoginCode(tokens.issueLoginCode())
  clock.advance(30 * 24 * 3600_000 - 1)
  assert.ok(await tokens.verify(session?.secret ?? ''))
  clock.advance(1)
  assert.equal(await tokens.verify(session?.secret ?? ''), undefined)
})

test('PL-12 an admin token may have 512 characters; an empty text is never the admin', async (t) => {
  const longest = 'x'.repeat(512)
  const { tokens } = open(t, longest)
  assert.equal((await tokens.verify(longest))?.role, 'admin')
  assert.equal(await open(t, `${longest}x`).tokens.verify(`${longest}x`), undefined)
  assert.equal(await open(t, '').tokens.verify(''), undefined)
})

test('PL-12 the error of a missing field names it for programs too', async (t) => {
  const { tokens } = open(t)
  const refused = (input: Parameters<typeof tokens.create>[0], path: string, verb: string) =>
    assert.rejects(tokens.create(input), {
      code: 'invalid_request',
      details: { path },
      message: `a token with the role ${input.role} ${verb} "${path}"`,
    })
  await refused({ name: 'x', role: 'workspace' }, 'workspace_id', 'needs')
  await refused({ name: 'x', role: 'viewer', workspaceId: 'w' }, 'workspace_id', 'has no')
  await refused({ name: 'x', role: 'conversation', workspaceId: 'w' }, 'conversation_id', 'needs')
  await refused({ name: 'x', role: 'workspace', workspaceId: 'w', conversationId: 'c' }, 'conversation_id', 'has no')
  await refused({ name: 'x', role: 'caller' }, 'workspaces', 'needs')
  await refused({ name: 'x', role: 'member', workspaces: ['w'] }, 'workspaces', 'has no')
  assert.deepEqual(await tokens.list(), [])
})
