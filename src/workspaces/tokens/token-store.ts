/**
 * Tokens in the store, and the admin token, whose hash is in memory. Login codes are only in memory: they live ten
 * minutes, and a restart prints a new one. Every request verifies a token, so a secret that was verified recently costs
 * one hash, and the last use is written beside the request, at most once a minute.
 */
import { hash as digest, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { type Log, silentLog } from '../../log.ts'
import type { Store, Transaction } from '../../store/store.ts'
import {
  ADMIN_TOKEN_ID,
  type BrowserLogin,
  type Identity,
  LOGIN_CODE_MS,
  type NewToken,
  type RefusedSecret,
  SECRET_BYTES,
  SECRET_PREFIX,
  type Tokens,
} from '../tokens.ts'
import { type ConversationTokens, parseClaims } from './conversation-tokens.ts'
import { createRevocations } from './revocations.ts'
import * as rows from './token-rows.ts'
import { createVerificationCache } from './verification-cache.ts'

const BROWSER_LOGIN_MS = 30 * 24 * 3600_000
/** At the limit the oldest code is dropped. */
const LOGIN_CODES_MAX = 100
/** A longer text is refused before it is hashed. An admin token from the configuration may have 512 characters. */
const SECRET_CHARACTERS_MAX = 512
const TOUCH_MS = 60_000
/** Tokens whose last use is in memory. At the limit the map is cleared, and each token is written once more. */
const TOUCHED_MAX = 10_000

export interface TokenStoreOptions {
  readonly store: Store
  readonly clock: Clock
  readonly adminToken: string
  readonly log?: Log
  /** Reads conversation tokens; absent when none are issued. */
  readonly conversations?: Pick<ConversationTokens, 'read'>
}

const ADMIN = { tokenId: ADMIN_TOKEN_ID, secretId: ADMIN_TOKEN_ID, name: ADMIN_TOKEN_ID, role: 'admin' } as const

export function createTokens({ store, clock, adminToken, conversations, log = silentLog }: TokenStoreOptions): Tokens {
  const adminHash = hash(adminToken)
  const admin = rows.personIdentity(ADMIN)
  const verified = createVerificationCache(clock)
  const touch = createTouch({ store, clock, log })
  const findValid = (identities: readonly Identity[]) => store.read(() => findValidSecrets(identities, clock.nowMs()))
  const revocations = createRevocations({ clock, findValid })
  const forget = (isRevoked: (identity: Identity) => boolean) => {
    verified.drop(isRevoked)
    revocations.notifyWatchers(isRevoked)
  }
  const forgetToken = (id: string) => forget(({ tokenId }) => tokenId === id)
  const forgetConversations = (id: string) =>
    forget((identity) => identity.workspaceId === id && rows.isIssuedConversation(identity))
  const browserLogins = createBrowserLogins({ store, clock, log }, forgetToken)
  const revoke = async (id: string) => {
    const workspaceId = await store.write(() => rows.deleteToken(id))
    forgetToken(id)
    if (workspaceId !== undefined) forgetConversations(workspaceId)
  }
  const revokeConversations = async (workspaceId: string) => {
    await store.write(() => rows.raiseTokenGeneration(workspaceId))
    forgetConversations(workspaceId)
  }
  return {
    ...browserLogins,
    async verify(secret) {
      if (secret.length === 0 || secret.length > SECRET_CHARACTERS_MAX) return undefined
      const hashed = hash(secret)
      if (timingSafeEqual(hashed, adminHash)) return admin
      // Prevents a read of the store for a text that cannot be one of its tokens.
      if (!secret.startsWith(SECRET_PREFIX)) return undefined
      const hex = hashed.toString('hex')
      const lookUp = () => {
        const claims = conversations?.read(secret)
        if (claims === undefined) return store.read(() => rows.findByHash(hashed))
        return store.read(() => rows.findConversationToken(claims, clock.nowMs()))
      }
      const identity = verified.get(hex) ?? (await verified.remember(hex, lookUp))
      if (identity !== undefined && !rows.isIssuedConversation(identity)) touch(identity.tokenId)
      return identity
    },
    whyRefused: (secret) => whyRefused(secret, { store, clock, conversations }),
    async create(input) {
      requireRoleFields(input)
      const token = { id: ulid(), secret: newSecret() }
      await store.write(() => rows.insertToken({ ...input, id: token.id, kind: 'token', hash: hex(token.secret) }))
      return token
    },
    async rotate(id, overlapMs) {
      const token = { id, secret: newSecret() }
      await store.write(() => rows.rotateToken({ id, hash: hex(token.secret), overlapMs }))
      verified.drop(({ tokenId }) => tokenId === id)
      // Without an overlap, and after two rotations, a secret ends now. Otherwise a poll after the overlap finds it.
      await revocations.recheck(({ tokenId }) => tokenId === id)
      return token
    },
    revoke,
    async revokeAll(workspaceId) {
      for (const id of await store.read(() => rows.findTokenIds(workspaceId))) await revoke(id)
      await revokeConversations(workspaceId)
    },
    revokeConversations,
    // The admin token is valid while this process runs.
    onRevoked: (identity, callback) =>
      identity.tokenId === ADMIN_TOKEN_ID ? () => undefined : revocations.watch(identity, callback),
  }
}

/** Why a secret that was valid once is refused now. */
async function whyRefused(
  secret: string,
  { store, clock, conversations }: Pick<TokenStoreOptions, 'store' | 'clock' | 'conversations'>,
): Promise<RefusedSecret | undefined> {
  if (secret.length > SECRET_CHARACTERS_MAX || !secret.startsWith(SECRET_PREFIX)) return undefined
  const claims = conversations?.read(secret)
  if (claims === undefined) return await store.read(() => rows.findRefused(hash(secret)))
  const sinceMs = clock.nowMs() - claims.expiresAtMs
  return sinceMs >= 0 ? { reason: 'expired', sinceMs } : undefined
}

/** The `secretId` of those identities whose secret is still valid. */
function* findValidSecrets(identities: readonly Identity[], nowMs: number): Transaction<Set<string>> {
  const hashes = identities.filter((identity) => !rows.isIssuedConversation(identity)).map(({ secretId }) => secretId)
  const valid = new Set(yield* rows.findValidHashes(hashes))
  for (const identity of identities) {
    const claims = rows.isIssuedConversation(identity) ? parseClaims(identity.secretId) : undefined
    const found = claims && (yield* rows.findConversationToken(claims, nowMs))
    if (found !== undefined) valid.add(identity.secretId)
  }
  return valid
}

/** A digest as binary text is three times as fast as one as a Buffer. */
const hash = (secret: string): Buffer => Buffer.from(digest('sha256', secret, 'binary'), 'latin1')
const hex = (secret: string): string => hash(secret).toString('hex')
const newSecret = (): string => SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64url')

/** A role that acts as a workspace must name it. Any other role must not name one. */
function requireRoleFields({ role, workspaceId, conversationId, workspaces }: NewToken): void {
  const actsAsWorkspace = role === 'workspace' || role === 'conversation'
  requireField('workspace_id', workspaceId !== undefined, { role, needed: actsAsWorkspace })
  requireField('conversation_id', conversationId !== undefined, { role, needed: role === 'conversation' })
  requireField('workspaces', workspaces !== undefined && workspaces.length > 0, { role, needed: role === 'caller' })
}

function requireField(path: string, given: boolean, { role, needed }: { role: string; needed: boolean }): void {
  if (given === needed) return
  const message = `a token with the role ${role} ${needed ? 'needs' : 'has no'} "${path}"`
  throw new MoleculeError('invalid_request', message, { details: { path } })
}

interface TokenStoreContext {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
}

/** Stores the time of the last use. The request does not wait for it. */
function createTouch({ store, clock, log }: TokenStoreContext): (tokenId: string) => void {
  const touched = new Map<string, number>()
  return (tokenId) => {
    const nowMs = clock.monotonicMs()
    if (nowMs - (touched.get(tokenId) ?? Number.NEGATIVE_INFINITY) < TOUCH_MS) return
    if (touched.size >= TOUCHED_MAX) touched.clear()
    touched.set(tokenId, nowMs)
    store
      .write(() => rows.touchToken(tokenId))
      .catch((err: unknown) => log.warn({ err, tokenId }, 'the last use of a token could not be stored'))
  }
}

const DEFAULT_LOGIN: BrowserLogin = { role: 'admin', name: 'browser' }

/** A browser logs in with a printed single-use code. The row of its log-in has the kind `session`. */
function createBrowserLogins({ store, clock }: TokenStoreContext, forget: (tokenId: string) => void) {
  const codes = new Map<string, BrowserLogin & { readonly untilMs: number }>()
  return {
    issueLoginCode({ role, name }: BrowserLogin = DEFAULT_LOGIN): string {
      const code = randomBytes(SECRET_BYTES).toString('base64url')
      for (const [known, { untilMs }] of codes) {
        if (untilMs < clock.monotonicMs() || codes.size >= LOGIN_CODES_MAX) codes.delete(known)
      }
      codes.set(hex(code), { role, name, untilMs: clock.monotonicMs() + LOGIN_CODE_MS })
      return code
    },
    async exchangeLoginCode(code: string) {
      const codeHash = hex(code.slice(0, SECRET_CHARACTERS_MAX))
      const login = codes.get(codeHash)
      codes.delete(codeHash)
      if (login === undefined || login.untilMs < clock.monotonicMs()) return undefined
      const { role, name } = login
      const secret = newSecret()
      const token = { id: ulid(), kind: 'session', name, role, expiresInMs: BROWSER_LOGIN_MS } as const
      await store.write(() => rows.insertToken({ ...token, hash: hex(secret) }))
      return { secret, maxAgeSeconds: BROWSER_LOGIN_MS / 1000 }
    },
    async revokeBrowserLogin(secret: string): Promise<void> {
      const id = await store.write(() => rows.deleteBrowserLogin(hex(secret)))
      if (id !== undefined) forget(id)
    },
  }
}
