/** Time as an argument. Everything that waits or measures takes a Clock, so that tests move time by hand. */

export interface Clock {
  /** Wall time in milliseconds since the epoch. For showing; never for measuring. */
  nowMs(): number
  /** Milliseconds that only go forward, from an arbitrary start. For measuring. */
  monotonicMs(): number
  /** Calls back once after `delayMs`; the returned function cancels. The timer does not keep the process alive. */
  after(delayMs: number, callback: () => void): () => void
}

/** Node's timers fire at once above this; a longer wait is cut here and its owner looks again. */
export const TIMER_MS_MAX = 2 ** 31 - 1

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(delayMs, 0), TIMER_MS_MAX))
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** A limit is counted in steps of this. */
const AWAKE_STEP_MS = 10_000

/**
 * The clock of a machine that may be put to sleep: a longer wait is counted in steps, so that what it slept through,
 * however long, counts as one step at most. Whether a system's own timers count it differs from system to system.
 */
export function awakeClock(clock: Clock): Clock {
  return {
    nowMs: clock.nowMs,
    monotonicMs: clock.monotonicMs,
    after(delayMs, callback) {
      let cancel: () => void
      const wait = (leftMs: number) => {
        if (leftMs <= AWAKE_STEP_MS) cancel = clock.after(leftMs, callback)
        else cancel = clock.after(AWAKE_STEP_MS, () => wait(leftMs - AWAKE_STEP_MS))
      }
      wait(delayMs)
      return () => cancel()
    },
  }
}
