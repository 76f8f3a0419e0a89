/**
 * Transactions on the rows of `tokens`, and the identity that a row gives. Only hashes are stored, so a row cannot be
 * used to log in.
 */
import { timingSafeEqual } from 'node:crypto'
import { MoleculeError } from '../../errors.ts'
import { sql, type Transaction, type Value } from '../../store/store.ts'
import {
  CONVERSATION_TOKEN_ID_PREFIX,
  type Identity,
  type NewToken,
  type RefusedSecret,
  TOKENS_MAX,
  type TokenRole,
} from '../tokens.ts'
import type { ConversationClaims } from './conversation-tokens.ts'
import { endWorkOf, endWorkOfConversations } from './end-work.ts'

export interface VerifiedToken {
  readonly identity: Identity
  /** How long it stays valid; undefined = no expiry. */
  readonly leftMs: number | undefined
}

interface TokenRow {
  id: string
  kind: 'token' | 'session'
  name: string
  role: TokenRole
  hash: string
  old_hash: string | null
  old_until: number | null
  workspace_id: string | null
  conversation_id: string | null
  workspaces: string | null
  created_at: number
  expires_at: number | null
  last_used_at: number | null
}

const IS_VALID = '(t.expires_at is null or t.expires_at > now_ms())'

/** The token whose secret, or whose secret before the last rotation, has this hash. */
export function* findByHash(hashed: Buffer): Transaction<VerifiedToken | undefined> {
  const hex = hashed.toString('hex')
  const [row] = yield* sql<TokenRow & { ownerName: string | null; now: number }>(
    `select t.*, w.name as "ownerName", now_ms() as now from tokens t left join workspaces w on w.id = t.workspace_id
     where (t.hash = $1 or (t.old_hash = $1 and t.old_until > now_ms())) and ${IS_VALID}`,
    [hex],
  )
  if (row === undefined) return undefined
  const isCurrent = sameHash(row.hash, hashed)
  if (!isCurrent && !sameHash(row.old_hash ?? '', hashed)) return undefined
  const ends = [row.expires_at, isCurrent ? null : row.old_until].filter((end) => end !== null)
  const leftMs = ends.length === 0 ? undefined : Math.min(...ends) - row.now
  return { identity: identityOf(row, row.ownerName, hex), leftMs }
}

/** Why the token with this secret is refused; undefined where no token has or had it. */
export function* findRefused(hashed: Buffer): Transaction<RefusedSecret | undefined> {
  const [row] = yield* sql<Pick<TokenRow, 'hash' | 'old_until' | 'expires_at'> & { now: number }>(
    'select hash, old_until, expires_at, now_ms() as now from tokens where hash = $1 or old_hash = $1',
    [hashed.toString('hex')],
  )
  if (row === undefined) return undefined
  const { expires_at: expiry, old_until: overlap, now } = row
  if (expiry !== null && expiry <= now) return { reason: 'expired', sinceMs: now - expiry }
  if (sameHash(row.hash, hashed) || overlap === null || overlap > now) return undefined
  return { reason: 'replaced', sinceMs: now - overlap }
}

/** The index lookup uses the hash, which reveals nothing of the secret. This comparison takes constant time. */
function sameHash(stored: string, hashed: Buffer): boolean {
  const bytes = Buffer.from(stored, 'hex')
  return bytes.length === hashed.length && timingSafeEqual(bytes, hashed)
}

function identityOf(row: TokenRow, ownerName: string | null, secretId: string): Identity {
  const { id, name, role, workspace_id: workspaceId, conversation_id: conversationId } = row
  if (role === 'caller') {
    const workspaces = JSON.parse(row.workspaces ?? '[]') as string[]
    const sender = { kind: 'program', id, name, door: 'http' } as const
    return { tokenId: id, secretId, name, role, principal: `token:${id}`, sender, workspaces }
  }
  if (role !== 'workspace' && role !== 'conversation') return personIdentity({ tokenId: id, secretId, name, role })
  // A workspace token without a workspace must not get the principal of another identity.
  const ownerId = workspaceId ?? ''
  const sender = { kind: 'agent', id: ownerId, name: ownerName ?? name, door: 'http' } as const
  const identity = { tokenId: id, secretId, name, role, sender, workspaceId: ownerId }
  if (conversationId === null) return { ...identity, principal: `ws:${ownerId}` }
  return { ...identity, principal: `ws:${ownerId}/${conversationId}`, conversationId }
}

/** The identity of a conversation token that was issued by the current run and for the current generation. */
export function* findConversationToken(
  claims: ConversationClaims,
  nowMs: number,
): Transaction<VerifiedToken | undefined> {
  const { workspaceId, conversationId } = claims
  const leftMs = claims.expiresAtMs - nowMs
  if (leftMs <= 0) return undefined
  const [row] = yield* sql<{ name: string }>(
    `select w.name from workspaces w where w.id = $1 and w.deleted_at is null and w.token_generation = $2
     and ($3 = '' or exists (select 1 from token_runs r where r.run = $3))`,
    [workspaceId, claims.generation, claims.run ?? ''],
  )
  if (row === undefined) return undefined
  const identity: Identity = {
    tokenId: `${CONVERSATION_TOKEN_ID_PREFIX}${conversationId}`,
    secretId: claims.text,
    name: `conversation of ${row.name}`,
    role: 'conversation',
    principal: `ws:${workspaceId}/${conversationId}`,
    sender: { kind: 'agent', id: workspaceId, name: row.name, door: 'http' },
    workspaceId,
    conversationId,
  }
  return { identity, leftMs }
}

