/** Shared by the two bindings of A2A: versions, refusals that have no error code of ours, failed calls. */
import type { MoleculeError } from '../../../errors.ts'
import {
  type A2aMethod,
  errorInfo,
  JSON_RPC_CODES,
  type JsonRpcError,
  type JsonRpcId,
  jsonRpcFailure,
  toJsonRpcError,
  WIRE_ERRORS,
} from '../../../protocol/json-rpc.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import type { HttpAnswer } from '../server/answer.ts'
import { errorHeaders, publicError } from '../server/errors.ts'

/** Versions are compared by major and minor. Absent or empty means 0.3; the method's name decides. */
export function isKnownVersion(header: string | string[] | undefined): boolean {
  return !header || /^(?:0\.3|1\.0)(?:\.\d+)?$/.test(String(header))
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
  try {
    return (await workspaces.get(workspaceId)) === undefined ? { noWorkspace: workspaceId } : { error }
  } catch {
    // The store failed too: the first error is the better answer.
    return { error }
  }
}

export function rpcFailure(
  { id, method, requestId }: { id: JsonRpcId | undefined; method: A2aMethod | undefined; requestId: string },
  failureCause: FailureCause,
): HttpAnswer {
  const { status, headers, error } = a2aFailure(failureCause, requestId)
  // An error that A2A defines is sent with 200, because many clients drop the body of any other status. For a stream
  // the status stays: its client checks the status first, and takes a 200 that is no stream for a broken server.
  const isOk = isA2aCode(error.code) && !(method !== undefined && STREAMING.has(method.name1_0))
  return { status: isOk ? 200 : status, headers, body: jsonRpcFailure(id, error) }
}

const STREAMING: ReadonlySet<string> = new Set(['SendStreamingMessage', 'SubscribeToTask'])

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

const isA2aCode = (code: number): boolean =>
  code <= JSON_RPC_CODES.taskNotFound && code >= JSON_RPC_CODES.versionNotSupported
