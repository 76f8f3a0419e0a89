/**
 * `/workspaces/:id/a2a`: all of A2A. One URL serves JSON-RPC of 1.0 and 0.3, and the method's name tells the version.
 * Below it are the REST binding of 1.0 and the card. It runs directly on Node's server, without the router, because
 * every message takes this path. Admission comes before any answer; a client that disconnects cancels nothing.
 */
import { toMoleculeError } from '../../../errors.ts'
import type { StreamResponse } from '../../../protocol/a2a.ts'
import {
  type A2aMethod,
  type JsonRpcId,
  type JsonRpcRequest,
  jsonRpcFailure,
  jsonRpcSuccess,
  methodOf,
  parseJsonRpc,
} from '../../../protocol/json-rpc.ts'
import { eventToV03 } from '../../../protocol/v03.ts'
import { type HttpExchange, writeAnswer } from '../server/answer.ts'
import {
  A2A_BODY_BYTES_MAX,
  A2A_JSON_VALUES_MAX,
  letOthersRun,
  readBody,
  requireSimple,
  SMALL_BODY_BYTES_MAX,
} from '../server/body.ts'
import { errorAnswer, logFailure } from '../server/errors.ts'
import { findFailureCause, isKnownVersion, refusal, rpcFailure } from './bindings.ts'
import type { A2aAddress, A2aOptions } from './call.ts'
import { CARD_PATH, writeCard } from './card-route.ts'
import { callMethod } from './methods.ts'
import { writeRest } from './rest.ts'
import { writeStream } from './streams.ts'

export function createA2a(options: A2aOptions): (exchange: HttpExchange, address: A2aAddress) => Promise<void> {
  return (exchange, address) => {
    if (address.path === '') return writeRpc(exchange, address.workspaceId, options)
    const isRead = exchange.request.method === 'GET' || exchange.request.method === 'HEAD'
    if (address.path !== CARD_PATH || !isRead) return writeRest(exchange, address, options)
    return writeCard(exchange, address.workspaceId, options).catch((thrown: unknown) => {
      const error = toMoleculeError(thrown)
      logFailure(options.log, error, exchange)
      writeAnswer(exchange, errorAnswer(error, exchange.requestId))
    })
  }
}

/** The A2A address of a request; undefined for a request to another route. */
export function a2aAddress(method: string | undefined, url: string | undefined): A2aAddress | undefined {
  const [, workspaceId, below, query] = /^\/workspaces\/([^/?]{1,200})\/a2a(\/[^?]*)?(?:\?(.*))?$/.exec(url ?? '') ?? []
  if (workspaceId === undefined) return undefined
  const path = below === undefined || below === '/' ? '' : below
  // Only POST is JSON-RPC: the router answers any other method on this URL with 404.
  return path === '' && method !== 'POST' ? undefined : { workspaceId, path, query: query ?? '' }
}

async function writeRpc(exchange: HttpExchange, workspaceId: string, options: A2aOptions): Promise<void> {
  const { request } = exchange
  let rpc: JsonRpcRequest | undefined
  let method: A2aMethod | undefined
  try {
    const identity = await options.auth.identify(request)
    if (!isKnownVersion(request.headers['a2a-version'])) {
      return writeAnswer(exchange, { status: 200, body: jsonRpcFailure(undefined, refusal('versionNotSupported')) })
    }
    const bytes = await readBody(request, A2A_BODY_BYTES_MAX)
    options.auth.countBytes(identity, bytes.length)
    requireSimple(bytes, A2A_JSON_VALUES_MAX)
    const isLarge = bytes.length > SMALL_BODY_BYTES_MAX
    if (isLarge) await letOthersRun()
    const parsed = parseJsonRpc(bytes)
    if (isLarge) await letOthersRun()
    if (!parsed.ok) return writeAnswer(exchange, { status: 400, body: parsed.response })
    rpc = parsed.request
    method = methodOf(rpc.method)
    if (method === undefined) {
      const unknown = refusal('methodNotFound', `A2A has no method "${rpc.method}"`)
      return writeAnswer(exchange, { status: 200, body: jsonRpcFailure(rpc.id, unknown) })
    }
    const result = await callMethod({ rpc, method, workspaceId, identity, exchange, bytes: bytes.length }, options)
    if (isLarge) await letOthersRun()
    if ('value' in result) return writeAnswer(exchange, { status: 200, body: jsonRpcSuccess(rpc.id, result.value) })
    await writeStream(exchange, result.stream, { ...options, identity, form: formOf(rpc.id, method) })
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    logFailure(options.log, error, exchange)
    if (exchange.response.headersSent) return
    const failureCause = await findFailureCause(options.workspaces, workspaceId, error)
    writeAnswer(exchange, rpcFailure({ id: rpc?.id, method, requestId: exchange.requestId }, failureCause))
  }
}

/** Each event of a stream is a response to the call, in the format of its version. */
function formOf(id: JsonRpcId | undefined, { version }: A2aMethod): (event: StreamResponse) => unknown {
  return version === '1.0' ? (event) => jsonRpcSuccess(id, event) : (event) => jsonRpcSuccess(id, eventToV03(event))
}
