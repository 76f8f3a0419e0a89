/**
 * Wakes the doors that push when a transaction has written a delivery, in this process and in the others on this store. A hint
 * may be lost between processes, so a door also looks by itself after a while.
 */
import type { Store } from '../../store/store.ts'

export interface DeliveryHints {
  /** Calls back when there may be a new delivery for any door, until the returned function is called. */
  watch(callback: () => void): () => void
  /** A delivery may have been written. Call after the commit. */
  written(): void
  /** Stops listening to other processes. */
  stop(): void
}

/** In place of a workspace in a hint to other processes. */
const DELIVERIES = 'deliveries'

export function createDeliveryHints(store: Pick<Store, 'notify' | 'listen'>): DeliveryHints {
  const callbacks = new Set<() => void>()
  const wake = () => {
    for (const callback of callbacks) callback()
  }
  const stop = store.listen((changed) => {
    if (changed === '*' || changed.includes(DELIVERIES)) wake()
  })
  return {
    watch(callback) {
      callbacks.add(callback)
      return () => void callbacks.delete(callback)
    },
    written() {
      wake()
      store.notify([DELIVERIES])
    },
    stop,
  }
}
