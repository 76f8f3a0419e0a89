/**
 * Who must hear that a token is no longer good: open streams and waiting calls, by token id. What this process revokes
 * is told at once; expiry, and what other processes revoke, is found by looking every few seconds, and only while
 * somebody watches. A look that fails changes nothing: the next one comes.
 */
import type { Clock } from '../../clock.ts'
import { REVOCATION_MS_MAX } from '../tokens.ts'

/** In one look; what is beyond comes with the next, so that a query stays small. */
const POLL_IDS_MAX = 500

export interface Revocations {
  watch(tokenId: string, callback: () => void): () => void
  /** Calls back everybody who watches this token, once. */
  notifyWatchers(tokenId: string): void
}

export interface RevocationsOptions {
  readonly clock: Clock
  /** Of these token ids, those that are still good. */
  readonly findValidIds: (ids: readonly string[]) => Promise<ReadonlySet<string>>
}

export function createRevocations({ clock, findValidIds }: RevocationsOptions): Revocations {
  const watchers = new Map<string, Set<() => void>>()
  let timer: (() => void) | undefined
  let from = 0
  const notifyWatchers = (tokenId: string) => {
    const callbacks = watchers.get(tokenId) ?? []
    watchers.delete(tokenId)
    for (const callback of callbacks) callback()
  }
  const look = async () => {
    const all = [...watchers.keys()]
    if (from >= all.length) from = 0
    const ids = all.slice(from, from + POLL_IDS_MAX)
    from += POLL_IDS_MAX
    const good = ids.length === 0 ? new Set() : await findValidIds(ids)
    for (const id of ids) if (!good.has(id)) notifyWatchers(id)
  }
  const arm = () => {
    if (timer !== undefined || watchers.size === 0) return
    timer = clock.after(REVOCATION_MS_MAX, () => {
      // A store that is away says nothing about tokens; whoever looks again will be told.
      const rearm = () => {
        timer = undefined
        arm()
      }
      look().then(rearm, rearm)
    })
  }
  return {
    notifyWatchers,
    watch(tokenId, callback) {
      const callbacks = watchers.get(tokenId) ?? new Set()
      callbacks.add(callback)
      watchers.set(tokenId, callbacks)
      arm()
      return () => {
        callbacks.delete(callback)
        if (callbacks.size > 0 || watchers.get(tokenId) !== callbacks) return
        watchers.delete(tokenId)
        if (watchers.size > 0) return
        timer?.()
        timer = undefined
      }
    },
  }
}
