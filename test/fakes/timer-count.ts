/** Counts the timers of a clock that wait, so that a test sees a timer that nothing cancels. */
import type { Clock } from '../../src/clock.ts'

export interface TimerCount<C extends Clock> {
  readonly clock: C
  /** The number of timers that have neither run nor been cancelled. */
  timers(): number
}

export function countTimers<C extends Clock>(counted: C): TimerCount<C> {
  const waiting = new Set<object>()
  const clock = {
    ...counted,
    after(delayMs: number, callback: () => void) {
      const timer = {}
      waiting.add(timer)
      const cancel = counted.after(delayMs, () => {
        waiting.delete(timer)
        callback()
      })
      return () => {
        waiting.delete(timer)
        cancel()
      }
    },
  }
  return { clock, timers: () => waiting.size }
}
