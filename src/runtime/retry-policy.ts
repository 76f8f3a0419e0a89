/**
 * The retry policy: the outcome of a failed turn. A retry is a durable schedule in the inbox; no code sleeps inside a
 * turn. The backend decides whether an error is `retryable`.
 */
import type { MoleculeError } from '../errors.ts'
import type { Failure, Lease, Outcome } from '../inbox/inbox.ts'
import { failureSentence } from './failure-sentence.ts'

/** The delays before the second, third and fourth attempt. Later attempts use the last delay. */
const RETRY_AFTER_MS = [5_000, 10_000, 20_000] as const
/** If a provider asks for a longer wait, the message becomes a dead letter, which the owner can replay. */
const RESET_AFTER_MS_MAX = 6 * 3600_000

export interface FailedTurn {
  readonly lease: Lease
  readonly error: MoleculeError
  readonly maxAttempts: number
  /** The turn used a tool, so a timed-out turn is not repeated: its effects could happen twice. */
  readonly usedTool: boolean
  /** The runtime shuts down. A service manager that stops it sends the same signal to the agents. */
  readonly shuttingDown?: boolean
}

export function outcomeOfFailure(failed: FailedTurn): Outcome {
  const { lease, error, maxAttempts } = failed
  if (error.code === 'session_lost' && !lease.sessionRetried) {
    return { type: 'retry', failure: toFailure(error), afterMs: 0, reason: 'session_lost', interrupted: false }
  }
  const exhausted = exhaustedOutcome(error, failed.usedTool)
  if (exhausted !== undefined) return exhausted
  if (failed.shuttingDown === true && STOPPED_CODES.has(error.code) && error.retryable) {
    return { type: 'released', interrupted: true }
  }
  const attempt = lease.failures + 1
  const afterMs = retryAfterMs(error, attempt)
  if (!mayRetry(failed) || attempt >= maxAttempts || afterMs > RESET_AFTER_MS_MAX) {
    return { type: 'dead', failure: toFailure(error) }
  }
  const seconds = Math.ceil(afterMs / 1000)
  const schedule = `attempt ${attempt + 1} of ${maxAttempts} in ${seconds} s`
  const failure = toFailure(error, `${schedule}: `)
  const interrupted = INTERRUPTING_CODES.has(error.code)
  return { type: 'retry', failure, afterMs, reason: 'failure', interrupted }
}

/** How the turn of an agent ends that was stopped together with the platform. */
const STOPPED_CODES: ReadonlySet<string> = new Set(['exit', 'no_end', 'spawn_failed'])

/** How long a message waits when the machine cannot start a turn. */
const EXHAUSTED_AFTER_MS = 10_000
/** The system's codes for: no more file handles in this process, in the whole system; no more processes or memory. */
const HANDLE_CODES: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE'])
const SPAWN_CODES: ReadonlySet<string> = new Set([...HANDLE_CODES, 'EAGAIN', 'ENOMEM'])

/**
 * Prevents dead letters of a busy machine: without file handles every turn fails within a minute, four times. The message
 * waits instead and no attempt is counted; it expires like any message that was not started in time.
 */
export function exhaustedOutcome(error: MoleculeError, usedTool = false): Outcome | undefined {
  const codes = error.code === 'spawn_failed' ? SPAWN_CODES : HANDLE_CODES
  const code = systemCodes(error).find((found) => codes.has(found))
  if (code === undefined) return undefined
  const text = `waiting: the machine has no free file handles or processes (${code})`
  const parked = { afterMs: EXHAUSTED_AFTER_MS, said: { parts: [{ text }] } }
  return { type: 'released', interrupted: usedTool, parked }
}

/** Of the error and its causes. */
function systemCodes(error: unknown): string[] {
  const codes: string[] = []
  for (let cause = error; cause instanceof Error && codes.length < CAUSES_MAX; cause = cause.cause) {
    codes.push(String((cause as NodeJS.ErrnoException).code))
  }
  return codes
}

/** An error that causes itself would be an endless loop. */
const CAUSES_MAX = 10

/** After these errors the work may be half done. */
const INTERRUPTING_CODES: ReadonlySet<string> = new Set(['exit', 'timeout', 'no_end'])

function mayRetry({ error, usedTool }: FailedTurn): boolean {
  return error.retryable && !(error.code === 'timeout' && usedTool)
}

function retryAfterMs(error: MoleculeError, attempt: number): number {
  const resetAfterMs = error.details['resetAfterMs']
  if (typeof resetAfterMs === 'number' && resetAfterMs >= 0) return Math.ceil(resetAfterMs)
  return RETRY_AFTER_MS[Math.min(attempt, RETRY_AFTER_MS.length) - 1] ?? 0
}

/** The error's own message for the owner, and the public sentence; `prefix` is put before both. */
export function toFailure(error: MoleculeError, prefix = ''): Failure {
  const failure = { code: error.code, message: prefix + error.message, details: error.details }
  const described = failureSentence(error)
  if (described === undefined) return failure
  return { ...failure, sentence: prefix + described.sentence, category: described.category }
}
