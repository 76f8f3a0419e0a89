/**
 * The failures of gemini, read from its exit code: 41 not logged in, 42 unknown session, 53 out of turns, 55 untrusted
 * folder, from 144 up the provider's HTTP status modulo 256. The printed message alone may hide a rate limit. Pure.
 */
import { MoleculeError } from '../../errors.ts'
import type { ProcessResult } from '../../process/processes.ts'
import { findJsonObject, isJsonObject } from '../../protocol/json.ts'
import type { FailedCall } from '../engine/acp/acp-agent.ts'
import type { AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import {
  type ErrorSentence,
  endWithoutResult,
  maxTurnsUsed,
  providerError,
  refusedEnd,
} from '../engine/failure/agent-errors.ts'
import { stderrTail } from '../engine/failure/run-failure.ts'
import type { EndEvent } from '../engine/turn-engine.ts'

const EXIT_AUTH = 41
const EXIT_INPUT = 42
const EXIT_TURNS = 53
const EXIT_UNTRUSTED = 55
/** 400 - 256 */
const EXIT_STATUS_MIN = 144

/** `errorMessage`: the error of gemini's `result`; undefined if it printed none. */
export function failedEnd(
  result: ProcessResult,
  { errorMessage, stdout }: { readonly errorMessage: string | undefined; readonly stdout: string },
  options: AgentOutputParserOptions,
): EndEvent {
  if (errorMessage !== undefined && REFUSAL.test(errorMessage)) return refusedEnd()
  const error = failureOf(result, errorMessage, options)
  return error === undefined ? endWithoutResult(options, result, stdout) : { type: 'failed', error }
}

function failureOf(
  result: ProcessResult,
  errorMessage: string | undefined,
  options: AgentOutputParserOptions,
): MoleculeError | undefined {
  const stderr = stderrTail(result)
  const { exitCode } = result
  if (result.end === 'exited' && exitCode !== null) {
    const known = exitCodeError(exitCode, stderr, options)
    if (known !== undefined) return known
    const isStatus = exitCode >= EXIT_STATUS_MIN
    if (errorMessage !== undefined || isStatus) {
      const text = errorMessage ?? stderr
      const status = statusIn(text) ?? (isStatus ? exitCode + 256 : undefined)
      return providerError(options.backend, { text, status, nowMs: options.facts.nowMs, sentences: SENTENCES })
    }
  }
  return undefined
}

/** Gemini's log of a call that it will repeat, ten times and for minutes. */
const ATTEMPT = /\bAttempt \d{1,3} failed(?: with (?:status )?(\d{3}|5xx))?(.*)/

/** The failed call in a line of gemini's log, or of its stderr. */
export function failedCallIn(line: string): FailedCall | undefined {
  const found = ATTEMPT.exec(line)
  if (found === null) return undefined
  const [, status, reason = ''] = found
  return { sessionId: '', text: reason.replace(/^[:. ]+/, ''), status: loggedStatus(status, reason), isRetried: true }
}

/** `Attempt 1 failed: <reason>` is gemini's form for a limit of the provider; other failures have no reason there. */
function loggedStatus(status: string | undefined, reason: string): number | undefined {
  if (status !== undefined) return status === '5xx' ? 500 : Number(status)
  return reason.startsWith(': ') ? 429 : undefined
}

const REFUSAL = /response was blocked due to/i

export const SENTENCES: readonly ErrorSentence[] = [
  // Google has the same sentence for the limit of a minute and of a day; only gemini tells them apart.
  { code: 'quota_exhausted', says: /exhausted your (\w+ )?quota/i },
]

/** `[API Error: {"error":{"code":429,...}}]`; undefined for a plain sentence. */
function statusIn(text: string): number | undefined {
  const error = findJsonObject(text)?.['error']
  return isJsonObject(error) && typeof error['code'] === 'number' ? error['code'] : undefined
}

function exitCodeError(exitCode: number, stderr: string, options: AgentOutputParserOptions): MoleculeError | undefined {
  const details = { exitCode, stderr }
  if (exitCode === EXIT_AUTH) {
    return new MoleculeError('auth_failed', `gemini is not logged in: ${stderr}`, { details })
  }
  if (exitCode === EXIT_INPUT && options.sessionId !== undefined) {
    const message = `gemini does not know session ${options.sessionId}: ${stderr}`
    return new MoleculeError('session_lost', message, { details })
  }
  if (exitCode === EXIT_TURNS) return maxTurnsUsed(options.backend, undefined)
  if (exitCode === EXIT_UNTRUSTED) {
    return new MoleculeError('bad_config', `gemini does not trust the working folder: ${stderr}`, { details })
  }
  return undefined
}
