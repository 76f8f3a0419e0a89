/**
 * For an agent that tidies up when it starts and takes sessions in which nothing was said yet, those of its other
 * processes too, for rubbish: while one starts, no other opens a session. Invariant: nobody waits for ever, neither for
 * one that hangs at its start nor behind ever new ones.
 */
import type { Clock } from '../../../clock.ts'
import { abortable } from '../abortable.ts'

const START_MS_MAX = 10_000
const WAIT_MS_MAX = 20_000

export interface StartGate {
  /** One starts, until it has answered its greeting. */
  track(greeting: Promise<unknown>): void
  /** Resolves when none is starting. */
  waitUntilIdle(signal: AbortSignal): Promise<void>
}

export function createStartGate(clock: Clock): StartGate {
  const running = new Set<Promise<void>>()
  return {
    track(greeting) {
      const { promise, resolve } = Promise.withResolvers<void>()
      running.add(promise)
      const forget = clock.after(START_MS_MAX, resolve)
      greeting.then(() => resolve(), resolve)
      void promise.then(() => {
        forget()
        running.delete(promise)
      })
    },
    async waitUntilIdle(signal) {
      const untilMs = clock.monotonicMs() + WAIT_MS_MAX
      while (running.size > 0 && clock.monotonicMs() < untilMs) await abortable(Promise.race(running), signal)
    },
  }
}
