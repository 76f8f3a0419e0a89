/**
 * The stall timer of a turn: ends an agent that is silent for too long, so that a stuck turn frees its conversation. It
 * is independent of the lease time, which only tells that the worker is gone.
 */
import type { Clock } from '../clock.ts'
import { formatDuration } from '../duration.ts'
import { MoleculeError } from '../errors.ts'

export interface StallTimer {
  /** Aborts when the agent has been silent for too long; undefined = no limit. */
  readonly signal: AbortSignal | undefined
  /** The reason after the abort. */
  readonly error: MoleculeError | undefined
  reset(): void
  /** Pauses the timer while the turn waits for an answer; the returned function resumes it. */
  pause(): () => void
  end(): void
}

export function createStallTimer(clock: Clock, stallMs: number | undefined): StallTimer {
  if (stallMs === undefined) return NO_STALL_TIMER
  const stalled = new AbortController()
  let error: MoleculeError | undefined
  let cancel: (() => void) | undefined
  let pauses = 0
  let ended = false
  const arm = () => {
    cancel?.()
    if (pauses > 0 || ended) return
    cancel = clock.after(stallMs, () => {
      error = new MoleculeError('timeout', `the agent was silent for ${formatDuration(stallMs)}`, {
        retryable: true,
      })
      stalled.abort()
    })
  }
  arm()
  return {
    signal: stalled.signal,
    get error() {
      return error
    },
    reset: arm,
    pause() {
      pauses += 1
      arm()
      return () => {
        pauses -= 1
        arm()
      }
    },
    end() {
      ended = true
      cancel?.()
    },
  }
}

const NO_STALL_TIMER: StallTimer = {
  signal: undefined,
  error: undefined,
  reset: () => undefined,
  pause: () => () => undefined,
  end: () => undefined,
}
