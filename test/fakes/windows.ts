/** Counts of calls in sliding time windows, as a chat service keeps them for each chat and for each bot. */

export interface CallWindow {
  readonly limit: number
  readonly windowMs: number
}

export interface CallCounts {
  /** Counts one call of this key, unless the window is full. */
  take(key: string, window: CallWindow): { readonly isOver: boolean; readonly left: number; readonly resetMs: number }
}

export function createCallCounts(): CallCounts {
  const calls = new Map<string, number[]>()
  return {
    take(key, { limit, windowMs }) {
      const nowMs = Date.now()
      const times = (calls.get(key) ?? []).filter((time) => time > nowMs - windowMs)
      const resetMs = windowMs - (nowMs - (times[0] ?? nowMs))
      const isOver = times.length >= limit
      if (!isOver) times.push(nowMs)
      calls.set(key, times)
      return { isOver, left: limit - times.length, resetMs }
    },
  }
}
