/**
 * Tokens in the store, and the admin's, which is held as a hash in memory. Login codes are memory only: they live ten
 * minutes and a restart prints a new one.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { ulid } from '../ids.ts'
import { type Store, sql, type Transaction } from '../store/store.ts'
import type { Identity, TokenRole, Tokens } from './tokens.ts'

const SECRET_BYTES = 32
const LOGIN_CODE_MS = 10 * 60_000
const SESSION_MS = 30 * 24 * 3600_000
/** More codes than anybody can use; the oldest go first. */
const LOGIN_CODES_MAX = 100
/** Nothing longer was ever issued: refuse before hashing. */
const SECRET_CHARACTERS_MAX = 256

export interface TokenStoreOptions {
  readonly store: Store
  readonly clock: Clock
  readonly adminToken: string
}

export function createTokens({ store, clock, adminToken }: TokenStoreOptions): Tokens {
  const adminHash = hash(adminToken)
  const admin = person('admin', 'admin', 'admin')
  const codes = new Map<string, number>()
  return {
    async verify(secret) {
      if (secret.length === 0 || secret.length > SECRET_CHARACTERS_MAX) return undefined
      const hashed = hash(secret)
      if (timingSafeEqual(hashed, adminHash)) return admin
      return await store.read(() => findToken(hashed.toString('hex')))
    },
    issueLoginCode() {
      const code = randomBytes(SECRET_BYTES).toString('base64url')
      for (const [known, untilMs] of codes) {
        if (untilMs < clock.monotonicMs() || codes.size >= LOGIN_CODES_MAX) codes.delete(known)
      }
      codes.set(hash(code).toString('hex'), clock.monotonicMs() + LOGIN_CODE_MS)
      return code
    },
    async exchangeLoginCode(code) {
      const name = hash(code.slice(0, SECRET_CHARACTERS_MAX)).toString('hex')
      const untilMs = codes.get(name)
      codes.delete(name)
      if (untilMs === undefined || untilMs < clock.monotonicMs()) return undefined
      const secret = randomBytes(SECRET_BYTES).toString('base64url')
      await store.write(() => insertSession(hash(secret).toString('hex')))
      return { secret, maxAgeSeconds: SESSION_MS / 1000 }
    },
    revokeSession: (secret) => store.write(() => deleteSession(hash(secret).toString('hex'))),
  }
}

const hash = (secret: string): Buffer => createHash('sha256').update(secret).digest()

/** All people with an admin or member token share one principal: what one asked, another may read on. */
function person(tokenId: string, name: string, role: TokenRole): Identity {
  return { tokenId, name, role, principal: 'people', sender: { kind: 'person', id: tokenId, name, door: 'http' } }
}

function* findToken(hashed: string): Transaction<Identity | undefined> {
  const [row] = yield* sql<{ id: string; name: string; role: TokenRole }>(
    'select id, name, role from tokens where hash = $1 and (expires_at is null or expires_at > now_ms())',
    [hashed],
  )
  return row === undefined ? undefined : person(row.id, row.name, row.role)
}

function* insertSession(hashed: string): Transaction<void> {
  yield* sql('delete from tokens where expires_at < now_ms()')
  yield* sql(
    `insert into tokens (id, kind, name, role, hash, created_at, expires_at)
     values ($1, 'session', 'browser', 'admin', $2, now_ms(), now_ms() + $3)`,
    [ulid(), hashed, SESSION_MS],
  )
}

function* deleteSession(hashed: string): Transaction<void> {
  yield* sql(`delete from tokens where hash = $1 and kind = 'session'`, [hashed])
}
