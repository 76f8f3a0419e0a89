/**
 * The codes of JSON-RPC errors, and the only table from our error codes to A2A's wire form. It imports no schema, because
 * the client of the web page reads it too.
 */
import type { ErrorCode } from '../errors.ts'

export const JSON_RPC_CODES = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  taskNotFound: -32001,
  taskNotCancelable: -32002,
  pushNotificationNotSupported: -32003,
  unsupportedOperation: -32004,
  contentTypeNotSupported: -32005,
  invalidAgentResponse: -32006,
  extendedCardNotConfigured: -32007,
  extensionSupportRequired: -32008,
  versionNotSupported: -32009,
  // Our own, in JSON-RPC's range for servers and away from the codes that A2A uses or may use next.
  turnFailed: -32050,
  unauthenticated: -32051,
  forbidden: -32052,
  queueFull: -32053,
  tooLarge: -32054,
  storeUnavailable: -32055,
  staleLease: -32056,
  inUse: -32057,
  tooManyRequests: -32058,
} as const

export interface WireError {
  /** JSON-RPC. */
  readonly code: number
  /** HTTP status of the REST binding. */
  readonly status: number
  readonly reason: string
}

const wireError = (code: keyof typeof JSON_RPC_CODES, status: number, reason: string): WireError => ({
  code: JSON_RPC_CODES[code],
  status,
  reason,
})

/**
 * Every error code in A2A. The lower half are ends of a turn, which a failed task reports, normally not a failed call.
 */
export const WIRE_ERRORS: Readonly<Record<ErrorCode, WireError>> = {
  invalid_request: wireError('invalidParams', 400, 'INVALID_PARAMS'),
  unauthenticated: wireError('unauthenticated', 401, 'UNAUTHENTICATED'),
  forbidden: wireError('forbidden', 403, 'FORBIDDEN'),
  not_found: wireError('taskNotFound', 404, 'TASK_NOT_FOUND'),
  idempotency_conflict: wireError('invalidParams', 409, 'IDEMPOTENCY_CONFLICT'),
  unsupported_operation: wireError('unsupportedOperation', 400, 'UNSUPPORTED_OPERATION'),
  not_cancelable: wireError('taskNotCancelable', 400, 'TASK_NOT_CANCELABLE'),
  queue_full: wireError('queueFull', 429, 'QUEUE_FULL'),
  too_many_requests: wireError('tooManyRequests', 429, 'TOO_MANY_REQUESTS'),
  pruned: wireError('invalidParams', 410, 'PRUNED'),
  too_large: wireError('tooLarge', 413, 'TOO_LARGE'),
  stale_lease: wireError('staleLease', 409, 'STALE_LEASE'),
  store_unavailable: wireError('storeUnavailable', 503, 'STORE_UNAVAILABLE'),
  store_damaged: wireError('storeUnavailable', 503, 'STORE_DAMAGED'),
  disk_low: wireError('storeUnavailable', 507, 'DISK_LOW'),
  in_use: wireError('inUse', 409, 'IN_USE'),
  bad_config: wireError('invalidParams', 400, 'BAD_CONFIG'),
  internal: wireError('internalError', 500, 'INTERNAL'),
  reply_damaged: wireError('internalError', 500, 'REPLY_DAMAGED'),

  backend_missing: wireError('turnFailed', 502, 'BACKEND_MISSING'),
  spawn_failed: wireError('turnFailed', 502, 'SPAWN_FAILED'),
  timeout: wireError('turnFailed', 504, 'TIMEOUT'),
  exit: wireError('turnFailed', 502, 'EXIT'),
  empty_response: wireError('turnFailed', 502, 'EMPTY_RESPONSE'),
  no_end: wireError('turnFailed', 502, 'NO_END'),
  rate_limited: wireError('turnFailed', 503, 'RATE_LIMITED'),
  quota_exhausted: wireError('turnFailed', 503, 'QUOTA_EXHAUSTED'),
  auth_failed: wireError('turnFailed', 502, 'AUTH_FAILED'),
  session_lost: wireError('turnFailed', 502, 'SESSION_LOST'),
  agent_failed: wireError('turnFailed', 502, 'AGENT_FAILED'),
  unreadable_output: wireError('turnFailed', 502, 'UNREADABLE_OUTPUT'),
  overloaded: wireError('turnFailed', 503, 'OVERLOADED'),
  provider_unreachable: wireError('turnFailed', 502, 'PROVIDER_UNREACHABLE'),
  unknown_model: wireError('turnFailed', 502, 'UNKNOWN_MODEL'),
  bad_request: wireError('turnFailed', 502, 'BAD_REQUEST'),
  provider_failed: wireError('turnFailed', 502, 'PROVIDER_FAILED'),
  context_full: wireError('turnFailed', 502, 'CONTEXT_FULL'),
  bad_attachment: wireError('turnFailed', 502, 'BAD_ATTACHMENT'),
  max_turns: wireError('turnFailed', 502, 'MAX_TURNS'),
  vetoed: wireError('turnFailed', 403, 'VETOED'),
  worker_lost: wireError('turnFailed', 502, 'WORKER_LOST'),
  expired: wireError('turnFailed', 504, 'EXPIRED'),
  canceled: wireError('turnFailed', 409, 'CANCELED'),
}
