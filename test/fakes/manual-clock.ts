/** A clock that stands still until a test moves it. */
import type { Clock } from '../../src/clock.ts'

export interface ManualClock extends Clock {
  /** Moves the time and runs the callbacks that are due, in order. */
  advance(ms: number): void
  /** Waits until pending promise callbacks have run. */
  settle(): Promise<void>
}

export function manualClock(startMs = 1_000_000): ManualClock {
  let nowMs = startMs
  const timers = new Set<{ atMs: number; callback: () => void }>()
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    after(delayMs, callback) {
      const timer = { atMs: nowMs + Math.max(0, delayMs), callback }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    advance(ms) {
      const untilMs = nowMs + ms
      for (;;) {
        const [due] = [...timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)
        if (due === undefined) break
        timers.delete(due)
        nowMs = Math.max(nowMs, due.atMs)
        due.callback()
      }
      nowMs = untilMs
    },
    settle: () => new Promise((resolve) => setImmediate(resolve)),
  }
}

const TURNS_MAX = 100

/**
 * The value of a promise that needs no time to pass: it fails after some turns of the event loop, so that code which waits
 * for ever fails the test at once.
 */
export async function soon<T>(promise: Promise<T>): Promise<T> {
  let turns = 0
  const late = new Promise<never>((_, reject) => {
    const turn = () => {
      turns += 1
      if (turns > TURNS_MAX) reject(new Error('it still waits'))
      else setImmediate(turn)
    }
    turn()
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    turns = TURNS_MAX
    late.catch(() => undefined)
  }
}
