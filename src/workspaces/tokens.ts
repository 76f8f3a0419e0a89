/**
 * Tokens and the identities they stand for. A token is 32 random bytes, shown once, stored as its SHA-256 and compared
 * in constant time. Invariant: an identity comes from a token and from nothing else.
 */
import type { Sender } from '../protocol/request.ts'

export const SECRET_BYTES = 32
/** People and secret scanners recognise a leaked token by this prefix, and the log hides it. */
export const SECRET_PREFIX = 'mol_'
/** A token that another process revoked is refused here after this time at the latest. */
export const REVOCATION_MS_MAX = 5000

/**
 * admin: everything. member: chat, replay, stop, answer. viewer: reads, without files, config, memory and tokens.
 * caller: a program that sends to the listed workspaces. workspace: acts as one workspace. conversation: a child
 * process of a turn, which acts as that conversation of its workspace.
 */
export const TOKEN_ROLES = ['admin', 'member', 'viewer', 'caller', 'workspace', 'conversation'] as const

export type TokenRole = (typeof TOKEN_ROLES)[number]

export interface Identity {
  readonly tokenId: string
  /** Names the secret that was used, without revealing it: after a rotation a token has an old and a new secret. */
  readonly secretId: string
  readonly name: string
  readonly role: TokenRole
  /** The principal of its conversations: `people`, `token:<id>`, `ws:<id>`, `ws:<id>/<conversation>`. */
  readonly principal: string
  readonly sender: Sender
  /** The workspace that a workspace or conversation token acts as. */
  readonly workspaceId?: string
  /** The conversation that a conversation token belongs to. */
  readonly conversationId?: string
  /** The workspaces that a caller may send to. */
  readonly workspaces?: readonly string[]
}

/** The right by which work goes on after its call: webhooks end with the secret, schedules with the token. */
export interface TokenGrant {
  readonly tokenId: string
  readonly secretId?: string
}

/** The admin token of the data folder, which has no row and ends only with the platform. */
export const ADMIN_TOKEN_ID = 'admin'

/** Conversation tokens have no row. Their ids begin with this. */
export const CONVERSATION_TOKEN_ID_PREFIX = 'conversation:'

/** A conversation token that was issued for a turn counts as its conversation: the conversation outlives it. */
export function grantOf({ tokenId, secretId, principal }: Identity): TokenGrant {
  if (tokenId.startsWith(CONVERSATION_TOKEN_ID_PREFIX)) return { tokenId: principal }
  return tokenId === ADMIN_TOKEN_ID ? { tokenId } : { tokenId, secretId }
}

/** `create` checks which fields the role needs. */
export interface NewToken {
  readonly name: string
  readonly role: TokenRole
  readonly workspaceId?: string
  readonly conversationId?: string
  readonly workspaces?: readonly string[]
  readonly expiresInMs?: number
}

/** A secret that was valid once. `replaced`: a rotation made a new one, and the overlap is over. */
export interface RefusedSecret {
  readonly reason: 'expired' | 'replaced'
  readonly sinceMs: number
}

/** Programs that create tokens must revoke them. At the limit, `create` refuses a new one. */
export const TOKENS_MAX = 10_000

/** A login code works once within this time. */
export const LOGIN_CODE_MS = 10 * 60_000

export const PERSON_ROLES = ['admin', 'member', 'viewer'] as const satisfies readonly TokenRole[]

/** The person who logs in with a browser. */
export interface BrowserLogin {
  readonly role: (typeof PERSON_ROLES)[number]
  readonly name: string
}

/** The only place where the secret appears: it cannot be read again. */
export interface IssuedToken {
  readonly id: string
  readonly secret: string
}

/**
 * Contract: `verify` returns undefined for any text that is not a valid token, and does not throw for it. A token that
 * this process revokes is refused at once, one that another process revokes within `REVOCATION_MS_MAX`. A login code
 * works once, within its lifetime; it is exchanged for the secret of a browser log-in, which can be revoked.
 */
export interface Tokens {
  verify(secret: string): Promise<Identity | undefined>
  /** Why a secret that was valid once is refused now; undefined for any other text. For the holder of the secret. */
  whyRefused(secret: string): Promise<RefusedSecret | undefined>
  create(input: NewToken): Promise<IssuedToken>
  /** Makes a new secret. The old secret, its streams and its waiting calls end after `overlapMs`. */
  rotate(id: string, overlapMs: number): Promise<IssuedToken>
  /** Throws `not_found` for an unknown id. With a workspace's own token, its conversation tokens are revoked too. */
  revoke(id: string): Promise<void>
  /** Revokes the tokens of a workspace that is gone: its own, and those of its conversations. */
  revokeAll(workspaceId: string): Promise<void>
  /** Revokes all conversation tokens that processes of the workspace's turns have got so far. */
  revokeConversations(workspaceId: string): Promise<void>
  /**
   * Calls back once when the secret of this caller becomes invalid (revoked, expired, replaced by a rotation), so that
   * open streams and waiting calls end. The returned function stops watching.
   */
  onRevoked(identity: Identity, callback: () => void): () => void
  /** A new single-use code for a browser, valid for `LOGIN_CODE_MS`. Default: an admin called "browser". */
  issueLoginCode(person?: BrowserLogin): string
  /** The secret for the cookie; undefined when the code is unknown, used or expired. */
  exchangeLoginCode(code: string): Promise<{ secret: string; maxAgeSeconds: number } | undefined>
  revokeBrowserLogin(secret: string): Promise<void>
}
