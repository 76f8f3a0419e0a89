/**
 * JSON-RPC 2.0 as A2A uses it: parses requests, builds answers, and holds the error codes and the method names of both
 * versions. Invariant: `WIRE_ERRORS` is the only table from our error codes to A2A's wire form.
 */
import type { ErrorCode, MoleculeError } from '../errors.ts'
import { isJsonObject } from './json.ts'
import { JSON_DEPTH_MAX, jsonDepthWithin, jsonRpcRequestSchema, safeParse } from './schemas.ts'

export type JsonRpcId = string | number | null

export interface JsonRpcRequest {
  readonly jsonrpc: '2.0'
  /** Absent in a notification, which is answered too, with the id null. */
  readonly id?: JsonRpcId
  readonly method: string
  readonly params?: unknown
}

/** `google.rpc.ErrorInfo`: programs switch on its `reason`. */
export interface ErrorInfo {
  readonly '@type': 'type.googleapis.com/google.rpc.ErrorInfo'
  readonly reason: string
  readonly domain: 'a2a-protocol.org'
  readonly metadata?: Readonly<Record<string, string>>
}

export interface JsonRpcError {
  readonly code: number
  readonly message: string
  readonly data?: readonly ErrorInfo[]
}

export interface JsonRpcSuccess {
  readonly jsonrpc: '2.0'
  readonly id: JsonRpcId
  readonly result: unknown
}

export interface JsonRpcFailure {
  readonly jsonrpc: '2.0'
  readonly id: JsonRpcId
  readonly error: JsonRpcError
}

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

export type ParsedJsonRpc =
  | { readonly ok: true; readonly request: JsonRpcRequest }
  | { readonly ok: false; readonly response: JsonRpcFailure }

/** Takes a body as text, bytes or parsed JSON. On failure, `response` is ready to be sent. */
export function parseJsonRpc(body: unknown): ParsedJsonRpc {
  let value: unknown
  try {
    value = decode(body)
  } catch {
    // The parser's message quotes the body, which may hold secrets, so it is not sent back.
    return refuseRequest(null, JSON_RPC_CODES.parseError, 'The body is not valid JSON in UTF-8')
  }
  if (Array.isArray(value))
    return refuseRequest(null, JSON_RPC_CODES.invalidRequest, 'A2A takes one request at a time, not a batch')
  const parsed = safeParse(jsonRpcRequestSchema, value)
  const id = readableId(value)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    const place = issue?.path.join('.') || 'The body'
    return refuseRequest(id, JSON_RPC_CODES.invalidRequest, `${place} ${issue?.message}`)
  }
  if (!jsonDepthWithin(value, JSON_DEPTH_MAX)) {
    return refuseRequest(id, JSON_RPC_CODES.invalidRequest, `The body is nested deeper than ${JSON_DEPTH_MAX} levels`)
  }
  return { ok: true, request: value as JsonRpcRequest }
}

export function jsonRpcSuccess(id: JsonRpcId | undefined, result: unknown): JsonRpcSuccess {
  return { jsonrpc: '2.0', id: id ?? null, result }
}

export function jsonRpcFailure(id: JsonRpcId | undefined, error: JsonRpcError): JsonRpcFailure {
  return { jsonrpc: '2.0', id: id ?? null, error }
}

/** A MoleculeError in A2A's form. Only the details in `PUBLIC_DETAILS` are sent. */
export function toJsonRpcError(error: MoleculeError): JsonRpcError {
  const wire = WIRE_ERRORS[error.code]
  const metadata: Record<string, string> = {}
  for (const key of PUBLIC_DETAILS) {
    if (error.details[key] !== undefined) metadata[key] = String(error.details[key])
  }
  return { code: wire.code, message: error.message, data: [errorInfo(wire.reason, metadata)] }
}

export function errorInfo(reason: string, metadata: Readonly<Record<string, string>> = {}): ErrorInfo {
  const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'a2a-protocol.org' } as const
  return Object.keys(metadata).length === 0 ? info : { ...info, metadata }
}

