/**
 * What agents complain of, in our words: from an HTTP status where the program tells one, else from its text, to the
 * code that the retry table understands. A program's own peculiarities are read in its backend; here is what providers
 * and programs have in common. The program's words stay in the message, for the owner; people see failure-words.ts.
 */
import { type ErrorCode, MoleculeError, type MoleculeErrorOptions } from '../../../errors.ts'
import type { ProcessResult } from '../../../process/processes.ts'
import type { EndEvent } from '../turn-engine.ts'
import { type DriftPattern, driftError, driftInText } from './drift.ts'
import { parseResetDelayMs } from './reset-time.ts'
import { runFailure, stderrTail } from './run-failure.ts'

export interface AgentErrorText {
  /** What the program says, whole. */
  readonly text: string
  /** HTTP status of the provider, where the program tells it. */
  readonly status?: number | undefined
  readonly exitCode?: number | null | undefined
  readonly stderr?: string | undefined
  /** For a time of day in the text. */
  readonly nowMs: number
}

/** Undefined where neither status nor text tells what it is: then the exit, or the program's own reader, has to say. */
export function classifyAgentError(complaint: AgentErrorText): MoleculeError | undefined {
  const { text, status } = complaint
  if (SESSION_LOST.test(text)) return toError('session_lost', complaint)
  // Before the status: a request that is too long is a 400 like any other.
  if (CONTEXT_FULL.test(text)) return toError('context_full', complaint)
  if (status === undefined ? RATE_LIMITED.test(text) : RATE_LIMIT_STATUSES.has(status)) return rateLimited(complaint)
  if (status === undefined ? AUTH_FAILED.test(text) : status === 401 || status === 403) return authFailed(complaint)
  if (status === undefined) return undefined
  // Asked for what is not there, most often a model: asking again changes nothing.
  return toError('provider_failed', complaint, { retryable: status >= 500, details: { status } })
}

/** An error of the model provider in the agent's own words: classified, or else `provider_failed`. */
export function providerError(backend: string, complaint: AgentErrorText, retryable = true): MoleculeError {
  const text = complaint.text === '' ? `${backend} failed without a message` : complaint.text
  const classified = classifyAgentError({ ...complaint, text })
  return classified ?? new MoleculeError('provider_failed', text, { retryable })
}

/** A failure of the process itself: undefined where it left by itself with exit code 0. */
export function processFailure(result: ProcessResult, facts: ProcessFacts): MoleculeError | undefined {
  if (result.end === 'spawn_failed' && isMissing(result.cause)) {
    return new MoleculeError('backend_missing', `${facts.command}: there is no such program`, { cause: result.cause })
  }
  const stderr = stderrTail(result)
  const complaint = { text: stderr, exitCode: result.exitCode, stderr, nowMs: facts.nowMs }
  const read = result.end === 'exited' && result.exitCode !== 0 ? classifyAgentError(complaint) : undefined
  return read ?? runFailure(result, facts)
}

/** The process ended and no line of its output was a result. */
export function endWithoutResult(backend: string, result: ProcessResult, facts: ProcessFacts): EndEvent {
  const failure = processFailure(result, facts)
  const error = failure ?? new MoleculeError('agent_failed', `${backend} ended without a result`, { retryable: true })
  return { type: 'failed', error }
}

/** What the messages name. */
export interface ProcessFacts {
  readonly command: string
  readonly timeout: string
  readonly outputBytesMax: number
  readonly nowMs: number
}

/** The process of a warm agent ended in the middle of a turn, or before it could take one. */
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

/** It ended before it had said anything in its protocol: it may not know the words that it was started with. */
export function exitAtStart(result: ProcessResult, facts: StartFacts): MoleculeError {
  const error = unexpectedExit(result, facts)
  // A whole page of help may follow the complaint, so all that was kept counts.
  const words = new TextDecoder().decode(result.stderrTail)
  const drift = error.code === 'exit' ? driftInText(words, facts.misunderstanding) : undefined
  return drift === undefined ? error : driftError(facts.command, drift, error)
}

export interface StartFacts extends ProcessFacts {
  readonly misunderstanding?: DriftPattern | undefined
}

export const emptyResponse = (backend: string) =>
  new MoleculeError('empty_response', `${backend} ended well and said nothing`, { retryable: true })

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
/** These do not mend themselves while we wait. */
const AUTH_FINAL = /invalid|revoked|not logged in|\/login|no api key|missing/i

function rateLimited(complaint: AgentErrorText): MoleculeError {
  const resetAfterMs = parseResetDelayMs(complaint.text, complaint.nowMs)
  const details = { ...(resetAfterMs !== undefined && { resetAfterMs }) }
  return toError('rate_limited', complaint, { retryable: true, details })
}

function authFailed(complaint: AgentErrorText): MoleculeError {
  return toError('auth_failed', complaint, { retryable: !AUTH_FINAL.test(complaint.text) })
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

/** The folder that is not there has an error of its own, with the system's as its cause. */
function isMissing(cause: Error | undefined): boolean {
  return cause !== undefined && 'code' in cause && cause.code === 'ENOENT'
}
