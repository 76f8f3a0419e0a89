/**
 * Work of the inbox at a later time, for which no caller waits. A failure is logged and ends nothing: the next sweep does
 * the same work again.
 */
import type { Clock } from '../../clock.ts'
import { toMoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'

type Work = () => Promise<unknown>

export interface Timers {
  later(delayMs: number, work: Work): void
  every(delayMs: number, work: Work): void
  /** At once, after what runs now. Many calls at one moment are one. */
  soon(work: Work): void
  /** For how long no work has failed: the time of unbroken connection to the store. */
  steadyMs(): number
  /** Aborts when the timers stop. */
  readonly signal: AbortSignal
  stop(): void
}

export function createTimers({ clock, log }: { readonly clock: Clock; readonly log: Log }): Timers {
  const stopped = new AbortController()
  const timers = new Set<() => void>()
  let steadySinceMs = clock.monotonicMs()
  let isDueSoon = false
  const later = (delayMs: number, work: Work) => {
    if (stopped.signal.aborted) return
    const cancel = clock.after(delayMs, () => {
      timers.delete(cancel)
      if (stopped.signal.aborted) return
      work().catch((error) => {
        // An outage must not expire every lease at once: takeovers need one unbroken lease time of connection.
        steadySinceMs = clock.monotonicMs()
        log.warn({ err: toMoleculeError(error) }, 'a sweep of the inbox failed; it will be tried again')
      })
    })
    timers.add(cancel)
  }
  const every = (delayMs: number, work: Work) =>
    later(delayMs, () => {
      every(delayMs, work)
      return work()
    })
  return {
    later,
    every,
    soon(work) {
      if (isDueSoon) return
      isDueSoon = true
      later(0, () => {
        isDueSoon = false
        return work()
      })
    },
    steadyMs: () => clock.monotonicMs() - steadySinceMs,
    signal: stopped.signal,
    stop() {
      stopped.abort()
      for (const cancel of timers) cancel()
    },
  }
}
