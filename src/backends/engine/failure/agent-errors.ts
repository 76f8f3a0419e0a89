/**
 * Classifies the error of an agent: from its HTTP status, else from its text, to an error code for the retry table. This
 * file knows what programs and providers have in common; each backend knows the peculiarities of its program. The text
 * of the program stays in the message, for the owner; people see runtime/failure-sentence.ts.
 */
import { type ErrorCode, MoleculeError, type MoleculeErrorOptions } from '../../../errors.ts'
import type { ProcessResult } from '../../../process/processes.ts'
import { parseJsonObject } from '../../../protocol/json.ts'
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
  /** The sentences of this program; they come before the status and before the sentences that programs share. */
  readonly sentences?: readonly ErrorSentence[] | undefined
}

/** A sentence by which one program reports a failure. */
export interface ErrorSentence {
  readonly says: RegExp
  readonly code: AgentErrorCode
}

export type AgentErrorCode = Extract<
  ErrorCode,
  | 'rate_limited'
  | 'overloaded'
  | 'quota_exhausted'
  | 'auth_failed'
  | 'bad_request'
  | 'unknown_model'
  | 'context_full'
  | 'session_lost'
  | 'provider_unreachable'
  | 'provider_failed'
>

/** Undefined if neither status nor text is known. The caller then uses the exit code or the program's own parser. */
export function classifyAgentError(error: AgentErrorText): MoleculeError | undefined {
  const { text, status, sentences = [] } = error
  const find = (list: readonly ErrorSentence[]) => list.find(({ says }) => says.test(text))?.code
  const code =
    find(sentences) ??
    find(STATUS_HIDES) ??
    (status === undefined ? find(SENTENCES) : codeOfStatus(status, find(REFUSED_FOR)))
  return code === undefined ? undefined : agentErrorOf(code, error)
}

/** The error with its code: whether a retry can help, and when, if the text says so. */
export function agentErrorOf(code: AgentErrorCode, error: AgentErrorText): MoleculeError {
  const { text } = error
  switch (code) {
    case 'rate_limited':
      return toError(code, error, { retryable: true, details: resetDetails(error) })
    case 'quota_exhausted': {
      // The message waits for the reset if the text names one; else it is final, because only the owner can help.
      const details = resetDetails(error)
      return toError(code, error, { retryable: details.resetAfterMs !== undefined, details })
    }
    case 'auth_failed':
      return toError(code, error, { retryable: AUTH_PASSES.test(text) && !AUTH_FINAL.test(text) })
    default:
      return toError(code, error, { retryable: TRANSIENT_CODES.has(code) })
  }
}

const TRANSIENT_CODES: ReadonlySet<ErrorCode> = new Set(['overloaded', 'provider_unreachable', 'provider_failed'])

