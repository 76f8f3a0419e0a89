/**
 * Encodes a call to a remote agent in each binding: JSON-RPC of 1.0 and 0.3, and the REST binding of 1.0. Decodes the
 * answer into its result, or into a MoleculeError.
 */
import { MoleculeError } from '../errors.ts'
import type { ProtocolVersion } from '../protocol/envelope.ts'
import { isJsonObject } from '../protocol/json.ts'
import type { TraceContext } from '../protocol/trace-context.ts'
import { JSON_RPC_CODES } from '../protocol/wire-errors.ts'
import { trimEndOf } from '../trim-end.ts'
import type { AgentInterface } from './agent-card.ts'

export interface RemoteAgentCall {
  readonly method: RemoteMethod
  readonly params: (version: ProtocolVersion) => object
  /** The task of the call; a send has none. */
  readonly taskId?: string
  /** The message's extensions. An agent uses an extension only if a header names it too. */
  readonly extensions?: readonly string[] | undefined
  readonly trace?: TraceContext | undefined
}

export type RemoteMethod = keyof typeof METHODS

const METHODS = {
  send: { '1.0': 'SendMessage', '0.3': 'message/send', rest: ['POST', '/message:send'] },
  stream: { '1.0': 'SendStreamingMessage', '0.3': 'message/stream', rest: ['POST', '/message:stream'] },
  get: { '1.0': 'GetTask', '0.3': 'tasks/get', rest: ['GET', '/tasks/{id}'] },
  subscribe: { '1.0': 'SubscribeToTask', '0.3': 'tasks/resubscribe', rest: ['GET', '/tasks/{id}:subscribe'] },
  cancel: { '1.0': 'CancelTask', '0.3': 'tasks/cancel', rest: ['POST', '/tasks/{id}:cancel'] },
} as const satisfies Record<string, Record<ProtocolVersion, string> & { rest: readonly ['GET' | 'POST', string] }>

export interface WireRequest {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly body?: string
}

export function toWireRequest(agentCall: RemoteAgentCall, to: AgentInterface): WireRequest {
  return to.binding === 'HTTP+JSON' ? toRestRequest(agentCall, to) : toJsonRpcRequest(agentCall, to)
}

function toJsonRpcRequest({ method, params }: RemoteAgentCall, { url, version, tenant }: AgentInterface): WireRequest {
  const tenantParams = tenant === undefined ? params(version) : { tenant, ...params(version) }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: METHODS[method][version], params: tenantParams })
  return { url, method: 'POST', body }
}

function toRestRequest(
  { method, params, taskId }: RemoteAgentCall,
  { url, version, tenant }: AgentInterface,
): WireRequest {
  const [http, path] = METHODS[method].rest
  const at = new URL(url)
  const below = path.replace('{id}', encodeURIComponent(taskId ?? ''))
  const under = tenant === undefined ? '' : `/${encodeURIComponent(tenant)}`
  at.pathname = `${trimEndOf(at.pathname, '/')}${under}${below}`
  if (http === 'GET') return { url: at.href, method: http }
  return { url: at.href, method: http, body: JSON.stringify(taskId === undefined ? params(version) : {}) }
}

/** A longer reason of a remote agent is cut. */
export const REASON_CHARACTERS_MAX = 300

/**
 * The result of an answer or of a stream's event. An error of the agent is thrown as a MoleculeError with its reason.
 */
export function resultOf(value: unknown, { binding }: AgentInterface): unknown {
  const { result, error } = (isJsonObject(value) ? value : {}) as { result?: unknown; error?: RemoteError | null }
  if (error !== undefined && error !== null)
    throw refusalOf(binding === 'HTTP+JSON' ? restErrorToJsonRpc(error) : error)
  return binding === 'HTTP+JSON' ? value : result
}

interface RemoteError {
  readonly code?: unknown
  readonly message?: unknown
  readonly details?: unknown
}

const RPC_CODES_OF_REASONS: Readonly<Record<string, number>> = {
  TASK_NOT_FOUND: JSON_RPC_CODES.taskNotFound,
  TASK_NOT_CANCELABLE: JSON_RPC_CODES.taskNotCancelable,
  UNSUPPORTED_OPERATION: JSON_RPC_CODES.unsupportedOperation,
  PUSH_NOTIFICATION_NOT_SUPPORTED: JSON_RPC_CODES.pushNotificationNotSupported,
}

const RPC_CODES_OF_STATUSES: Readonly<Record<number, number>> = {
  401: JSON_RPC_CODES.unauthenticated,
  404: JSON_RPC_CODES.methodNotFound,
  405: JSON_RPC_CODES.methodNotFound,
  429: JSON_RPC_CODES.queueFull,
  500: JSON_RPC_CODES.internalError,
  502: JSON_RPC_CODES.internalError,
  503: JSON_RPC_CODES.storeUnavailable,
  504: JSON_RPC_CODES.internalError,
}

/** Maps a `google.rpc.Status` to its JSON-RPC error: by its reason, else by its HTTP status. */
function restErrorToJsonRpc({ code, message, details }: RemoteError): RemoteError {
  const reasons = (Array.isArray(details) ? details : []).map((each) =>
    isJsonObject(each) ? each['reason'] : undefined,
  )
  const known = reasons.find((reason) => typeof reason === 'string' && Object.hasOwn(RPC_CODES_OF_REASONS, reason))
  if (known !== undefined) return { code: RPC_CODES_OF_REASONS[known as string], message }
  return { code: RPC_CODES_OF_STATUSES[Number(code)] ?? code, message }
}

function refusalOf({ code, message: reason }: RemoteError): MoleculeError {
  const message = `the remote agent refused: ${String(reason ?? 'no reason given').slice(0, REASON_CHARACTERS_MAX)}`
  const details = { rpcCode: code }
  switch (code) {
    case JSON_RPC_CODES.taskNotFound:
      return new MoleculeError('not_found', message, { details })
    case JSON_RPC_CODES.unsupportedOperation:
    case JSON_RPC_CODES.methodNotFound:
    case JSON_RPC_CODES.pushNotificationNotSupported:
      return new MoleculeError('unsupported_operation', message, { details })
    case JSON_RPC_CODES.taskNotCancelable:
      return new MoleculeError('not_cancelable', message, { details })
    case JSON_RPC_CODES.unauthenticated:
      return new MoleculeError('auth_failed', message, { details })
    case JSON_RPC_CODES.queueFull:
    case JSON_RPC_CODES.tooManyRequests:
      return new MoleculeError('rate_limited', message, { details, retryable: true })
    default:
      return new MoleculeError('agent_failed', message, {
        details,
        retryable: code === JSON_RPC_CODES.internalError || code === JSON_RPC_CODES.storeUnavailable,
      })
  }
}
