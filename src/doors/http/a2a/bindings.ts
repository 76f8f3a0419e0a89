/** Shared by the bindings of A2A: versions, refusals that have no error code of ours, failed calls. */
import type { MoleculeError } from '../../../errors.ts'
import { isWorkspaceId } from '../../../ids.ts'
import { errorInfo, type JsonRpcError, toJsonRpcError } from '../../../protocol/json-rpc.ts'
import { JSON_RPC_CODES, WIRE_ERRORS } from '../../../protocol/wire-errors.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import { errorHeaders, publicError } from '../server/errors.ts'

/** Versions are compared by major and minor. Absent or empty means 0.3; the method's name decides. */
export function isKnownVersion(header: string | string[] | undefined): boolean {
  return !header || /^(?:0\.3|1\.0)(?:\.\d+)?$/.test(String(header))
}

/** For bindings that 0.3 does not have here: REST and gRPC. A caller that names no version means 1.0. */
export function isVersion1(header: string | string[] | undefined): boolean {
  return isKnownVersion(header) && !String(header ?? '').startsWith('0')
}

type RefusalKind = 'versionNotSupported' | 'methodNotFound' | 'invalidParams'

const REASONS: Readonly<Record<RefusalKind, string>> = {
  versionNotSupported: 'VERSION_NOT_SUPPORTED',
  methodNotFound: 'METHOD_NOT_FOUND',
  invalidParams: 'WORKSPACE_NOT_FOUND',
}

/** Refusals that have no error code of ours. */
export function refusal(kind: RefusalKind, message = 'the versions served here are 1.0 and 0.3'): JsonRpcError {
  return { code: JSON_RPC_CODES[kind], message, data: [errorInfo(REASONS[kind])] }
}

/** Why a call failed: the error itself, or that its workspace does not exist. */
export type FailureCause = { readonly error: MoleculeError } | { readonly noWorkspace: string }

/** Looks up the workspace only after `not_found`: a message to an existing workspace must not pay for the query. */
export async function findFailureCause(
  workspaces: Workspaces,
  workspaceId: string,
  error: MoleculeError,
): Promise<FailureCause> {
  if (error.code !== 'not_found') return { error }
  // A name was looked up before the call; that lookup names the workspace in its error.
  if (!isWorkspaceId(workspaceId))
    return error.details['workspace'] === undefined ? { error } : { noWorkspace: workspaceId }
  try {
    return (await workspaces.get(workspaceId)) === undefined ? { noWorkspace: workspaceId } : { error }
  } catch {
    // The store failed too: the first error is the better answer.
    return { error }
  }
}

/**
 * Statuses of HTTP itself, which proxies and clients act on: no token, body too large, slow down, store unavailable,
 * disk full. Every other error over JSON-RPC is sent with 200, because many clients drop the body of any other status.
 */
const KEPT_STATUSES: ReadonlySet<number> = new Set([401, 413, 429, 503, 507])

/** The HTTP status of a failed JSON-RPC call. `isDenied`: the token may not call this route, or not this method. */
export function rpcStatus({ status }: A2aFailure, isDenied: boolean): number {
  return KEPT_STATUSES.has(status) || (status === 403 && isDenied) ? status : 200
}

export interface A2aFailure {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly error: JsonRpcError
}

/** The failure as a caller may see it, before its binding formats it. */
export function a2aFailure(failureCause: FailureCause, requestId: string): A2aFailure {
  if ('noWorkspace' in failureCause) {
    const error = refusal('invalidParams', `there is no workspace ${failureCause.noWorkspace}`)
    return { status: 404, headers: {}, error }
  }
  const shown = publicError(failureCause.error, requestId)
  return { status: WIRE_ERRORS[shown.code].status, headers: errorHeaders(shown), error: toJsonRpcError(shown) }
}

/** The name of the gRPC status of an error, from its status over HTTP and its code over JSON-RPC. */
export function grpcStatusName(httpStatus: number, code: number): string {
  return FAILED_PRECONDITION_CODES.has(code) ? 'FAILED_PRECONDITION' : (GRPC_STATUS_NAMES[httpStatus] ?? 'UNKNOWN')
}

/** The request is valid, but not in this state of the task, or not for this server. */
const FAILED_PRECONDITION_CODES: ReadonlySet<number> = new Set([
  JSON_RPC_CODES.taskNotCancelable,
  JSON_RPC_CODES.pushNotificationNotSupported,
  JSON_RPC_CODES.unsupportedOperation,
  JSON_RPC_CODES.extendedCardNotConfigured,
  JSON_RPC_CODES.extensionSupportRequired,
  JSON_RPC_CODES.versionNotSupported,
])

const GRPC_STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  410: 'OUT_OF_RANGE',
  413: 'RESOURCE_EXHAUSTED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  502: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
  507: 'RESOURCE_EXHAUSTED',
}
