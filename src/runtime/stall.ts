/**
 * The stall clock of a turn: an agent that gives no sign of life for too long is ended, because a stuck `running` must
 * free itself. It is another clock than the lease, whose running out means only that the worker is gone.
 */
import type { Clock } from '../clock.ts'
import { formatDuration } from '../duration.ts'
import { MoleculeError } from '../errors.ts'

export interface Stall {
  /** Aborted when the agent has been silent for too long; absent where it may be. */
  readonly signal: AbortSignal | undefined
  /** Why, once that has happened. */
  readonly error: MoleculeError | undefined
  signOfLife(): void
  end(): void
}

export function createStall(clock: Clock, stallMs: number | undefined): Stall {
  if (stallMs === undefined) return NEVER
  const stalled = new AbortController()
  let error: MoleculeError | undefined
  let cancel: (() => void) | undefined
  const arm = () => {
    cancel?.()
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
    signOfLife: arm,
    end: () => cancel?.(),
  }
}

const NEVER: Stall = { signal: undefined, error: undefined, signOfLife: () => undefined, end: () => undefined }
