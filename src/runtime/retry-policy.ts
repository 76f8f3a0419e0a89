/**
 * The retry table: what a failed turn leads to. A retry is always a durable schedule in the inbox; nothing sleeps
 * inside a turn. Whether an error may pass by itself is said by the backend that understands it (`retryable`).
 */
import type { MoleculeError } from '../errors.ts'
import type { Failure, Lease, Outcome } from '../inbox/inbox.ts'
import { failureSentence } from './failure-sentence.ts'

/** The waits before the second, third, fourth attempt; later ones wait as long as the last. */
const RETRY_AFTER_MS = [5_000, 10_000, 20_000] as const
/** A provider that asks for more patience than this gets a dead letter, which can be replayed. */
const RESET_AFTER_MS_MAX = 6 * 3600_000

export interface FailedTurn {
  readonly lease: Lease
  readonly error: MoleculeError
  readonly maxAttempts: number
  /** The turn used a tool: what it did outside may not be done twice without being asked. */
  readonly usedTool: boolean
}

export function outcomeOfFailure(failing: FailedTurn): Outcome {
  const { lease, error, maxAttempts } = failing
  if (error.code === 'session_lost' && !lease.sessionRetried) {
    return { type: 'retry', failure: toFailure(error), afterMs: 0, reason: 'session_lost', interrupted: false }
  }
  const attempt = lease.failures + 1
  const afterMs = retryAfterMs(error, attempt)
  if (!mayRetry(failing) || attempt >= maxAttempts || afterMs > RESET_AFTER_MS_MAX) {
    return { type: 'dead', failure: toFailure(error) }
  }
  const seconds = Math.ceil(afterMs / 1000)
  const schedule = `attempt ${attempt + 1} of ${maxAttempts} in ${seconds} s`
  const failure = toFailure(error, (words) => `${schedule}: ${words}`)
  const interrupted = INTERRUPTING_CODES.has(error.code)
  return { type: 'retry', failure, afterMs, reason: 'failure', interrupted }
}

/** Ends that may have left work half done. */
const INTERRUPTING_CODES: ReadonlySet<string> = new Set(['exit', 'timeout', 'no_end'])

function mayRetry({ error, usedTool }: FailedTurn): boolean {
  return error.retryable && !(error.code === 'timeout' && usedTool)
}

function retryAfterMs(error: MoleculeError, attempt: number): number {
  const resetAfterMs = error.details['resetAfterMs']
  if (typeof resetAfterMs === 'number' && resetAfterMs >= 0) return Math.ceil(resetAfterMs)
  return RETRY_AFTER_MS[Math.min(attempt, RETRY_AFTER_MS.length) - 1] ?? 0
}

/** The error's own words for the owner, a sentence of ours for everybody; `say` puts either into a wider one. */
export function toFailure(error: MoleculeError, say: (words: string) => string = (words) => words): Failure {
  const failure = { code: error.code, message: say(error.message), details: error.details }
  const words = failureSentence(error)
  return words === undefined ? failure : { ...failure, sentence: say(words.sentence), category: words.category }
}
