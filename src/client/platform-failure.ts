/**
 * Turns a failed call to the platform into a MoleculeError. The platform's code and message are kept. The HTTP status
 * decides `retryable`, because a proxy in between does not know our codes. A JSON-RPC error comes with status 200; the
 * status that its code has on other routes decides.
 */
import { type ErrorCode, MoleculeError } from '../errors.ts'
import { WIRE_ERRORS } from '../protocol/wire-errors.ts'

/** For an answer that is no success: an error of the platform, of A2A, or the page of a proxy. */
export function failureFromAnswer(answer: Response, text: string): MoleculeError {
  const { status } = answer
  const error = readErrorBody(text)
  const message = typeof error?.message === 'string' ? error.message : `the answer is HTTP ${status} without a reason`
  return new MoleculeError(codeOf(error) ?? codeOfStatus(status), withHint(message, error?.hint), {
    retryable: RETRYABLE_STATUSES.has(status),
    details: {
      status,
      requestId: answer.headers.get('x-request-id'),
      ...retryAfter(answer),
      ...(Array.isArray(error?.problems) && { problems: error.problems }),
    },
  })
}

/** For the `error` of a JSON-RPC answer. */
export function failureFromRpc(error: unknown): MoleculeError {
  const wire = (error ?? {}) as PlatformErrorBody
  const code = codeOf(wire) ?? 'internal'
  const retryAfterMs = Number(infoOf(wire)?.metadata?.['retryAfterMs'] ?? Number.NaN)
  return new MoleculeError(code, String(wire.message ?? 'the platform sent an empty answer'), {
    retryable: RETRYABLE_STATUSES.has(WIRE_ERRORS[code].status),
    details: retryAfterMs >= 0 ? { retryAfterMs } : {},
  })
}

/** For a missing answer. It is always retryable, because every call of ours may be repeated. */
export function platformUnreachable(url: string, cause: unknown, timedOut: boolean): MoleculeError {
  const { code, cause: below } = cause as { code?: string; cause?: { code?: string } }
  const reason = below?.code ?? (cause as Error).message
  const isCertificate = CERTIFICATE_CODES.test(below?.code ?? code ?? '')
  const advice = isCertificate
    ? 'its certificate is not trusted on this machine: name the certificate of its CA in NODE_EXTRA_CA_CERTS'
    : 'start it there with "molecule up"'
  const message = timedOut
    ? `the platform at ${url} did not answer in time`
    : `the platform at ${url} cannot be reached (${reason}); ${advice}`
  return new MoleculeError('timeout', message, { retryable: true, cause, details: { url } })
}

/** Of TLS, such as DEPTH_ZERO_SELF_SIGNED_CERT: the platform runs, and a start would change nothing. */
const CERTIFICATE_CODES = /CERT|VERIFY_LEAF_SIGNATURE/

interface PlatformErrorBody {
  readonly code?: unknown
  readonly message?: unknown
  readonly hint?: unknown
  readonly problems?: readonly FileProblem[]
  readonly data?: readonly PlatformErrorInfo[]
}

/** What is wrong in a file, and where; counted from 1. */
export interface FileProblem {
  readonly line: number
  readonly column: number
  readonly message: string
}

interface PlatformErrorInfo {
  readonly reason?: unknown
  readonly metadata?: Readonly<Record<string, unknown>>
}

const infoOf = (error: PlatformErrorBody | undefined): PlatformErrorInfo | undefined =>
  Array.isArray(error?.data) ? error.data[0] : undefined

/** Without 500, which the platform answers only for a bug. A bridge retries it all the same (platform-connection.ts). */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504])

function readErrorBody(text: string): PlatformErrorBody | undefined {
  try {
    const answer = JSON.parse(text) as { error?: PlatformErrorBody; reason?: unknown } | null
    // `/ready` sends no error but a `reason`.
    return answer?.error ?? (typeof answer?.reason === 'string' ? { message: answer.reason } : undefined)
  } catch {
    // The page of a proxy; only its status is usable.
    return undefined
  }
}

function codeOf(error: PlatformErrorBody | undefined): ErrorCode | undefined {
  if (typeof error?.code === 'string' && Object.hasOwn(WIRE_ERRORS, error.code)) return error.code as ErrorCode
  const reason = String(infoOf(error)?.reason)
  const known = Object.entries(WIRE_ERRORS).find(([, wire]) => wire.reason === reason)
  return (known?.[0] as ErrorCode | undefined) ?? CODES_OF_BINDING_REASONS.get(reason)
}

/** Reasons of the JSON-RPC binding itself, which have no error code of ours. */
const CODES_OF_BINDING_REASONS: ReadonlyMap<string, ErrorCode> = new Map([
  ['WORKSPACE_NOT_FOUND', 'not_found'],
  ['PARSE_ERROR', 'invalid_request'],
  ['INVALID_REQUEST', 'invalid_request'],
  ['METHOD_NOT_FOUND', 'unsupported_operation'],
  ['VERSION_NOT_SUPPORTED', 'unsupported_operation'],
])

function codeOfStatus(status: number): ErrorCode {
  const known = Object.entries(WIRE_ERRORS).find(([, wire]) => wire.status === status)
  return (known?.[0] as ErrorCode | undefined) ?? 'internal'
}

function withHint(message: string, hint: unknown): string {
  return typeof hint === 'string' ? `${message}: ${hint}` : message
}

/** Reads seconds, as the platform sends them. A date, which a proxy may send, is ignored. */
function retryAfter(answer: Response): { retryAfterMs?: number } {
  const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN)
  return seconds >= 0 ? { retryAfterMs: seconds * 1000 } : {}
}
