/** Errors in the REST binding of A2A: a `google.rpc.Status`, made from the error that JSON-RPC would send. */
import { type ErrorInfo, JSON_RPC_CODES, type JsonRpcError } from './json-rpc.ts'

export interface RestError {
  readonly error: {
    /** The HTTP status. */
    readonly code: number
    /** The name of the gRPC code. */
    readonly status: string
    readonly message: string
    readonly details: readonly ErrorInfo[]
  }
}

export function restError(httpStatus: number, { code, message, data = [] }: JsonRpcError): RestError {
  const status = FAILED_PRECONDITION_CODES.has(code)
    ? 'FAILED_PRECONDITION'
    : (GRPC_STATUS_NAMES[httpStatus] ?? 'UNKNOWN')
  return { error: { code: httpStatus, status, message, details: data } }
}

/** The request is valid, but not in this state of the task. */
const FAILED_PRECONDITION_CODES: ReadonlySet<number> = new Set([
  JSON_RPC_CODES.taskNotCancelable,
  JSON_RPC_CODES.unsupportedOperation,
  JSON_RPC_CODES.extendedCardNotConfigured,
])

const GRPC_STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  413: 'RESOURCE_EXHAUSTED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  502: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}
