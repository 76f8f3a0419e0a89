/** Limits the messages of one place: a burst passes, a flood does not. */
import type { Clock } from '../../../clock.ts'

/** Messages of a place that are taken within a minute. */
export const PLACE_MESSAGES_MAX = 30
const WINDOW_MS = 60_000
/** Places that are counted; beyond it the count of the oldest begins anew. */
const PLACES_MAX = 10_000

export interface FloodLimit {
  /** `first`: the first message above the limit, to which the door answers with a sentence. `more`: a later one. */
  take(place: string): 'ok' | 'first' | 'more'
}

export function createFloodLimit(clock: Pick<Clock, 'monotonicMs'>): FloodLimit {
  const windows = new Map<string, { sinceMs: number; count: number }>()
  return {
    take(place) {
      const nowMs = clock.monotonicMs()
      const known = windows.get(place)
      const window = known !== undefined && nowMs - known.sinceMs < WINDOW_MS ? known : { sinceMs: nowMs, count: 0 }
      window.count += 1
      windows.set(place, window)
      if (windows.size > PLACES_MAX) windows.delete(windows.keys().next().value ?? '')
      if (window.count <= PLACE_MESSAGES_MAX) return 'ok'
      return window.count === PLACE_MESSAGES_MAX + 1 ? 'first' : 'more'
    },
  }
}
