/**
 * Counts what a bridge stores for each turn. Prevents unbounded growth: the body of each call has a limit, but a turn may
 * make any number of calls, and one turn stored 150 MB. Counted in this process only, so that the count costs no query.
 */
import { type LeaseKey, leaseId } from '../worker.ts'

/** Events, questions and the outcome of one turn. A turn that stores more fails with `too_large`. */
export const TURN_BYTES_MAX = 64 * 1024 * 1024
/** Beyond this the turn that was counted first is counted anew. A turn that ends without a settle leaves its count. */
const TURNS_MAX = 10_000

export interface TurnBytes {
  /** Adds the size of a value; false past the limit of the turn. */
  add(key: LeaseKey, value: unknown): boolean
  forget(key: LeaseKey): void
}

export function createTurnBytes(bytesMax = TURN_BYTES_MAX): TurnBytes {
  const turns = new Map<string, number>()
  return {
    add(key, value) {
      const id = leaseId(key)
      const bytes = (turns.get(id) ?? 0) + sizeOf(value)
      for (const oldest of turns.keys()) {
        if (turns.size < TURNS_MAX || turns.has(id)) break
        turns.delete(oldest)
      }
      turns.set(id, bytes)
      return bytes <= bytesMax
    },
    forget: (key) => void turns.delete(leaseId(key)),
  }
}

/** The overhead of a value in JSON: quotes, comma, digits. */
const VALUE_BYTES = 8

/** About the size as JSON. The texts are not read: their length is known. JSON of a request has a bounded depth. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length + VALUE_BYTES
  if (typeof value !== 'object' || value === null) return VALUE_BYTES
  let bytes = VALUE_BYTES
  for (const [key, item] of Object.entries(value)) bytes += key.length + sizeOf(item)
  return bytes
}
