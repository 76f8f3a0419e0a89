/**
 * Limits how often one address may send a wrong token. Each token is verified before the limit refuses anything.
 * Otherwise any program or web page that sends wrong tokens from the admin's machine would lock the admin out. Past the
 * limit a wrong token gets 429 instead of 401. The limit does not prevent guessing; 32 random bytes do.
 */
import type { Clock } from '../../../clock.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { createRateLimit } from './rate-limit.ts'

export const WRONG_TOKENS_PER_MINUTE_MAX = 60

export interface WrongTokenLimit {
  /**
   * The identity of the secret, from `verify`. Counts a wrong secret, and throws `too_many_requests` for it when its
   * address has sent too many.
   */
  verify(
    secret: string,
    from: string,
    verify: (secret: string) => Promise<Identity | undefined>,
  ): Promise<Identity | undefined>
}

export function createWrongTokenLimit(clock: Clock): WrongTokenLimit {
  const message = `your address sent more than ${WRONG_TOKENS_PER_MINUTE_MAX} wrong tokens within a minute`
  const limit = createRateLimit(clock, { timesMax: WRONG_TOKENS_PER_MINUTE_MAX, message })
  return {
    async verify(secret, from, verify) {
      const identity = await verify(secret)
      if (identity === undefined) limit.count(from)
      return identity
    },
  }
}