export const isIssuedConversation = ({ tokenId }: Identity): boolean => tokenId.startsWith(CONVERSATION_TOKEN_ID_PREFIX)

/** Conversation tokens of the workspace that were issued before are refused from now on. */
export function* raiseTokenGeneration(workspaceId: string): Transaction<void> {
  yield* sql('update workspaces set token_generation = token_generation + 1 where id = $1', [workspaceId])
  yield* endWorkOfConversations(workspaceId)
}

/** All people share one principal, so that one can continue the conversation of another. */
export function personIdentity(token: Pick<Identity, 'tokenId' | 'secretId' | 'name' | 'role'>): Identity {
  const { tokenId, name } = token
  return { ...token, principal: 'people', sender: { kind: 'person', id: tokenId, name, door: 'http' } }
}

export interface NewTokenRow extends NewToken {
  readonly id: string
  readonly kind: 'token' | 'session'
  readonly hash: string
}

export function* insertToken(row: NewTokenRow): Transaction<void> {
  // Expired sessions and conversation tokens are deleted here. A token that a person made stays in the list.
  yield* sql(`delete from tokens where expires_at < now_ms() and (kind = 'session' or role = 'conversation')`)
  const [count] = yield* sql<{ total: number }>('select count(*) as total from tokens')
  if ((count?.total ?? 0) >= TOKENS_MAX) {
    throw new MoleculeError('invalid_request', `there are already ${TOKENS_MAX} tokens: revoke some first`)
  }
  const expiry = row.expiresInMs === undefined ? 'null' : 'now_ms() + $9'
  const values: Value[] = [row.id, row.kind, row.name, row.role, row.hash]
  values.push(row.workspaceId ?? null, row.conversationId ?? null)
  values.push(row.workspaces === undefined ? null : JSON.stringify(row.workspaces))
  if (row.expiresInMs !== undefined) values.push(row.expiresInMs)
  yield* sql(
    `insert into tokens (id, kind, name, role, hash, workspace_id, conversation_id, workspaces, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, now_ms(), ${expiry})`,
    values,
  )
}

/** The tokens that act as the workspace or as one of its conversations. */
export function* findTokenIds(workspaceId: string): Transaction<string[]> {
  const rows = yield* sql<{ id: string }>('select id from tokens where workspace_id = $1 order by id', [workspaceId])
  return rows.map(({ id }) => id)
}

/** Browser log-ins are not rotated: the browser logs in again. */
export function* rotateToken({
  id,
  hash,
  overlapMs,
}: {
  id: string
  hash: string
  overlapMs: number
}): Transaction<void> {
  const rows = yield* sql(
    `update tokens set old_hash = hash, old_until = now_ms() + $3, hash = $2
     where id = $1 and kind = 'token' and (expires_at is null or expires_at > now_ms()) returning id`,
    [id, hash, overlapMs],
  )
  if (rows.length === 0) throw tokenNotFound(id)
}

/**
 * Returns the workspace whose conversation tokens ended with it. The holder of a workspace's own token gets conversation
 * tokens with its leases, so they must not outlive it.
 */
export function* deleteToken(id: string): Transaction<string | undefined> {
  const [row] = yield* sql<Pick<TokenRow, 'role' | 'workspace_id'>>(
    'delete from tokens where id = $1 returning role, workspace_id',
    [id],
  )
  if (row === undefined) throw tokenNotFound(id)
  yield* endWorkOf(id)
  if (row.role !== 'workspace' || row.workspace_id === null) return undefined
  yield* raiseTokenGeneration(row.workspace_id)
  return row.workspace_id
}

/** Returns the id of the deleted session, if there was one. */
export function* deleteBrowserLogin(hash: string): Transaction<string | undefined> {
  const [row] = yield* sql<{ id: string }>(`delete from tokens where hash = $1 and kind = 'session' returning id`, [
    hash,
  ])
  return row?.id
}

export function* touchToken(id: string): Transaction<void> {
  yield* sql('update tokens set last_used_at = now_ms() where id = $1', [id])
}

/** Those of the hashes that are a current secret, or an old one within its overlap. */
export function* findValidHashes(hashes: readonly string[]): Transaction<string[]> {
  if (hashes.length === 0) return []
  const placeholders = hashes.map((_, index) => `$${index + 1}`).join(', ')
  const rows = yield* sql<{ hash: string }>(
    `select t.hash as hash from tokens t where t.hash in (${placeholders}) and ${IS_VALID}
     union all select t.old_hash from tokens t
     where t.old_hash in (${placeholders}) and t.old_until > now_ms() and ${IS_VALID}`,
    hashes,
  )
  return rows.map(({ hash }) => hash)
}

const tokenNotFound = (id: string): MoleculeError => new MoleculeError('not_found', `there is no token ${id}`)
