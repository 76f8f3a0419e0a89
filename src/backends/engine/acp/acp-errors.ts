/**
 * How ACP agents say that something failed, each in its own way: gemini's code is the provider's HTTP status,
 * codex-acp ends the turn well with the error as its text, the others answer -32603 and say it in words. Here they
 * become our errors.
 */
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { isJsonObject } from '../../../protocol/json.ts'
import { classifyAgentError } from '../failure/agent-errors.ts'
import { RpcError } from '../json-rpc.ts'

const AUTH_REQUIRED = -32_000
const RESOURCE_NOT_FOUND = -32_002

/** An error that the agent answered a prompt, or anything else, with. */
export function agentError(thrown: unknown, nowMs: number): MoleculeError {
  if (!(thrown instanceof RpcError)) return toMoleculeError(thrown)
  const text = wordsOf(thrown)
  if (thrown.code === AUTH_REQUIRED) {
    return new MoleculeError('auth_failed', `the agent is not logged in: ${text}`, { cause: thrown })
  }
  if (thrown.code === RESOURCE_NOT_FOUND) return new MoleculeError('session_lost', text, { cause: thrown })
  return textError(text, thrown.code, nowMs)
}

/** What a session that cannot be gone on with means: it is lost, unless the agent complains of something else. */
export function resumeError(thrown: unknown, sessionId: string, nowMs: number): MoleculeError {
  const error = agentError(thrown, nowMs)
  const isOther = !(thrown instanceof RpcError) || error.code === 'auth_failed' || error.code === 'rate_limited'
  if (isOther) return error
  return new MoleculeError('session_lost', `the agent cannot go on with session ${sessionId}: ${error.message}`, {
    cause: thrown,
  })
}

/** codex-acp: a turn that ended well, whose text is the provider's error, once it has told of a system error. */
export function errorInAnswer(text: string, nowMs: number): MoleculeError {
  return textError(text.trim() === '' ? 'the agent reports a system error' : text.trim(), undefined, nowMs)
}

function textError(text: string, code: number | undefined, nowMs: number): MoleculeError {
  const status = statusOf(text, code)
  return classifyAgentError({ text, status, nowMs }) ?? new MoleculeError('provider_failed', text, { retryable: true })
}

/** `data.details` is where gemini puts the reason of an "Internal error". */
function wordsOf({ message, data }: RpcError): string {
  const details = isJsonObject(data) && typeof data['details'] === 'string' ? data['details'] : ''
  return details === '' ? message : `${message}: ${details}`
}

function statusOf(text: string, code: number | undefined): number | undefined {
  if (code !== undefined && code >= 400 && code <= 599) return code
  const inner = bodyIn(text)
  const told =
    inner?.['code'] ?? inner?.['status'] ?? /(?:API Error:?|HTTP|status(?: code)?:?)\s*(\d{3})\b/i.exec(text)?.[1]
  const status = Number(told)
  return status >= 400 && status <= 599 ? status : undefined
}

/** The `error` of a JSON object in the text. */
function bodyIn(text: string): Readonly<Record<string, unknown>> | undefined {
  const [json] = /\{.*\}/s.exec(text) ?? []
  if (json === undefined) return undefined
  try {
    const body: unknown = JSON.parse(json)
    return isJsonObject(body) && isJsonObject(body['error']) ? body['error'] : undefined
  } catch {
    return undefined
  }
}
