/**
 * Turns the errors of ACP agents into ours. Agents differ: gemini's error code is the provider's HTTP status, codex-acp
 * ends the turn normally with the error as its text, the others answer -32603 and describe the error in a sentence.
 */
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { findJsonObject, isJsonObject } from '../../../protocol/json.ts'
import { type AgentErrorCode, agentErrorOf, type ErrorSentence, providerError } from '../failure/agent-errors.ts'
import { RpcError } from '../json-rpc.ts'

const AUTH_REQUIRED = -32_000
const RESOURCE_NOT_FOUND = -32_002

/** What the errors of one agent program mean, where it differs from other programs. */
export interface AcpErrorMeanings {
  readonly sentences?: readonly ErrorSentence[]
  /** By the `data` of an error. */
  readonly codeOf?: (data: unknown) => AgentErrorCode | undefined
}

/** The error that the agent answered a request with. */
export function agentError(thrown: unknown, nowMs: number, meanings: AcpErrorMeanings = {}): MoleculeError {
  if (!(thrown instanceof RpcError)) return toMoleculeError(thrown)
  const text = messageOf(thrown)
  const code = meanings.codeOf?.(thrown.data)
  if (code !== undefined) return agentErrorOf(code, { text, nowMs })
  if (thrown.code === AUTH_REQUIRED) {
    return new MoleculeError('auth_failed', `the agent is not logged in: ${text}`, { cause: thrown })
  }
  if (thrown.code === RESOURCE_NOT_FOUND) return new MoleculeError('session_lost', text, { cause: thrown })
  return textError(text, { status: statusOf(text, thrown.code), nowMs, ...meanings })
}

/** Loading a session failed: the session is lost, unless the agent names another reason. */
export function resumeError(thrown: unknown, sessionId: string, nowMs: number): MoleculeError {
  const error = agentError(thrown, nowMs)
  if (!(thrown instanceof RpcError) || PROVIDER_CODES.has(error.code)) return error
  return new MoleculeError('session_lost', `the agent cannot continue session ${sessionId}: ${error.message}`, {
    cause: thrown,
  })
}

/** Errors of the provider. They say nothing about the session. */
const PROVIDER_CODES: ReadonlySet<string> = new Set([
  ...['auth_failed', 'rate_limited', 'quota_exhausted', 'overloaded', 'provider_unreachable'],
])

/** codex-acp: the turn ended normally after a system error, and its text is the provider's error. */
export function errorInAnswer(text: string, nowMs: number): MoleculeError {
  const shown = text.trim() === '' ? 'the agent reports a system error' : text.trim()
  return textError(shown, { status: statusOf(shown, undefined), nowMs })
}

export function textError(
  text: string,
  { status, nowMs, sentences }: { status: number | undefined; nowMs: number; sentences?: readonly ErrorSentence[] },
): MoleculeError {
  return providerError('the agent', { text, status, nowMs, sentences })
}

/** gemini puts the reason of an "Internal error" into `data.details`. */
function messageOf({ message, data }: RpcError): string {
  const details = isJsonObject(data) && typeof data['details'] === 'string' ? data['details'] : ''
  return details === '' ? message : `${message}: ${details}`
}

function statusOf(text: string, code: number | undefined): number | undefined {
  // gemini answers 500 to every error without a status. The text of a real 500 has the status too.
  if (code !== undefined && code >= 400 && code <= 599 && code !== 500) return code
  const error = errorInText(text)
  const found =
    error?.['code'] ?? error?.['status'] ?? /(?:API Error:?|HTTP|status(?: code)?:?)\s*(\d{3})\b/i.exec(text)?.[1]
  const status = Number(found)
  return status >= 400 && status <= 599 ? status : undefined
}

/** The `error` of a JSON object in the text. */
function errorInText(text: string): Readonly<Record<string, unknown>> | undefined {
  const error = findJsonObject(text)?.['error']
  return isJsonObject(error) ? error : undefined
}
