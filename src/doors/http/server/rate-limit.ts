/**
 * How often one token may ask, or one address be wrong: a window of a minute that opens with the first time. In memory
 * and bounded: whoever is forgotten because too many others came gets a new window, which errs on the side of answering.
 */
import type { Clock } from '../../../clock.ts'
import { MoleculeError } from '../../../errors.ts'

export const REQUESTS_PER_MINUTE_MAX = 600
const WINDOW_MS = 60_000
const KEYS_MAX = 10_000

export interface RateLimit {
  /** One more; throws `too_many_requests` with the time until the next window. */
  count(name: string): void
  /** Throws the same where the next one would be too many, and counts nothing. */
  check(name: string): void
}

export interface RateLimitOptions {
  readonly timesMax: number
  /** What is said to whoever passed it. */
  readonly message: string
}

const REQUESTS: RateLimitOptions = {
  timesMax: REQUESTS_PER_MINUTE_MAX,
  message: `this token has made its ${REQUESTS_PER_MINUTE_MAX} requests of this minute`,
}

export function createRateLimit(clock: Clock, { timesMax, message }: RateLimitOptions = REQUESTS): RateLimit {
  const windows = new Map<string, { readonly untilMs: number; times: number }>()
  const tooMany = (untilMs: number) => {
    const details = { retryAfterMs: untilMs - clock.monotonicMs() }
    return new MoleculeError('too_many_requests', message, { retryable: true, details })
  }
  return {
    count(name) {
      const nowMs = clock.monotonicMs()
      const known = windows.get(name)
      if (known === undefined || known.untilMs <= nowMs) {
        // Deleted first, so that the map's order is the order of the windows and the oldest goes first.
        windows.delete(name)
        for (const oldest of windows.keys()) {
          if (windows.size < KEYS_MAX) break
          windows.delete(oldest)
        }
        windows.set(name, { untilMs: nowMs + WINDOW_MS, times: 1 })
        return
      }
      known.times += 1
      if (known.times > timesMax) throw tooMany(known.untilMs)
    },
    check(name) {
      const known = windows.get(name)
      if (known === undefined || known.untilMs <= clock.monotonicMs()) return
      if (known.times >= timesMax) throw tooMany(known.untilMs)
    },
  }
}
