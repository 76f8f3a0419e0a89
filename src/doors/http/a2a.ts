/**
 * `POST /workspaces/:id/a2a`: A2A JSON-RPC of 1.0 and 0.3 on one URL, told apart by the method's name. It stands right
 * on Node's server, without a framework, because this is the path of every message. Admission comes before any answer;
 * a client that goes away cancels nothing, it only stops waiting.
 */
import { type MoleculeError, toMoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import {
  errorInfo,
  failure,
  JSON_RPC_CODES,
  type JsonRpcFailure,
  type JsonRpcId,
  methodOf,
  parseJsonRpc,
  success,
  toJsonRpcError,
  WIRE_ERRORS,
} from '../../protocol/json-rpc.ts'
import type { Workspaces } from '../../workspaces/workspace.ts'
import { type A2aDesk, callMethod } from './a2a-methods.ts'
import { type Answer, type Exchange, writeAnswer } from './answer.ts'
import type { Auth } from './auth.ts'
import { A2A_BODY_BYTES_MAX, readBody, requireShallow } from './body.ts'
import { errorHeaders, logFailure, publicError } from './errors.ts'

export interface A2aOptions extends A2aDesk {
  readonly workspaces: Workspaces
  readonly auth: Auth
  readonly log: Log
}

export interface A2aExchange extends Exchange {
  readonly workspaceId: string
}

export function createA2a(options: A2aOptions): (exchange: A2aExchange) => Promise<void> {
  return async (exchange) => writeAnswer(exchange, await answer(exchange, options))
}

/** The workspace that a URL is the A2A address of; undefined for every other URL. */
export function a2aWorkspaceId(url: string | undefined): string | undefined {
  return /^\/workspaces\/([^/?]{1,200})\/a2a\/?(?:\?|$)/.exec(url ?? '')?.[1]
}

async function answer(exchange: A2aExchange, options: A2aOptions): Promise<Answer> {
  const { request, response, workspaceId } = exchange
  let id: JsonRpcId | undefined
  try {
    const identity = await options.auth.identify(request)
    if (!isKnownVersion(request.headers['a2a-version'])) {
      return { status: 200, body: refusal(id, 'versionNotSupported', 'the versions served here are 1.0 and 0.3') }
    }
    const bytes = await readBody(request, A2A_BODY_BYTES_MAX)
    requireShallow(bytes)
    const parsed = parseJsonRpc(bytes)
    if (!parsed.ok) return { status: 400, body: parsed.response }
    const rpc = parsed.request
    id = rpc.id
    const method = methodOf(rpc.method)
    if (method === undefined) {
      return { status: 200, body: refusal(id, 'methodNotFound', `A2A has no method "${rpc.method}"`) }
    }
    const givenKey = request.headers['idempotency-key']?.toString()
    const result = await callMethod({ rpc, method, workspaceId, identity, givenKey, response }, options)
    return { status: 200, body: success(id, result) }
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    logFailure(options.log, error, exchange)
    if (error.code === 'not_found' && !(await isThere(options.workspaces, workspaceId))) {
      return { status: 404, body: refusal(id, 'invalidParams', `there is no workspace ${workspaceId}`) }
    }
    return failed(id, error, exchange.requestId)
  }
}

function failed(id: JsonRpcId | undefined, error: MoleculeError, requestId: string): Answer {
  const shown = publicError(error, requestId)
  const { code, status } = WIRE_ERRORS[shown.code]
  return {
    // What A2A itself defines is a proper answer; many clients drop the body of any other status.
    status: isA2aCode(code) ? 200 : status,
    headers: errorHeaders(shown),
    body: failure(id, toJsonRpcError(shown)),
  }
}

const isA2aCode = (code: number): boolean =>
  code <= JSON_RPC_CODES.taskNotFound && code >= JSON_RPC_CODES.versionNotSupported

type Refusal = 'versionNotSupported' | 'methodNotFound' | 'invalidParams'

const REASONS: Readonly<Record<Refusal, string>> = {
  versionNotSupported: 'VERSION_NOT_SUPPORTED',
  methodNotFound: 'METHOD_NOT_FOUND',
  invalidParams: 'WORKSPACE_NOT_FOUND',
}

/** Refusals that no error code of ours stands for. */
function refusal(id: JsonRpcId | undefined, kind: Refusal, message: string): JsonRpcFailure {
  return failure(id, { code: JSON_RPC_CODES[kind], message, data: [errorInfo(REASONS[kind])] })
}

/** Versions are agreed on by major and minor; absent or empty means 0.3, and the method's name says the rest. */
function isKnownVersion(header: string | string[] | undefined): boolean {
  return !header || /^(?:0\.3|1\.0)(?:\.\d+)?$/.test(String(header))
}

/** Asked only after something was not found: a message to a known workspace must not pay for it. */
async function isThere(workspaces: Workspaces, id: string): Promise<boolean> {
  try {
    return (await workspaces.get(id)) !== undefined
  } catch {
    // It cannot be told right now; then the error at hand is the better answer.
    return true
  }
}