const PUBLIC_DETAILS = ['path', 'retryAfterMs', 'limitBytes', 'taskId'] as const

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

  backend_missing: wireError('turnFailed', 502, 'BACKEND_MISSING'),
  spawn_failed: wireError('turnFailed', 502, 'SPAWN_FAILED'),
  timeout: wireError('turnFailed', 504, 'TIMEOUT'),
  exit: wireError('turnFailed', 502, 'EXIT'),
  empty_response: wireError('turnFailed', 502, 'EMPTY_RESPONSE'),
  no_end: wireError('turnFailed', 502, 'NO_END'),
  rate_limited: wireError('turnFailed', 503, 'RATE_LIMITED'),
  auth_failed: wireError('turnFailed', 502, 'AUTH_FAILED'),
  session_lost: wireError('turnFailed', 502, 'SESSION_LOST'),
  agent_failed: wireError('turnFailed', 502, 'AGENT_FAILED'),
  provider_failed: wireError('turnFailed', 502, 'PROVIDER_FAILED'),
  context_full: wireError('turnFailed', 502, 'CONTEXT_FULL'),
  bad_attachment: wireError('turnFailed', 502, 'BAD_ATTACHMENT'),
  max_turns: wireError('turnFailed', 502, 'MAX_TURNS'),
  worker_lost: wireError('turnFailed', 502, 'WORKER_LOST'),
  expired: wireError('turnFailed', 504, 'EXPIRED'),
  canceled: wireError('turnFailed', 409, 'CANCELED'),
}

export interface A2aMethod {
  readonly version: '1.0' | '0.3'
  /** The method's name in 1.0, which our code switches on. */
  readonly name1_0: string
}

/** The version and 1.0 name of a method; undefined for an unknown name. */
export const methodOf = (name: string): A2aMethod | undefined => METHODS.get(name)

const V03_NAMES: Readonly<Record<string, string>> = {
  'message/send': 'SendMessage',
  'message/stream': 'SendStreamingMessage',
  'tasks/get': 'GetTask',
  'tasks/cancel': 'CancelTask',
  'tasks/resubscribe': 'SubscribeToTask',
  'tasks/pushNotificationConfig/set': 'CreateTaskPushNotificationConfig',
  'tasks/pushNotificationConfig/get': 'GetTaskPushNotificationConfig',
  'tasks/pushNotificationConfig/list': 'ListTaskPushNotificationConfigs',
  'tasks/pushNotificationConfig/delete': 'DeleteTaskPushNotificationConfig',
  'agent/getAuthenticatedExtendedCard': 'GetExtendedAgentCard',
}

const METHODS: ReadonlyMap<string, A2aMethod> = new Map([
  ...Object.entries(V03_NAMES).map(([name, name1_0]): [string, A2aMethod] => [name, { version: '0.3', name1_0 }]),
  // ListTasks is the only method that 0.3 does not have.
  ...[...Object.values(V03_NAMES), 'ListTasks'].map((name): [string, A2aMethod] => [
    name,
    { version: '1.0', name1_0: name },
  ]),
])

const UTF_8 = new TextDecoder('utf-8', { fatal: true })

function decode(body: unknown): unknown {
  if (typeof body === 'string') return JSON.parse(body)
  if (body instanceof Uint8Array) return JSON.parse(UTF_8.decode(body))
  return body
}

/** The id of an invalid request, so that the sender can match the refusal to it. */
function readableId(value: unknown): JsonRpcId {
  const id = isJsonObject(value) ? value['id'] : null
  return typeof id === 'string' || typeof id === 'number' ? id : null
}

function refuseRequest(id: JsonRpcId, code: number, message: string): ParsedJsonRpc {
  const reason = code === JSON_RPC_CODES.parseError ? 'PARSE_ERROR' : 'INVALID_REQUEST'
  return { ok: false, response: jsonRpcFailure(id, { code, message, data: [errorInfo(reason)] }) }
}
