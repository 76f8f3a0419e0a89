/**
 * Limits how often one address may send an unknown token. Past the limit no token from it is looked up for the rest of
 * the minute, so guessing is slow and costs the store nothing. A secret that was valid before is still accepted, so one
 * attacker behind a proxy, or one program with an old token, does not lock out all callers at its address.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../clock.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { createRateLimit } from './rate-limit.ts'

export const WRONG_TOKENS_PER_MINUTE_MAX = 60
/** Beyond this the oldest is forgotten, and its owner is subject to the limit of its address. */
const GOOD_SECRETS_MAX = 10_000

export interface WrongTokenLimit {
  /** The identity of the secret, from `verify`; throws `too_many_requests` after too many wrong tokens of the address. */
  verify(
    secret: string,
    from: string,
    verify: (secret: string) => Promise<Identity | undefined>,
  ): Promise<Identity | undefined>
}

export function createWrongTokenLimit(clock: Clock): WrongTokenLimit {
  const message = `your address sent ${WRONG_TOKENS_PER_MINUTE_MAX} wrong tokens within a minute`
  const limit = createRateLimit(clock, { timesMax: WRONG_TOKENS_PER_MINUTE_MAX, message })
  /** Hashes of secrets that were valid at their last check, the oldest first. */
  const good = new Set<string>()
  /** An identity stays the same object while it is cached, so the secret of a busy client is rarely hashed. */
  const noted = new WeakSet<Identity>()
  const note = (secret: string) => {
    const hashed = hash(secret)
    good.delete(hashed)
    for (const oldest of good) {
      if (good.size < GOOD_SECRETS_MAX) break
      good.delete(oldest)
    }
    good.add(hashed)
  }
  return {
    async verify(secret, from, verify) {
      try {
        limit.check(from)
      } catch (tooMany) {
        if (!good.has(hash(secret))) throw tooMany
      }
      const identity = await verify(secret)
      if (identity === undefined) {
        good.delete(hash(secret))
        limit.count(from)
      } else if (!noted.has(identity)) {
        noted.add(identity)
        note(secret)
      }
      return identity
    },
  }
}

const hash = (secret: string): string => createHash('sha256').update(secret).digest('base64')
