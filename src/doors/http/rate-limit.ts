/**
 * How often one token may ask: a window of a minute that opens with its first request. In memory and bounded: whoever
 * is forgotten because too many others came gets a new window, which errs on the side of answering.
 */
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'

export const REQUESTS_A_MINUTE_MAX = 600
const WINDOW_MS = 60_000
const TOKENS_MAX = 10_000

export interface RateLimit {
  /** Throws `too_many_requests` with the time until the next window. */
  count(tokenId: string): void
}

export function createRateLimit(clock: Clock): RateLimit {
  const windows = new Map<string, { readonly untilMs: number; requests: number }>()
  return {
    count(tokenId) {
      const nowMs = clock.monotonicMs()
      const known = windows.get(tokenId)
      if (known === undefined || known.untilMs <= nowMs) {
        // Deleted first, so that the map's order is the order of the windows and the oldest goes first.
        windows.delete(tokenId)
        for (const oldest of windows.keys()) {
          if (windows.size < TOKENS_MAX) break
          windows.delete(oldest)
        }
        windows.set(tokenId, { untilMs: nowMs + WINDOW_MS, requests: 1 })
        return
      }
      known.requests += 1
      if (known.requests <= REQUESTS_A_MINUTE_MAX) return
      const message = `this token has made its ${REQUESTS_A_MINUTE_MAX} requests of this minute`
      const details = { retryAfterMs: known.untilMs - nowMs }
      throw new MoleculeError('too_many_requests', message, { retryable: true, details })
    },
  }
}
