/**
 * The stall clock of a turn: an agent that gives no sign of life for too long is ended, because a stuck `running` must
 * free itself. It is another clock than the lease, whose running out means only that the worker is gone.
 */
import type { Clock } from '../clock.ts'
import { formatDuration } from '../duration.ts'
import { MoleculeError } from '../errors.ts'

export interface StallTimer {
  /** Aborted when the agent has been silent for too long; absent where it may be. */
  readonly signal: AbortSignal | undefined
  /** Why, once that has happened. */
  readonly error: MoleculeError | undefined
  reset(): void
  /** The turn waits for somebody else: its silence is not held against the agent until the returned call. */
  pause(): () => void
  end(): void
}

export function createStallTimer(clock: Clock, stallMs: number | undefined): StallTimer {
  if (stallMs === undefined) return NO_STALL_TIMER
  const stalled = new AbortController()
  let error: MoleculeError | undefined
  let cancel: (() => void) | undefined
  let waits = 0
  let ended = false
  const arm = () => {
    cancel?.()
    if (waits > 0 || ended) return
    cancel = clock.after(stallMs, () => {
      error = new MoleculeError('timeout', `the agent gave no sign of life for ${formatDuration(stallMs)}`, {
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
      waits += 1
      arm()
      return () => {
        waits -= 1
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
