/**
 * Tells open streams and waiting calls that their token is no longer valid. A revocation by this process calls back at
 * once. Expiry, the end of a rotation's overlap, and revocations by other processes are found by polling, and only
 * while a callback is registered. A poll that fails changes nothing; the next one follows.
 * A callback belongs to the secret that its caller used: after a rotation only the old secret becomes invalid.
 */
import type { Clock } from '../../clock.ts'
import { type Identity, REVOCATION_MS_MAX } from '../tokens.ts'

/** Secrets in one query, so that the query stays small. The next poll takes the following ones. */
const POLL_SECRETS_MAX = 500

export interface Revocations {
  watch(identity: Identity, callback: () => void): () => void
  /** Calls every callback of these identities, once. */
  notifyWatchers(isRevoked: (identity: Identity) => boolean): void
  /** Checks these identities at once, and calls the callbacks of those that are no longer valid. */
  recheck(isAffected: (identity: Identity) => boolean): Promise<void>
}

export interface RevocationsOptions {
  readonly clock: Clock
  /** Returns the `secretId` of those identities that are still valid. */
  readonly findValid: (identities: readonly Identity[]) => Promise<ReadonlySet<string>>
}

interface WatchedSecret {
  readonly identity: Identity
  readonly callbacks: Set<() => void>
}

export function createRevocations({ clock, findValid }: RevocationsOptions): Revocations {
  const watched = new Map<string, WatchedSecret>()
  let cancelTimer: (() => void) | undefined
  let firstIndex = 0
  const notify = (secret: WatchedSecret) => {
    if (watched.get(secret.identity.secretId) === secret) watched.delete(secret.identity.secretId)
    for (const callback of secret.callbacks) callback()
  }
  const check = async (secrets: readonly WatchedSecret[]) => {
    if (secrets.length === 0) return
    const valid = await findValid(secrets.map(({ identity }) => identity))
    for (const secret of secrets) if (!valid.has(secret.identity.secretId)) notify(secret)
  }
  const poll = async () => {
    const all = [...watched.values()]
    if (firstIndex >= all.length) firstIndex = 0
    const page = all.slice(firstIndex, firstIndex + POLL_SECRETS_MAX)
    firstIndex += POLL_SECRETS_MAX
    await check(page)
  }
  const schedule = () => {
    if (cancelTimer !== undefined || watched.size === 0) return
    cancelTimer = clock.after(REVOCATION_MS_MAX, () => {
      // A failed poll says nothing about the tokens: a store outage must not close every stream.
      const scheduleNext = () => {
        cancelTimer = undefined
        schedule()
      }
      poll().then(scheduleNext, scheduleNext)
    })
  }
  const cancel = () => {
    cancelTimer?.()
    cancelTimer = undefined
  }
  return {
    notifyWatchers(isRevoked) {
      for (const secret of [...watched.values()]) if (isRevoked(secret.identity)) notify(secret)
    },
    recheck: (isAffected) => check([...watched.values()].filter(({ identity }) => isAffected(identity))),
    watch(identity, callback) {
      const key = identity.secretId
      const secret = watched.get(key) ?? { identity, callbacks: new Set() }
      secret.callbacks.add(callback)
      watched.set(key, secret)
      schedule()
      return () => {
        secret.callbacks.delete(callback)
        if (secret.callbacks.size > 0 || watched.get(key) !== secret) return
        watched.delete(key)
        if (watched.size === 0) cancel()
      }
    },
  }
}
