/**
 * JSON-RPC 2.0 as A2A uses it: parses requests, builds answers, and holds the method names of both versions. The error
 * codes are in `wire-errors.ts`.
 */
import type { MoleculeError } from '../errors.ts'
import { isJsonObject } from './json.ts'
import { JSON_DEPTH_MAX, jsonDepthWithin, jsonRpcRequestSchema, safeParse } from './schemas.ts'
import { JSON_RPC_CODES, WIRE_ERRORS } from './wire-errors.ts'

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
    return refuseRequest(null, { code: JSON_RPC_CODES.parseError, message: 'The body is not valid JSON in UTF-8' })
  }
  if (Array.isArray(value)) return refuseRequest(null, { message: 'A2A takes one request at a time, not a batch' })
  const parsed = safeParse(jsonRpcRequestSchema, value)
  const id = readableId(value)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    const path = issue?.path.join('.') ?? ''
    return refuseRequest(id, { message: `${path || 'The body'} ${issue?.message}`, path })
  }
  if (!jsonDepthWithin(value, JSON_DEPTH_MAX)) {
    return refuseRequest(id, { message: `The body is nested deeper than ${JSON_DEPTH_MAX} levels` })
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

/** The names of all methods, in both versions. */
export const METHOD_NAMES: readonly string[] = [...METHODS.keys()]

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

interface RequestProblem {
  /** Default: the body is JSON, but no request. */
  readonly code?: number
  readonly message: string
  /** The wrong field, if it is one. */
  readonly path?: string
}

function refuseRequest(
  id: JsonRpcId,
  { code = JSON_RPC_CODES.invalidRequest, message, path = '' }: RequestProblem,
): ParsedJsonRpc {
  const reason = code === JSON_RPC_CODES.parseError ? 'PARSE_ERROR' : 'INVALID_REQUEST'
  const data = [errorInfo(reason, path === '' ? {} : { path })]
  return { ok: false, response: jsonRpcFailure(id, { code, message, data }) }
}
