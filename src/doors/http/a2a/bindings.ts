/** What the two bindings of A2A have in common: versions, refusals that no error of ours stands for, failed calls. */
import type { Clock } from '../../../clock.ts'
import type { MoleculeError } from '../../../errors.ts'
import type { Log } from '../../../log.ts'
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
import type { HttpAuth } from '../server/auth.ts'
import { errorHeaders, publicError } from '../server/errors.ts'
import type { SseLimits } from '../server/sse.ts'
import type { A2aContext } from './call.ts'

export interface A2aOptions extends A2aContext {
  readonly auth: HttpAuth
  readonly log: Log
  readonly clock: Clock
  readonly limits: SseLimits
}

export interface A2aAddress {
  readonly workspaceId: string
  /** What follows the workspace's A2A URL; empty for the URL itself, which is JSON-RPC. */
  readonly path: string
  readonly query: string
}

/** Versions are agreed on by major and minor; absent or empty means 0.3, and the method's name says the rest. */
export function isKnownVersion(header: string | string[] | undefined): boolean {
  return !header || /^(?:0\.3|1\.0)(?:\.\d+)?$/.test(String(header))
}

type RefusalKind = 'versionNotSupported' | 'methodNotFound' | 'invalidParams'

const REASONS: Readonly<Record<RefusalKind, string>> = {
  versionNotSupported: 'VERSION_NOT_SUPPORTED',
  methodNotFound: 'METHOD_NOT_FOUND',
  invalidParams: 'WORKSPACE_NOT_FOUND',
}

/** Refusals that no error code of ours stands for. */
export function refusal(kind: RefusalKind, message = 'the versions served here are 1.0 and 0.3'): JsonRpcError {
  return { code: JSON_RPC_CODES[kind], message, data: [errorInfo(REASONS[kind])] }
}

/** Why a call failed: the error itself, or that its workspace is not there. */
export type FailureCause = { readonly error: MoleculeError } | { readonly noWorkspace: string }

/** Asked only after something was not found: a message to a known workspace must not pay for it. */
export async function findFailureCause(
  workspaces: Workspaces,
  workspaceId: string,
  error: MoleculeError,
): Promise<FailureCause> {
  if (error.code !== 'not_found') return { error }
  try {
    return (await workspaces.get(workspaceId)) === undefined ? { noWorkspace: workspaceId } : { error }
  } catch {
    // It cannot be told right now; then the error at hand is the better answer.
    return { error }
  }
}

export interface FailedRpcCall {
  readonly id: JsonRpcId | undefined
  readonly method: A2aMethod | undefined
  readonly requestId: string
}

export function rpcFailure({ id, method, requestId }: FailedRpcCall, failureCause: FailureCause): HttpAnswer {
  const { status, headers, error } = a2aFailure(failureCause, requestId)
  // What A2A itself defines is a proper answer, and many clients drop the body of any other status. Whoever opens a
  // stream looks at the status first, and takes a proper answer that is no stream for a broken server.
  const proper = isA2aCode(error.code) && !(method !== undefined && STREAMING.has(method.name1_0))
  return { status: proper ? 200 : status, headers, body: jsonRpcFailure(id, error) }
}

const STREAMING: ReadonlySet<string> = new Set(['SendStreamingMessage', 'SubscribeToTask'])

export interface A2aFailure {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly error: JsonRpcError
}

/** The failure as a caller may see it, before its binding gives it a form. */
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
