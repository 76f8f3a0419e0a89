/**
 * The retry policy: the outcome of a failed turn. A retry is a durable schedule in the inbox; no code sleeps inside a
 * turn. The backend decides whether an error is `retryable`.
 */
import { stepOf } from '../backoff.ts'
import { formatWait } from '../duration.ts'
import type { MoleculeError } from '../errors.ts'
import type { Failure, Lease, Outcome } from '../inbox/worker.ts'
import { failureSentence } from './failure-sentence.ts'
import type { HandlerHealth } from './handler-health.ts'

/** The delays before the second, third and fourth attempt. Later attempts use the last delay. */
const RETRY_AFTER_MS = [5_000, 10_000, 20_000] as const
/** The delays of a message that a bridge keeps for a day (`FailedTurn.handler`). Later attempts use the last one. */
const KEEP_AFTER_MS = [60_000, 300_000, 900_000, 1_800_000, 3_600_000] as const
/** Four quick attempts and those of a day. */
const KEPT_ATTEMPTS_MAX = 31
/** The waits of a message that is parked for a rate limit. Later waits use the last one. */
const PARK_AFTER_MS = [60_000, 120_000, 300_000, 600_000] as const
/** If a provider asks for a longer wait, the message becomes a dead letter, which the owner can replay. */
const RESET_AFTER_MS_MAX = 24 * 3600_000

export interface FailedTurn {
  readonly lease: Lease
  readonly error: MoleculeError
  readonly maxAttempts: number
  /** How long a message may wait for a rate limit. Undefined: the platform cannot park messages. */
  readonly rateLimitPatienceMs?: number | undefined
  /** The turn used a tool, so a timed-out turn is not repeated: its effects could happen twice. */
  readonly usedTool: boolean
  /**
   * On a bridge: its handler may be broken, and the message must not suffer for it. `isKept`: `max_attempts` is not set,
   * so a message that fails is kept for a day while the handler may be at fault.
   */
  readonly handler?: Pick<HandlerHealth, 'outcomeOf' | 'mayBeAtFault'> | undefined
  readonly isKept?: boolean | undefined
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
  const limited = limitOutcome(failed, attempt)
  if (limited !== undefined) return limited
  const waits = failed.handler?.outcomeOf(lease, error)
  if (waits !== undefined) return waits
  const afterMs = retryAfterMs(failed, attempt)
  if (!mayRetry(failed) || attempt >= attemptsMax(failed) || afterMs > RESET_AFTER_MS_MAX) {
    return { type: 'dead', failure: toFailure(error) }
  }
  const number = attempt < maxAttempts ? `${attempt + 1} of ${maxAttempts}` : `${attempt + 1}`
  const failure = toFailure(error, `attempt ${number} in ${formatWait(afterMs)}: `)
  return { type: 'retry', failure, afterMs, reason: 'failure', interrupted: isInterrupted(failed) }
}

/** A handler that fails every message fails each of them four times within a minute, long before anybody mends it. */
const attemptsMax = ({ lease, maxAttempts, handler, isKept }: FailedTurn): number =>
  handler?.mayBeAtFault(lease) === true && isKept === true ? KEPT_ATTEMPTS_MAX : maxAttempts

/** A limit of the model provider. Waiting for it costs no attempt. Undefined where the plain retries apply. */
function limitOutcome(failed: FailedTurn, attempt: number): Outcome | undefined {
  const { error, maxAttempts, rateLimitPatienceMs } = failed
  if (error.code === 'quota_exhausted') return quotaOutcome(failed)
  if (!RATE_LIMIT_CODES.has(error.code) || !error.retryable || rateLimitPatienceMs === undefined) return undefined
  if (attempt < maxAttempts && attempt <= RETRY_AFTER_MS.length) return undefined
  return parkForRateLimit(failed, rateLimitPatienceMs)
}

/**
 * The wait grows with each park, and the last one ends with the patience. A time that the provider names only makes it
 * longer: "retry in 0 s" would otherwise call the provider without a pause until the patience ends.
 */
