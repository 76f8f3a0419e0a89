/**
 * What went wrong with a call to the platform, as an error of ours. The platform's code and words are kept; whether
 * trying again can help is told from the HTTP status, because a proxy in between knows no codes of ours.
 */
import { type ErrorCode, MoleculeError } from '../errors.ts'
import { WIRE_ERRORS } from '../protocol/json-rpc.ts'

/** From an answer that is no success: the platform's own error, A2A's, or whatever a proxy says. */
export function failureFromAnswer(answer: Response, text: string): MoleculeError {
  const { status } = answer
  const error = readErrorBody(text)
  const message = typeof error?.message === 'string' ? error.message : `the answer was HTTP ${status} without a reason`
  return new MoleculeError(codeOf(error) ?? codeOfStatus(status), withHint(message, error?.hint), {
    retryable: RETRYABLE_STATUSES.has(status),
    details: { status, requestId: answer.headers.get('x-request-id'), ...retryAfter(answer) },
  })
}

/** From the `error` of a JSON-RPC answer. */
export function failureFromRpc(error: unknown): MoleculeError {
  const wire = (error ?? {}) as PlatformErrorBody
  return new MoleculeError(codeOf(wire) ?? 'internal', String(wire.message ?? 'the platform answered with nothing'))
}

/** No answer at all. Everything that we send may be sent again, so this is always worth another try. */
export function platformUnreachable(url: string, cause: unknown, timedOut: boolean): MoleculeError {
  const reason = (cause as { cause?: { code?: string } }).cause?.code ?? (cause as Error).message
  const message = timedOut
    ? `the platform at ${url} did not answer in time`
    : `the platform at ${url} cannot be reached (${reason}); is "molecule up" running there?`
  return new MoleculeError('timeout', message, { retryable: true, cause, details: { url } })
}

interface PlatformErrorBody {
  readonly code?: unknown
  readonly message?: unknown
  readonly hint?: unknown
  readonly data?: readonly { readonly reason?: unknown }[]
}

const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504])

function readErrorBody(text: string): PlatformErrorBody | undefined {
  try {
    const answer = JSON.parse(text) as { error?: PlatformErrorBody; reason?: unknown } | null
    // `/ready` has no error of ours: it says in words why it takes no work.
    return answer?.error ?? (typeof answer?.reason === 'string' ? { message: answer.reason } : undefined)
  } catch {
    // Not from the platform: a proxy's page. The status says all there is.
    return undefined
  }
}

function codeOf(error: PlatformErrorBody | undefined): ErrorCode | undefined {
  if (typeof error?.code === 'string' && Object.hasOwn(WIRE_ERRORS, error.code)) return error.code as ErrorCode
  const reason = Array.isArray(error?.data) ? error.data[0]?.reason : undefined
  const known = Object.entries(WIRE_ERRORS).find(([, wire]) => wire.reason === reason)
  return known?.[0] as ErrorCode | undefined
}

function codeOfStatus(status: number): ErrorCode {
  const known = Object.entries(WIRE_ERRORS).find(([, wire]) => wire.status === status)
  return (known?.[0] as ErrorCode | undefined) ?? 'internal'
}

function withHint(message: string, hint: unknown): string {
  return typeof hint === 'string' ? `${message}: ${hint}` : message
}

/** Seconds are what the platform sends; a date, which a proxy may send, is passed over. */
function retryAfter(answer: Response): { retryAfterMs?: number } {
  const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN)
  return seconds >= 0 ? { retryAfterMs: seconds * 1000 } : {}
}
