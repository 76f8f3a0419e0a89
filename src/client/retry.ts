/**
 * Retries a call that is safe to repeat, after the time that the platform asks for, or with exponential backoff. An
 * error that is not retryable, and the last failure, go to the caller unchanged.
 */
import { backoffMs } from '../backoff.ts'
import type { Clock } from '../clock.ts'
import { MoleculeError } from '../errors.ts'
import { sleep } from '../wait.ts'

const TRIES_MAX = 6
const FIRST_DELAY_MS = 1000
const DELAY_MS_MAX = 60_000

export interface RetryOptions {
  readonly clock: Clock
  readonly triesMax?: number
  /** Default: every error that is marked retryable. */
  readonly isRetryable?: (error: MoleculeError) => boolean
  /** On abort there is no further try; the last failure goes to the caller. */
  readonly signal?: AbortSignal
  /** Called before each wait. */
  readonly onRetry?: (error: MoleculeError, delayMs: number) => void
}

export async function withRetries<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, triesMax = TRIES_MAX, onRetry, signal, isRetryable = ({ retryable }) => retryable } = options
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (thrown) {
      if (!(thrown instanceof MoleculeError) || !isRetryable(thrown) || tries >= triesMax) throw thrown
      const delayMs = delayBefore(thrown, tries)
      onRetry?.(thrown, delayMs)
      await sleep(clock, delayMs, signal)
      if (signal?.aborted) throw thrown
    }
  }
}

function delayBefore(error: MoleculeError, tries: number): number {
  const asked = error.details['retryAfterMs']
  return typeof asked === 'number' ? Math.min(asked, DELAY_MS_MAX) : backoffMs(tries - 1, FIRST_DELAY_MS, DELAY_MS_MAX)
}