function parkForRateLimit(failed: FailedTurn, patienceMs: number): Outcome {
  const { lease, error } = failed
  const { times, sinceMs } = lease.parked ?? { times: 0, sinceMs: 0 }
  const leftMs = patienceMs - sinceMs
  const stepMs = stepOf(PARK_AFTER_MS, times)
  const afterMs = Math.ceil(Math.max(Math.min(stepMs, leftMs), resetAfterMs(error) ?? 0))
  if (leftMs <= 0 || sinceMs + afterMs > RESET_AFTER_MS_MAX) {
    const waited = sinceMs > 0 ? `given up after ${formatWait(sinceMs)} (rate_limit_patience): ` : ''
    return { type: 'dead', failure: toFailure(error, waited) }
  }
  return park(failed, afterMs)
}

/** The least wait for a quota, for a provider that names a time which has passed. */
const QUOTA_AFTER_MS_MIN = 60_000

/** Waits for the time that the provider names. Without one, only the owner can help. */
function quotaOutcome(failed: FailedTurn): Outcome | undefined {
  const { lease, error, rateLimitPatienceMs } = failed
  const resetMs = resetAfterMs(error)
  if (resetMs === undefined) return { type: 'dead', failure: toFailure(error, '', QUOTA_ADVICE) }
  const afterMs = Math.max(Math.ceil(resetMs), QUOTA_AFTER_MS_MIN)
  if ((lease.parked?.sinceMs ?? 0) + afterMs > RESET_AFTER_MS_MAX) {
    const advice = `, for another ${formatWait(afterMs)}${QUOTA_ADVICE}`
    return { type: 'dead', failure: toFailure(error, '', advice) }
  }
  return rateLimitPatienceMs === undefined ? undefined : park(failed, afterMs)
}

const QUOTA_ADVICE = ': add credit, change the plan or wait for the quota to return, then replay this message'

const park = (failed: FailedTurn, afterMs: number): Outcome => ({
  type: 'retry',
  failure: toFailure(failed.error),
  afterMs,
  reason: 'failure',
  interrupted: isInterrupted(failed),
  parked: true,
})

/** After these errors, or after a tool, the work may be half done. */
const isInterrupted = ({ error, usedTool }: FailedTurn): boolean =>
  INTERRUPTING_CODES.has(error.code) || (usedTool && PROVIDER_CODES.has(error.code))

const INTERRUPTING_CODES: ReadonlySet<string> = new Set(['exit', 'timeout', 'no_end'])
/** The provider has no capacity for this account, or for any. */
const RATE_LIMIT_CODES: ReadonlySet<string> = new Set(['rate_limited', 'overloaded'])
/** The provider failed a call in the middle of a turn. */
const PROVIDER_CODES: ReadonlySet<string> = new Set([
  ...RATE_LIMIT_CODES,
  ...['quota_exhausted', 'provider_failed', 'provider_unreachable'],
])

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

function mayRetry({ error, usedTool }: FailedTurn): boolean {
  return error.retryable && !(error.code === 'timeout' && usedTool)
}

/** How long to wait, as the provider says; undefined if it does not. */
function resetAfterMs({ details }: MoleculeError): number | undefined {
  const afterMs = details['resetAfterMs']
  return typeof afterMs === 'number' && afterMs >= 0 ? afterMs : undefined
}

function retryAfterMs({ error, maxAttempts }: FailedTurn, attempt: number): number {
  const namedMs = resetAfterMs(error)
  if (namedMs !== undefined) return Math.ceil(namedMs)
  if (attempt < maxAttempts) return stepOf(RETRY_AFTER_MS, attempt - 1)
  return stepOf(KEEP_AFTER_MS, attempt - maxAttempts)
}

/**
 * The error's own message, and the public sentence with `prefix` and `advice`. The owner reads the message below the
 * sentence; it has the prefix only where there is no sentence.
 */
export function toFailure(error: MoleculeError, prefix = '', advice = ''): Failure {
  const { code, message, details } = error
  const described = failureSentence(error)
  if (described === undefined) return { code, message: prefix + message, details }
  return { code, message, details, sentence: prefix + described.sentence + advice, category: described.category }
}
