import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type ManualClock, manualClock } from '../../test/fakes/manual-clock.ts'
import { openSqlite } from '../store/sqlite/sqlite.ts'
import { type Store, sql } from '../store/store.ts'
import { createTokens } from './token-store.ts'
import type { Tokens } from './tokens.ts'

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

test('the admin token is the admin, a person; anything else is nobody', async () => {
  const admin = await tokens.verify(ADMIN)
  assert.deepEqual([admin?.role, admin?.principal, admin?.sender.kind], ['admin', 'people', 'person'])
  for (const wrong of ['', 'x', `${ADMIN}x`, ADMIN.toUpperCase(), 'y'.repeat(100_000)]) {
    assert.equal(await tokens.verify(wrong), undefined)
  }
})

test('PL-1 a login code is good for one exchange, and its session for requests until it is revoked', async () => {
  const code = tokens.issueLoginCode()
  const session = await tokens.exchangeLoginCode(code)
  assert.ok(session)
  assert.equal(await tokens.exchangeLoginCode(code), undefined)
  assert.equal((await tokens.verify(session.secret))?.role, 'admin')
  const stored = await store.read(() => sql<{ hash: string }>('select hash from tokens'))
  assert.ok(stored.every(({ hash }) => hash !== session.secret && hash.length === 64))
  await tokens.revokeSession(session.secret)
  assert.equal(await tokens.verify(session.secret), undefined)
})

test('a login code is worth nothing after ten minutes, and a session after thirty days', async () => {
  const late = tokens.issueLoginCode()
  const session = await tokens.exchangeLoginCode(tokens.issueLoginCode())
  clock.advance(10 * 60_000 + 1)
  assert.equal(await tokens.exchangeLoginCode(late), undefined)
  assert.ok(await tokens.verify(session?.secret ?? ''))
  clock.advance(30 * 24 * 3600_000)
  assert.equal(await tokens.verify(session?.secret ?? ''), undefined)
})
