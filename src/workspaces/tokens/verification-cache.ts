/**
 * A cache of verified secrets, by hash, so that a busy client costs one lookup in 5 s and not one per request.
 * Invariant: an entry lives at most `REVOCATION_MS_MAX`, never outlives its token's expiry, and a result that was read
 * before a revocation is not stored after it.
 */
import type { Clock } from '../../clock.ts'
import { type Identity, REVOCATION_MS_MAX } from '../tokens.ts'
import type { VerifiedToken } from './token-rows.ts'

/** At the limit the oldest entry is dropped. */
const ENTRIES_MAX = 1000

interface Entry {
  readonly identity: Identity
  readonly untilMs: number
}

export interface VerificationCache {
  get(hash: string): Identity | undefined
  /** `read` looks the token up. When a token is dropped meanwhile, the result is returned and not stored. */
  remember(hash: string, read: () => Promise<VerifiedToken | undefined>): Promise<Identity | undefined>
  /** Drops every secret of these identities. */
  drop(isRevoked: (identity: Identity) => boolean): void
}

export function createVerificationCache(clock: Clock): VerificationCache {
  const entries = new Map<string, Entry>()
  let drops = 0
  return {
    get(hash) {
      const entry = entries.get(hash)
      if (entry === undefined) return undefined
      if (entry.untilMs > clock.monotonicMs()) return entry.identity
      entries.delete(hash)
      return undefined
    },
    async remember(hash, read) {
      const dropsBefore = drops
      const startMs = clock.monotonicMs()
      const found = await read()
      if (found === undefined) return undefined
      const leftMs = Math.min(REVOCATION_MS_MAX, found.leftMs ?? REVOCATION_MS_MAX)
      if (drops === dropsBefore) {
        // A map keeps insertion order: the first key is the oldest.
        for (const oldest of entries.keys()) {
          if (entries.size < ENTRIES_MAX) break
          entries.delete(oldest)
        }
        entries.set(hash, { identity: found.identity, untilMs: startMs + leftMs })
      }
      return found.identity
    },
    drop(isRevoked) {
      drops += 1
      for (const [hash, { identity }] of entries) if (isRevoked(identity)) entries.delete(hash)
    },
  }
}
