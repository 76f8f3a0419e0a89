/**
 * Transactions on the rows of `tokens`, and the identity that a row gives. Only hashes are stored, so a row cannot be
 * used to log in.
 */
import { timingSafeEqual } from 'node:crypto'
import { MoleculeError } from '../../errors.ts'
import { sql, type Transaction, type Value } from '../../store/store.ts'
import type { Identity, NewToken, TokenInfo, TokenRole } from '../tokens.ts'
import type { ConversationSubject } from './conversation-tokens.ts'

/** Programs that create tokens must revoke them. At the limit, `insertToken` refuses a new one. */
const TOKENS_MAX = 10_000

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
    `select t.*, w.name as ownerName, now_ms() as now from tokens t left join workspaces w on w.id = t.workspace_id
     where (t.hash = $1 or (t.old_hash = $1 and t.old_until > now_ms())) and ${IS_VALID}`,
    [hex],
  )
  if (row === undefined) return undefined
  const isCurrent = sameHash(row.hash, hashed)
  if (!isCurrent && !sameHash(row.old_hash ?? '', hashed)) return undefined
  const ends = [row.expires_at, isCurrent ? null : row.old_until].filter((end) => end !== null)
  const leftMs = ends.length === 0 ? undefined : Math.min(...ends) - row.now
  return { identity: identityOf(row, row.ownerName), leftMs }
}

/** The index lookup uses the hash, which reveals nothing of the secret. This comparison takes constant time. */
function sameHash(stored: string, hashed: Buffer): boolean {
  const bytes = Buffer.from(stored, 'hex')
  return bytes.length === hashed.length && timingSafeEqual(bytes, hashed)
}

function identityOf(row: TokenRow, ownerName: string | null): Identity {
  const { id, name, role, workspace_id: workspaceId, conversation_id: conversationId } = row
  if (role === 'caller') {
    const workspaces = JSON.parse(row.workspaces ?? '[]') as string[]
    const sender = { kind: 'program', id, name, door: 'http' } as const
    return { tokenId: id, name, role, principal: `token:${id}`, sender, workspaces }
  }
  if (role !== 'workspace' && role !== 'conversation') return personIdentity(id, name, role)
  // A workspace token without a workspace must not get the principal of another identity.
  const ownerId = workspaceId ?? ''
  const sender = { kind: 'agent', id: ownerId, name: ownerName ?? name, door: 'http' } as const
  const conversation = conversationId === null ? {} : { conversationId }
  return { tokenId: id, name, role, principal: `ws:${ownerId}`, sender, workspaceId: ownerId, ...conversation }
}

/** The identity of a conversation token, while its workspace exists. */
export function* findConversationToken({
  workspaceId,
  conversationId,
}: ConversationSubject): Transaction<VerifiedToken | undefined> {
  const [row] = yield* sql<{ name: string }>('select name from workspaces where id = $1 and deleted_at is null', [
    workspaceId,
  ])
  if (row === undefined) return undefined
  const name = `conversation of ${row.name}`
  const sender = { kind: 'agent', id: workspaceId, name: row.name, door: 'http' } as const
  const tokenId = `${CONVERSATION_TOKEN_ID_PREFIX}${conversationId}`
  const identity = { tokenId, name, role: 'conversation', principal: `ws:${workspaceId}`, sender } as const
  return { identity: { ...identity, workspaceId, conversationId }, leftMs: undefined }
}

/** Conversation tokens have no row: they are valid until their workspace is deleted. */
export const CONVERSATION_TOKEN_ID_PREFIX = 'conversation:'

/** All people share one principal, so that one can continue the conversation of another. */
export function personIdentity(tokenId: string, name: string, role: TokenRole): Identity {
  return { tokenId, name, role, principal: 'people', sender: { kind: 'person', id: tokenId, name, door: 'http' } }
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

export function* listTokens(): Transaction<TokenInfo[]> {
  const rows = yield* sql<TokenRow & { now: number }>(
    `select t.*, now_ms() as now from tokens t where t.kind = 'token' or ${IS_VALID} order by t.id limit ${TOKENS_MAX}`,
  )
  return rows.map(toInfo)
}

function toInfo(row: TokenRow & { now: number }): TokenInfo {
  return {
    id: row.id,
    kind: row.kind,
    name: row.name,
    role: row.role,
    createdAtMs: row.created_at,
    ...(row.workspace_id !== null && { workspaceId: row.workspace_id }),
    ...(row.conversation_id !== null && { conversationId: row.conversation_id }),
    ...(row.workspaces !== null && { workspaces: JSON.parse(row.workspaces) as string[] }),
    ...(row.expires_at !== null && { expiresAtMs: row.expires_at }),
    ...(row.last_used_at !== null && { lastUsedAtMs: row.last_used_at }),
    ...(row.old_until !== null && row.old_until > row.now && { oldUntilMs: row.old_until }),
  }
}

/** Browser sessions are not rotated: the browser logs in again. */
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

export function* deleteToken(id: string): Transaction<void> {
  const rows = yield* sql('delete from tokens where id = $1 returning id', [id])
  if (rows.length === 0) throw tokenNotFound(id)
}

/** Returns the id of the deleted session, if there was one. */
export function* deleteBrowserSession(hash: string): Transaction<string | undefined> {
  const [row] = yield* sql<{ id: string }>(`delete from tokens where hash = $1 and kind = 'session' returning id`, [
    hash,
  ])
  return row?.id
}

export function* touchToken(id: string): Transaction<void> {
  yield* sql('update tokens set last_used_at = now_ms() where id = $1', [id])
}

export function* findValidTokenIds(ids: readonly string[]): Transaction<Set<string>> {
  const placeholders = ids.map((_, index) => `$${index + 1}`).join(', ')
  const rows = yield* sql<{ id: string }>(
    `select t.id from tokens t where t.id in (${placeholders}) and ${IS_VALID}`,
    ids,
  )
  return new Set(rows.map(({ id }) => id))
}

const tokenNotFound = (id: string): MoleculeError => new MoleculeError('not_found', `there is no token ${id}`)
