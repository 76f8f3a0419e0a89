/**
 * Who is asking: tokens and what they stand for. A token is 32 random bytes, shown once, stored as its SHA-256 and
 * compared in constant time. An identity comes from a token and from nothing else.
 */
import type { Sender } from '../protocol/request.ts'

export const SECRET_BYTES = 32
/** People and secret scanners recognise a leaked token by this prefix, and the log hides it. */
export const SECRET_PREFIX = 'mol_'
/** A token that another process revoked is refused here after this time at the latest. */
export const REVOCATION_MS_MAX = 5000

/**
 * admin: everything. member: chat, replay, stop, answer. viewer: reads, without files, config, memory and tokens.
 * caller: a program that sends to listed workspaces. workspace: speaks for one workspace. conversation: a child process
 * of one turn, which speaks for its workspace in that conversation.
 */
export const TOKEN_ROLES = ['admin', 'member', 'viewer', 'caller', 'workspace', 'conversation'] as const

export type TokenRole = (typeof TOKEN_ROLES)[number]

export interface Identity {
  readonly tokenId: string
  readonly name: string
  readonly role: TokenRole
  /** What the inbox files its messages under: `people`, `token:<id>`, `ws:<id>`. */
  readonly principal: string
  readonly sender: Sender
  /** The workspace that a workspace or conversation token speaks for. */
  readonly workspaceId?: string
  /** The conversation that a conversation token belongs to. */
  readonly conversationId?: string
  /** The workspaces that a caller may send to. */
  readonly workspaces?: readonly string[]
}

/** What is asked for; which fields a role needs is checked by `create`. */
export interface NewToken {
  readonly name: string
  readonly role: TokenRole
  readonly workspaceId?: string
  readonly conversationId?: string
  readonly workspaces?: readonly string[]
  readonly expiresInMs?: number
}

/** A token as it may be shown: everything but its secret. */
export interface TokenInfo {
  readonly id: string
  readonly kind: 'token' | 'session'
  readonly name: string
  readonly role: TokenRole
  readonly workspaceId?: string
  readonly conversationId?: string
  readonly workspaces?: readonly string[]
  readonly createdAtMs: number
  readonly expiresAtMs?: number
  readonly lastUsedAtMs?: number
  /** Until when the secret before the last rotation is still good. */
  readonly oldUntilMs?: number
}

/** The secret is here and nowhere else: it cannot be asked for again. */
export interface IssuedToken {
  readonly id: string
  readonly secret: string
}

/**
 * Contract: `verify` answers undefined for anything that is not a valid token and never throws for one; a token revoked
 * by another process is refused within 5 s, by this one at once.
 * A login code is good for one exchange within its time; what it is exchanged for is a revocable session secret.
 */
export interface Tokens {
  verify(secret: string): Promise<Identity | undefined>
  create(input: NewToken): Promise<IssuedToken>
  list(): Promise<TokenInfo[]>
  /** A new secret at once; the one before stays good for `overlapMs`. */
  rotate(id: string, overlapMs: number): Promise<IssuedToken>
  /** Throws `not_found` for an id that nobody has. */
  revoke(id: string): Promise<void>
  /**
   * Calls back once when the token is revoked or has expired, for whoever answers it for long: streams and waiting
   * calls. The returned function stops watching.
   */
  onRevoked(tokenId: string, callback: () => void): () => void
  /** A new single-use code for a browser; lives 10 minutes. */
  issueLoginCode(): string
  /** The session secret for the cookie, or undefined when the code is unknown, used or old. */
  exchangeLoginCode(code: string): Promise<{ secret: string; maxAgeSeconds: number } | undefined>
  revokeBrowserSession(secret: string): Promise<void>
}
