/**
 * Classifies the error of an agent: from its HTTP status, else from its text, to an error code for the retry table. This
 * file knows what programs and providers have in common; each backend knows the peculiarities of its program. The text
 * of the program stays in the message, for the owner; people see runtime/failure-sentence.ts.
 */
import { type ErrorCode, MoleculeError, type MoleculeErrorOptions } from '../../../errors.ts'
import type { ProcessResult } from '../../../process/processes.ts'
import type { EndEvent } from '../turn-engine.ts'
import { type DriftPattern, driftError, driftInText } from './drift.ts'
import { parseResetDelayMs } from './reset-time.ts'
import { type RunFacts, runFailure, stderrTail } from './run-failure.ts'

export interface AgentErrorText {
  /** The whole error text of the program. */
  readonly text: string
  /** HTTP status of the provider, if the program reports it. */
  readonly status?: number | undefined
  readonly exitCode?: number | null | undefined
  readonly stderr?: string | undefined
  /** The current time, for a time of day in the text. */
  readonly nowMs: number
}

/** Undefined if neither status nor text is known. The caller then uses the exit code or the program's own parser. */
export function classifyAgentError(error: AgentErrorText): MoleculeError | undefined {
  const { text, status } = error
  if (SESSION_LOST.test(text)) return toError('session_lost', error)
  // Before the status: a request that is too long has the same status 400 as other errors.
  if (CONTEXT_FULL.test(text)) return toError('context_full', error)
  if (status === undefined ? RATE_LIMITED.test(text) : RATE_LIMIT_STATUSES.has(status)) return rateLimited(error)
  if (status === undefined ? AUTH_FAILED.test(text) : status === 401 || status === 403) return authFailed(error)
  if (status === undefined) return undefined
  // Most 4xx are a model that does not exist: a retry does not help.
  return toError('provider_failed', error, { retryable: status >= 500, details: { status } })
}

/** The error of a model provider that the agent reports: classified, or else `provider_failed`. */
export function providerError(backend: string, error: AgentErrorText, retryable = true): MoleculeError {
  const text = error.text === '' ? `${backend} failed without a message` : error.text
  const classified = classifyAgentError({ ...error, text })
  return classified ?? new MoleculeError('provider_failed', text, { retryable })
}

/** The failure of a process; undefined if it exited by itself with code 0. */
export function processFailure(result: ProcessResult, facts: ProcessFacts): MoleculeError | undefined {
  if (result.end === 'spawn_failed' && isMissing(result.cause)) {
    return new MoleculeError('backend_missing', `${facts.command}: the program was not found`, { cause: result.cause })
  }
  const stderr = stderrTail(result)
  const error = { text: stderr, exitCode: result.exitCode, stderr, nowMs: facts.nowMs }
  const read = result.end === 'exited' && result.exitCode !== 0 ? classifyAgentError(error) : undefined
  return read ?? runFailure(result, facts)
}

/** The process ended and no line of its output was a result. */
export function endWithoutResult(backend: string, result: ProcessResult, facts: ProcessFacts): EndEvent {
  const failure = processFailure(result, facts)
  const error = failure ?? new MoleculeError('agent_failed', `${backend} ended without a result`, { retryable: true })
  return { type: 'failed', error }
}

export interface ProcessFacts extends RunFacts {
  readonly nowMs: number
}

/** The process of a warm agent ended in the middle of a turn, or before its first turn. */
export function unexpectedExit(result: ProcessResult, facts: ProcessFacts): MoleculeError {
  const read = processFailure(result, facts)
  if (read !== undefined && read.code !== 'canceled') return read
  const stderr = stderrTail(result)
  return new MoleculeError(
    'exit',
    `${facts.command} ended in the middle of a turn${stderr && ` (stderr: ${stderr})`}`,
    {
      retryable: true,
      details: { exitCode: result.exitCode, signal: result.signal, stderr },
    },
  )
}

/** The process ended before its first protocol message. It may not know an argument that it was started with. */
export function exitAtStart(result: ProcessResult, facts: StartFacts): MoleculeError {
  const error = unexpectedExit(result, facts)
  // All of the kept stderr, because a page of help may follow the error.
  const text = new TextDecoder().decode(result.stderrTail)
  const drift = error.code === 'exit' ? driftInText(text, facts.misunderstanding) : undefined
  return drift === undefined ? error : driftError(facts.command, drift, error)
}

export interface StartFacts extends ProcessFacts {
  readonly misunderstanding?: DriftPattern | undefined
}

export const emptyResponse = (backend: string) =>
  new MoleculeError('empty_response', `${backend} succeeded but gave an empty reply`, { retryable: true })

export const maxTurnsUsed = (backend: string, maxTurns: number | undefined) =>
  new MoleculeError('max_turns', `${backend} used up its ${maxTurns ?? ''} steps (option max_turns)`, {
    details: { maxTurns },
  })

const RATE_LIMIT_STATUSES: ReadonlySet<number> = new Set([429, 503, 529])

const SESSION_LOST =
  /no (conversation|session|rollout) found|(session|conversation|thread)( id)? (\S{1,80} )?(was )?not found|unknown session|no such session/i
const CONTEXT_FULL =
  /prompt is too long|input is too long|context[ _](window|length)[ _](limit|exceeded|is full|overflow)|exceeds? the[^.]{0,30} context|maximum context length/i
const RATE_LIMITED =
  /\b(429|529)\b|rate.?limit|too many requests|overloaded|(usage|hour|weekly|quota) limit|quota exceeded/i
const AUTH_FAILED =
  /\b401\b|unauthori[sz]ed|authentication|invalid (api|x-api).?key|not logged in|please run \/login|expired token/i
/** Login errors that no retry can fix. */
const AUTH_FINAL = /invalid|revoked|not logged in|\/login|no api key|missing/i

function rateLimited(error: AgentErrorText): MoleculeError {
  const resetAfterMs = parseResetDelayMs(error.text, error.nowMs)
  const details = { ...(resetAfterMs !== undefined && { resetAfterMs }) }
  return toError('rate_limited', error, { retryable: true, details })
}

function authFailed(error: AgentErrorText): MoleculeError {
  return toError('auth_failed', error, { retryable: !AUTH_FINAL.test(error.text) })
}

function toError(
  code: ErrorCode,
  { text, status, exitCode, stderr }: AgentErrorText,
  options: MoleculeErrorOptions = {},
) {
  const known = {
    ...(status !== undefined && { status }),
    ...(typeof exitCode === 'number' && { exitCode }),
    ...(stderr !== undefined && { stderr }),
  }
  return new MoleculeError(code, text.trim(), { ...options, details: { ...known, ...options.details } })
}

/** A missing program. (A missing working folder has its own error, with the system's error as its cause.) */
function isMissing(cause: Error | undefined): boolean {
  return cause !== undefined && 'code' in cause && cause.code === 'ENOENT'
}
