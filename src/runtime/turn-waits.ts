/**
 * The waits of one turn for its delegations. The inbox reports when a wait begins and ends. Meanwhile the stall timer is
 * paused, and so is the time limit of the backend: the time of the child is not the time of this agent.
 */
import type { Turn } from '../backends/backend.ts'
import type { StallTimer } from './stall-timer.ts'

export interface TurnWaits {
  readonly onWait: NonNullable<Turn['onWait']>
  /** A repeated call changes nothing. */
  setWaiting(waiting: boolean): void
}

export function createTurnWaits(stall: StallTimer): TurnWaits {
  const listeners: ((over: Promise<void>) => void)[] = []
  let wait: { readonly over: PromiseWithResolvers<void>; readonly resume: () => void } | undefined
  return {
    onWait(listener) {
      listeners.push(listener)
      if (wait !== undefined) listener(wait.over.promise)
    },
    setWaiting(waiting) {
      if (waiting === (wait !== undefined)) return
      if (wait === undefined) {
        wait = { over: Promise.withResolvers(), resume: stall.pause() }
        for (const listener of listeners) listener(wait.over.promise)
        return
      }
      wait.resume()
      wait.over.resolve()
      wait = undefined
    },
  }
}
