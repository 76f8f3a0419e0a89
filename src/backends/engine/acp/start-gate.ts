/**
 * For an agent that, when a process starts, deletes every session without a message, also those of its other processes:
 * while one process starts, no other process opens a session. Invariant: every wait ends, also behind a process that
 * hangs at its start and behind a series of new ones.
 */
import type { Clock } from '../../../clock.ts'
import { abortable } from '../../../wait.ts'

/** A process that starts for longer counts as started. */
const START_MS_MAX = 10_000
/** A wait ends after this, whatever starts then. */
const WAIT_MS_MAX = 20_000

export interface StartGate {
  /** A process starts; it has started when its greeting settles. */
  track(greeting: Promise<unknown>): void
  /** Resolves when no process is starting. */
  waitUntilIdle(signal: AbortSignal): Promise<void>
}

export function createStartGate(clock: Clock): StartGate {
  const starting = new Set<Promise<void>>()
  return {
    track(greeting) {
      const { promise, resolve } = Promise.withResolvers<void>()
      starting.add(promise)
      const cancelTimer = clock.after(START_MS_MAX, resolve)
      greeting.then(() => resolve(), resolve)
      void promise.then(() => {
        cancelTimer()
        starting.delete(promise)
      })
    },
    async waitUntilIdle(signal) {
      const untilMs = clock.monotonicMs() + WAIT_MS_MAX
      while (starting.size > 0 && clock.monotonicMs() < untilMs) await abortable(Promise.race(starting), signal)
    },
  }
}