/** `reason`: why the provider refuses the request, if its text says so. */
function codeOfStatus(status: number, reason: AgentErrorCode | undefined): AgentErrorCode {
  if (status === 429) return 'rate_limited'
  if (status === 503 || status === 529) return 'overloaded'
  if (status === 401 || status === 403) return 'auth_failed'
  if (status >= 500 || status === 408) return 'provider_failed'
  return reason ?? 'bad_request'
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
export function endWithoutResult(
  { backend, facts }: { readonly backend: string; readonly facts: ProcessFacts },
  result: ProcessResult,
  stdout: string,
): EndEvent {
  return { type: 'failed', error: processFailure(result, facts) ?? missingResult(backend, stdout) }
}

/** Some lines of a program's output show whether it speaks as its backend expects. */
const LINES_READ_MAX = 50

function missingResult(backend: string, stdout: string): MoleculeError {
  if (stdout.trim() === '') return emptyResponse(backend)
  const hasEvent = stdout.split('\n', LINES_READ_MAX).some((line) => parseJsonObject(line) !== undefined)
  if (!hasEvent) return unreadableOutput(backend, stdout)
  return new MoleculeError('no_end', `${backend} ended without a result`, { retryable: true })
}

/** Of an output that cannot be read. The rest of it is not kept. */
const OUTPUT_CHARACTERS_KEPT = 8 * 1024

/** The output is for the owner and the log alone: it may hold paths and keys. */
export function unreadableOutput(backend: string, output: string): MoleculeError {
  const stdout = output
    .trim()
    .slice(-OUTPUT_CHARACTERS_KEPT)
    .replace(/^[\udc00-\udfff]/, '')
  const message = `Failed to parse CLI output: ${backend} printed no result (stdout: ${stdout})`
  return new MoleculeError('unreadable_output', message, { details: { stdout } })
}

/** The agent tells its caller why its task failed. Its words go to the caller, as an answer does. */
export const agentReason = (text: string): MoleculeError =>
  new MoleculeError('agent_failed', text, { details: { forCaller: true } })

export interface ProcessFacts extends RunFacts {
  readonly nowMs: number
}

/** The process of a warm agent ended in the middle of a turn, or before its first turn. */
export function unexpectedExit(
  result: ProcessResult,
  facts: ProcessFacts,
  when = 'in the middle of a turn',
): MoleculeError {
  const read = processFailure(result, facts)
  if (read !== undefined && read.code !== 'canceled') return read
  const stderr = stderrTail(result).trimEnd()
  return new MoleculeError('exit', `${facts.command} ended ${when}${stderr && ` (stderr: ${stderr})`}`, {
    retryable: true,
    details: { exitCode: result.exitCode, signal: result.signal, stderr },
  })
}

/** The process ended before its first protocol message. It may not know an argument that it was started with. */
export function exitAtStart(result: ProcessResult, facts: StartFacts): MoleculeError {
  const error = unexpectedExit(result, facts, 'before it answered')
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

/** The model or its provider refuses to answer: the end of the turn, with the model's own words if it gave any. */
export const refusedEnd = (text = ''): EndEvent => ({
  type: 'done',
  parts: [{ text: text === '' ? 'The model refused to answer this message.' : text }],
  finality: 'rejected',
})

export const maxTurnsUsed = (backend: string, maxTurns: number | undefined) =>
  new MoleculeError('max_turns', `${backend} used up its ${maxTurns ?? ''} steps (option max_turns)`, {
    details: { maxTurns },
  })

/** Failures that have the status 400, 404 or 429 of other failures, so that only the text shows them. */
const STATUS_HIDES: readonly ErrorSentence[] = [
  {
    code: 'session_lost',
    says: /no (conversation|session|rollout) found|(session|conversation|thread)( id)? (\S{1,80} )?(was )?not found|unknown session|no such session/i,
  },
  {
    code: 'context_full',
    says: /prompt is too long|input is too long|context[ _](window|length)[ _](limit|exceeded|is full|overflow)|exceeds? the[^.]{0,30} context|maximum context length|input token count.{0,40} exceeds/i,
  },
  // No retry adds credit to an account.
  { code: 'quota_exhausted', says: /insufficient_quota|credit balance is too low/i },
]

/** Why a provider refuses a request. Google answers 400 to a wrong key. A wrong address is 404, like a wrong model. */
const REFUSED_FOR: readonly ErrorSentence[] = [
  { code: 'auth_failed', says: /api[_ ]key[_ ](not[_ ]valid|invalid)/i },
  {
    code: 'unknown_model',
    says: /model_?not_?found|\bmodel\b.{0,60}(does not exist|not found|may not exist)|models\/\S{1,200} is not found/is,
  },
]

/** For an error without a status. */
const SENTENCES: readonly ErrorSentence[] = [
  { code: 'overloaded', says: /\b529\b|overloaded|at capacity/i },
  {
    code: 'rate_limited',
    says: /\b429\b|rate.?limit|too many requests|(usage|hour|weekly|quota) limit|quota exceeded/i,
  },
  {
    code: 'auth_failed',
    says: /\b401\b|unauthori[sz]ed|authentication|(invalid|incorrect) (api|x-api).?key|not logged in|please run \/login|expired token|no (inference )?provider (is )?configured/i,
  },
  ...REFUSED_FOR,
  {
    code: 'provider_unreachable',
    says: /fetch failed|error sending request|cannot connect to api|connection (dropped|refused|reset|error)|socket (hang up|connection was closed)|ECONN(REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN|ENETUNREACH/i,
  },
]

/**
 * A refused log-in (401, 403) is final: the same key is refused again. It is tried again only if the error says that it may
 * pass: a token that has expired, which the program renews, or a provider that could not check it.
 */
const AUTH_PASSES = /\btoken (has |is )?expired|expired (access |oauth )?token|refresh|temporar|try again/i

/** Log-ins that do not pass whatever else the error says: it names a bad key, or tells the owner to log in. */
const AUTH_FINAL =
  /invalid|not valid|incorrect|revoked|not logged in|\/login|\b(log|sign)[ -]?in\b|re-?authenticate|no api key|missing|provider (is )?configured/i

function resetDetails({ text, nowMs }: AgentErrorText): { readonly resetAfterMs?: number } {
  const resetAfterMs = parseResetDelayMs(text, nowMs)
  return resetAfterMs === undefined ? {} : { resetAfterMs }
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
