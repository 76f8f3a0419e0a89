/** Time as an argument: code that waits or measures takes a Clock, so that tests move time by hand. */

export interface Clock {
  /** Wall time in milliseconds since the epoch. For display; it can jump, so never measure with it. */
  nowMs(): number
  /** Milliseconds from an arbitrary start that never go back. For measuring. */
  monotonicMs(): number
  /** Calls back once after `delayMs`; the returned function cancels. The timer does not keep the process alive. */
  after(delayMs: number, callback: () => void): () => void
}

/** Node fires a longer timer at once. A longer wait is cut to this, and its caller checks again when it fires. */
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

const AWAKE_STEP_MS = 10_000

/**
 * The clock of a machine that may be suspended, such as a laptop. A long wait runs in steps of 10 s, so that a
 * suspended hour counts as one step at most. Operating systems differ in whether their own timers count that hour.
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

/** A time limit that can be paused. */
export interface TimeLimit {
  /** The time until the promise settles does not count. */
  pauseDuring<T>(waiting: Promise<T>): Promise<T>
  stop(): void
}

/** Calls back once when the time is over; undefined = never. The limit pauses while at least one wait is open. */
export function startTimeLimit(clock: Clock, limitMs: number | undefined, onOver: () => void): TimeLimit {
  let leftMs = limitMs ?? Number.POSITIVE_INFINITY
  let sinceMs = clock.monotonicMs()
  let openWaits = 0
  let ended = false
  let cancelTimer: (() => void) | undefined
  const onTimer = () => {
    leftMs -= clock.monotonicMs() - sinceMs
    if (leftMs <= 0) onOver()
    else run()
  }
  const run = () => {
    sinceMs = clock.monotonicMs()
    // In steps, because one timer cannot be longer than TIMER_MS_MAX.
    if (limitMs !== undefined && !ended) cancelTimer = clock.after(Math.min(leftMs, TIMER_MS_MAX), onTimer)
  }
  const pause = () => {
    cancelTimer?.()
    leftMs -= clock.monotonicMs() - sinceMs
  }
  run()
  return {
    async pauseDuring(waiting) {
      if (openWaits === 0) pause()
      openWaits += 1
      try {
        return await waiting
      } finally {
        openWaits -= 1
        if (openWaits === 0) run()
      }
    },
    stop() {
      ended = true
      cancelTimer?.()
    },
  }
}
