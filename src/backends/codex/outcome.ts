/** How a turn of codex ends: its last events, and the errors of codex as ours. Pure. */
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { isJsonObject } from '../../protocol/json.ts'
import { classifyAgentError } from '../engine/failure/agent-errors.ts'
import { RpcError } from '../engine/json-rpc.ts'
import type { ProgressEvent } from '../engine/reply-builder.ts'
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
}

/** The last events of a turn: the note on denied tools, the session to keep, the tokens of the turn; and the end. */
export function finishTurn(
  reply: CodexReply,
  { thread, totals, instructions, before }: FinishedTurn,
): { readonly last: readonly ProgressEvent[]; readonly end: EndEvent } {
  const { last, end } = reply.finish()
  const events = [...last]
  if (thread !== undefined) {
    events.push({ type: 'session', token: writeSession({ thread, totals: totals ?? before, instructions }) })
  }
  // Equal totals mean that codex reported no tokens for this turn.
  if (totals !== undefined && totals.input !== before.input) {
    events.push({ type: 'usage', ...usedSince(before, totals) })
  }
  return { last: events, end }
}

/** An error that codex reported. `info`: `codexErrorInfo` of the app server. */
export function failureOf(
  { message, info }: { readonly message: string; readonly info?: unknown },
  nowMs: number,
): MoleculeError {
  const text = message || 'codex failed without a message'
  const kind = kindOf(info)
  if (kind === 'contextWindowExceeded') return new MoleculeError('context_full', text)
  const status = statusOf(info) ?? STATUS_OF_KIND[kind] ?? statusIn(text)
  const classified = classifyAgentError({ text, status, nowMs })
  if (classified !== undefined) return classified
  // Codex shows a status of 500 as one of these sentences, without the number.
  if (/high demand|stream disconnected|connection failed|timed? out/i.test(text)) {
    return new MoleculeError('provider_failed', text, { retryable: true })
  }
  return new MoleculeError('agent_failed', text)
}

/** An error that the app server answered a request with, or any other. */
export function requestError(thrown: unknown, nowMs: number): MoleculeError {
  if (!(thrown instanceof RpcError)) return toMoleculeError(thrown)
  return classifyAgentError({ text: thrown.message, nowMs }) ?? new MoleculeError('agent_failed', thrown.message)
}

const STATUS_OF_KIND: Readonly<Record<string, number>> = {
  usageLimitExceeded: 429,
  rateLimitExceeded: 429,
  serverOverloaded: 529,
  policyCapacityUnavailable: 529,
  flexUnavailable: 529,
  unauthorized: 401,
  modelNotFound: 404,
  badRequest: 400,
  internalServerError: 500,
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
