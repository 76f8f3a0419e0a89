/**
 * Limits the messages of one place: a burst passes, a flood does not. Counted are the times at which the messages were
 * written: when they arrive late or wait for something, they are no fewer.
 */
import { ALBUM_MESSAGES_MAX } from '../store/arrivals.ts'

/** Messages of a place that are taken within a minute. */
export const PLACE_MESSAGES_MAX = 30
const WINDOW_MS = 60_000
/** Places that are counted; beyond it the count of the oldest begins anew. */
const PLACES_MAX = 10_000

/** The messages of one album count as one. */
interface CountedAlbum {
  readonly groupId: string
  left: number
}

export interface FloodLimit {
  /** `first`: the first message above the limit, to which the door answers with a sentence. `more`: a later one. */
  take(place: string, sentAtMs: number, groupId?: string): 'ok' | 'first' | 'more'
}

export function createFloodLimit(): FloodLimit {
  const places = new Map<string, { takenMs: number[]; saidAtMs: number; album?: CountedAlbum }>()
  return {
    take(place, sentAtMs, groupId) {
      const known = places.get(place) ?? { takenMs: [], saidAtMs: Number.NEGATIVE_INFINITY }
      places.set(place, known)
      if (places.size > PLACES_MAX) places.delete(places.keys().next().value ?? '')
      if (groupId !== undefined && known.album?.groupId === groupId && known.album.left > 0) {
        known.album.left -= 1
        return 'ok'
      }
      // A history has its messages in their order; those of before a window never count again.
      known.takenMs = known.takenMs.filter((atMs) => atMs > sentAtMs - WINDOW_MS)
      if (known.takenMs.length < PLACE_MESSAGES_MAX) {
        known.takenMs.push(sentAtMs)
        if (groupId !== undefined) known.album = { groupId, left: ALBUM_MESSAGES_MAX - 1 }
        return 'ok'
      }
      if (sentAtMs < known.saidAtMs + WINDOW_MS) return 'more'
      known.saidAtMs = sentAtMs
      return 'first'
    },
  }
}
