/** What codex complains of, in our words: its own names for errors where it gives them, else its sentences. Pure. */
import { MoleculeError } from '../../errors.ts'
import { isJsonObject } from '../../protocol/json.ts'
import { classifyAgentError } from '../engine/failure/agent-errors.ts'

export interface CodexComplaint {
  readonly message: string
  /** `codexErrorInfo` of the app server. */
  readonly info?: unknown
  readonly nowMs: number
}

export function failureOf({ message, info, nowMs }: CodexComplaint): MoleculeError {
  const text = message || 'codex failed without a word'
  const kind = kindOf(info)
  if (kind === 'contextWindowExceeded') return new MoleculeError('context_full', text)
  const status = statusOf(info) ?? STATUS_OF_KIND[kind] ?? statusIn(text)
  const read = classifyAgentError({ text, status, nowMs })
  if (read !== undefined) return read
  // A 500 is shown as this and nothing else.
  if (/high demand|stream disconnected|connection failed|timed? out/i.test(text)) {
    return new MoleculeError('provider_failed', text, { retryable: true })
  }
  return new MoleculeError('agent_failed', text)
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

/** A word, or an object of one key. */
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
