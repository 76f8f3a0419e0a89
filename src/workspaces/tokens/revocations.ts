/**
 * Tells open streams and waiting calls that their token is no longer valid. A revocation by this process calls back at
 * once. Expiry, and revocations by other processes, are found by polling, and only while a callback is registered. A
 * poll that fails changes nothing; the next one follows.
 */
import type { Clock } from '../../clock.ts'
import { REVOCATION_MS_MAX } from '../tokens.ts'

/** Ids in one query, so that the query stays small. The next poll takes the following ids. */
const POLL_IDS_MAX = 500

export interface Revocations {
  watch(tokenId: string, callback: () => void): () => void
  /** Calls every callback of this token, once. */
  notifyWatchers(tokenId: string): void
}

export interface RevocationsOptions {
  readonly clock: Clock
  /** Returns those of the ids that are still valid. */
  readonly findValidIds: (ids: readonly string[]) => Promise<ReadonlySet<string>>
}

export function createRevocations({ clock, findValidIds }: RevocationsOptions): Revocations {
  const watchers = new Map<string, Set<() => void>>()
  let cancelTimer: (() => void) | undefined
  let firstIndex = 0
  const notifyWatchers = (tokenId: string) => {
    const callbacks = watchers.get(tokenId) ?? []
    watchers.delete(tokenId)
    for (const callback of callbacks) callback()
  }
  const poll = async () => {
    const all = [...watchers.keys()]
    if (firstIndex >= all.length) firstIndex = 0
    const ids = all.slice(firstIndex, firstIndex + POLL_IDS_MAX)
    firstIndex += POLL_IDS_MAX
    const valid = ids.length === 0 ? new Set() : await findValidIds(ids)
    for (const id of ids) if (!valid.has(id)) notifyWatchers(id)
  }
  const schedule = () => {
    if (cancelTimer !== undefined || watchers.size === 0) return
    cancelTimer = clock.after(REVOCATION_MS_MAX, () => {
      // A failed poll says nothing about the tokens: a store outage must not close every stream.
      const scheduleNext = () => {
        cancelTimer = undefined
        schedule()
      }
      poll().then(scheduleNext, scheduleNext)
    })
  }
  return {
    notifyWatchers,
    watch(tokenId, callback) {
      const callbacks = watchers.get(tokenId) ?? new Set()
      callbacks.add(callback)
      watchers.set(tokenId, callbacks)
      schedule()
      return () => {
        callbacks.delete(callback)
        if (callbacks.size > 0 || watchers.get(tokenId) !== callbacks) return
        watchers.delete(tokenId)
        if (watchers.size > 0) return
        cancelTimer?.()
        cancelTimer = undefined
      }
    },
  }
}
