/**
 * Who is asking: tokens and what they stand for. A token is 32 random bytes, shown once, stored as its SHA-256 and
 * compared in constant time. An identity comes from a token and from nothing else.
 */
import type { Sender } from '../protocol/request.ts'

export type TokenRole = 'admin' | 'member' | 'viewer' | 'caller' | 'workspace' | 'conversation'

export interface Identity {
  readonly tokenId: string
  readonly name: string
  readonly role: TokenRole
  /** What the inbox files its messages under. */
  readonly principal: string
  readonly sender: Sender
}

/**
 * Contract: `verify` answers undefined for anything that is not a valid token and never throws for one.
 * A login code is good for one exchange within its time; what it is exchanged for is a revocable session secret.
 */
export interface Tokens {
  verify(secret: string): Promise<Identity | undefined>
  /** A new single-use code for a browser; lives 10 minutes. */
  issueLoginCode(): string
  /** The session secret for the cookie, or undefined when the code is unknown, used or old. */
  exchangeLoginCode(code: string): Promise<{ secret: string; maxAgeSeconds: number } | undefined>
  revokeSession(secret: string): Promise<void>
}
