/**
 * Limits how often a key (a token, an address) may do something, or how many bytes it may send: a window of a minute
 * that opens with the first time.
 * In memory and bounded: when there are too many keys, the oldest is forgotten and gets a new window, which errs on the
 * side of answering.
 * Why not rate-limiter-flexible: its memory store starts a timer for each key and has no limit on the number of keys.
 */
import type { Clock } from '../../../clock.ts'
import { MoleculeError } from '../../../errors.ts'

export const REQUESTS_PER_MINUTE_MAX = 600
const WINDOW_MS = 60_000
/** Beyond this the key with the oldest window is forgotten. */
const KEYS_MAX = 10_000

export interface RateLimit {
  /** Counts one, or `amount`; throws `too_many_requests`, with the time until the next window, past the limit. */
  count(key: string, amount?: number): void
}

export interface RateLimitOptions {
  /** Times a minute, or bytes a minute. */
  readonly timesMax: number
  /** The error message past the limit. */
  readonly message: string
}

const REQUESTS: RateLimitOptions = {
  timesMax: REQUESTS_PER_MINUTE_MAX,
  message: `this token has used its ${REQUESTS_PER_MINUTE_MAX} requests per minute`,
}

/** 32 of the largest messages a minute. */
const BYTES_PER_MINUTE_MAX = 256 * 1024 * 1024

export const BODY_BYTES: RateLimitOptions = {
  timesMax: BYTES_PER_MINUTE_MAX,
  message: `this token has sent its ${BYTES_PER_MINUTE_MAX} bytes per minute`,
}

/** Of one address. A chat service calls again what is refused. */
export const INBOUND_WEBHOOKS: RateLimitOptions = {
  timesMax: REQUESTS_PER_MINUTE_MAX,
  message: `your address has called webhooks ${REQUESTS_PER_MINUTE_MAX} times within a minute`,
}

export function createRateLimit(clock: Clock, { timesMax, message }: RateLimitOptions = REQUESTS): RateLimit {
  const windows = new Map<string, { readonly untilMs: number; times: number }>()
  const tooMany = (untilMs: number) => {
    const details = { retryAfterMs: untilMs - clock.monotonicMs() }
    return new MoleculeError('too_many_requests', message, { retryable: true, details })
  }
  return {
    count(key, amount = 1) {
      const nowMs = clock.monotonicMs()
      const known = windows.get(key)
      if (known === undefined || known.untilMs <= nowMs) {
        // Deleted first, so that the order of the map is the order of the windows.
        windows.delete(key)
        for (const oldest of windows.keys()) {
          if (windows.size < KEYS_MAX) break
          windows.delete(oldest)
        }
        windows.set(key, { untilMs: nowMs + WINDOW_MS, times: amount })
        return
      }
      known.times += amount
      if (known.times > timesMax) throw tooMany(known.untilMs)
    },
  }
}
