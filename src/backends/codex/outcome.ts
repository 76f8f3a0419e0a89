/** How a turn of codex ends: its last events, and the errors of codex as ours. Pure. */
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { isJsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import {
  type AgentErrorCode,
  agentErrorOf,
  classifyAgentError,
  type ErrorSentence,
  providerError,
  refusedEnd,
} from '../engine/failure/agent-errors.ts'
import { RpcError } from '../engine/json-rpc.ts'
import { ACTIVITY, type ProgressEvent } from '../engine/reply-builder.ts'
import type { EndEvent } from '../engine/turn-engine.ts'
import type { CodexReply } from './reply.ts'
import { type TokenTotals, usedSince, writeSession } from './session.ts'

export interface FinishedTurn {
  readonly thread: string | undefined
  /** Tokens of the thread before the turn, and after it if codex reports them. */
  readonly before: TokenTotals
  readonly totals: TokenTotals | undefined
  /** Hash of the system prompt. */
  readonly instructions: string
  /** The model that was chosen for the thread, where a resumed thread keeps it. */
  readonly model?: string | undefined
}

/** The last events of a turn: the note on denied tools, the session to keep, the tokens of the turn; and the end. */
export function finishTurn(
  reply: CodexReply,
  { thread, totals, instructions, before, model }: FinishedTurn,
): { readonly last: readonly ProgressEvent[]; readonly end: EndEvent } {
  const { last, end } = reply.finish()
  const events = [...last]
  if (thread !== undefined) {
    events.push({ type: 'session', token: writeSession({ thread, totals: totals ?? before, instructions, model }) })
  }
  // Equal totals mean that codex reported no tokens for this turn.
  if (totals !== undefined && totals.input !== before.input) {
    events.push({ type: 'usage', ...usedSince(before, totals) })
  }
  return { last: events, end }
}

/** The end of a turn for an error that codex reported. `info`: `codexErrorInfo` of the app server. */
export function failedEnd(
  { message, info }: { readonly message: string; readonly info?: unknown },
  nowMs: number,
): EndEvent {
  const kind = kindOf(info)
  if (REFUSAL_KINDS.has(kind) || REFUSAL.test(message)) return refusedEnd()
  return { type: 'failed', error: failureOf({ message, info, kind }, nowMs) }
}

function failureOf(
  { message, info, kind }: { readonly message: string; readonly info: unknown; readonly kind: string },
  nowMs: number,
): MoleculeError {
  const body = errorBodyIn(message)
  const text = body?.text || message || 'codex failed without a message'
  const code = CODE_OF_KIND[kind]
  if (code !== undefined) return agentErrorOf(code, { text, nowMs })
  const status = statusOf(info) ?? statusIn(text) ?? body?.status
  // Not retryable: codex has retried what a retry can mend, and its other errors are the same at every attempt.
  return providerError('codex', { text, status, nowMs, sentences: SENTENCES }, false)
}

/** An error that the app server answered a request with, or any other. */
export function requestError(thrown: unknown, nowMs: number): MoleculeError {
  if (!(thrown instanceof RpcError)) return toMoleculeError(thrown)
  return classifyAgentError({ text: thrown.message, nowMs }) ?? new MoleculeError('agent_failed', thrown.message)
}

const SENTENCES: readonly ErrorSentence[] = [
  { code: 'quota_exhausted', says: /quota exceeded|hit your usage limit/i },
  // The key of a provider of the owner's own.
  { code: 'auth_failed', says: /^missing environment variable/i },
  { code: 'context_full', says: /ran out of room in the model's context/i },
  // Codex shows a status of 500 as this sentence, without the number.
  { code: 'provider_failed', says: /experiencing high demand/i },
  { code: 'provider_unreachable', says: /^stream disconnected|connection failed|timed? out/i },
]

const CODE_OF_KIND: Readonly<Record<string, AgentErrorCode>> = {
  contextWindowExceeded: 'context_full',
  usageLimitExceeded: 'quota_exhausted',
  rateLimitExceeded: 'rate_limited',
  serverOverloaded: 'overloaded',
  policyCapacityUnavailable: 'overloaded',
  flexUnavailable: 'overloaded',
  unauthorized: 'auth_failed',
  modelNotFound: 'unknown_model',
  badRequest: 'bad_request',
  internalServerError: 'provider_failed',
}

/** Without a network codex waits for ever and says so after 0, 5, 15, 35 s. The first time may be a short outage. */
export const NETWORK_WAITS_MAX = 2

/** True if codex reports that it waits for the network. */
export const waitsForNetwork = (message: string): boolean => /waiting for network/i.test(message)

/** Prevents a turn that never ends: the runtime tries again later, and people see why. */
export const networkAway = (message: string): MoleculeError =>
  new MoleculeError('provider_unreachable', message, { retryable: true })

/** What people see while codex repeats a call of the model. Its own sentence may name the URL of a provider or a key. */
export function retryEvents(message: string): readonly ProgressEvent[] {
  if (waitsForNetwork(message)) return [{ type: 'status', text: 'codex waits for the network' }]
  const attempt = /^Reconnecting\.\.\. (\d{1,3})\/(\d{1,3})/.exec(message)
  // `codex exec` also prints the error of the turn here, before it ends the turn with it.
  if (attempt === null) return ACTIVITY
  return [{ type: 'status', text: `a call of the model failed: codex tries it again (${attempt[1]} of ${attempt[2]})` }]
}

const REFUSAL_KINDS: ReadonlySet<string> = new Set(['cyberPolicy', 'misalignmentPolicyViolation'])
/** `codex exec` and older app servers report no kind. */
const REFUSAL = /violating our usage policy|reason: content_filter|misalignment policy violation|flagged for cyber/i

/** Codex reports the body of a refused request (status 400) as its message. */
function errorBodyIn(message: string): { readonly text: string; readonly status: number } | undefined {
  const error = parseJsonObject(message)?.['error']
  return isJsonObject(error) ? { text: stringOf(error['message']), status: 400 } : undefined
}

/** `info` is a word, or an object with that word as its one key. */
function kindOf(info: unknown): string {
  if (typeof info === 'string') return info
  return isJsonObject(info) ? (Object.keys(info)[0] ?? '') : ''
}

function statusOf(info: unknown): number | undefined {
  if (!isJsonObject(info)) return undefined
  const detail = Object.values(info)[0]
  const status = isJsonObject(detail) ? detail['httpStatusCode'] : undefined
  return typeof status === 'number' ? status : undefined
}

/** `unexpected status 401 Unauthorized: ...`, `exceeded retry limit, last status: 429 Too Many Requests` */
function statusIn(text: string): number | undefined {
  const found = /\bstatus:? (\d{3})\b/.exec(text)?.[1]
  return found === undefined ? undefined : Number(found)
}
