/**
 * `/workspaces/:id/a2a`: all of A2A. One URL serves JSON-RPC of 1.0 and 0.3, and the method's name tells the version.
 * Below it are the REST binding of 1.0 and the card. It runs directly on Node's server, without the router, because
 * every message takes this path. Admission comes before any answer; a client that disconnects cancels nothing.
 */
import { toMoleculeError } from '../../../errors.ts'
import { isWorkspaceId } from '../../../ids.ts'
import type { StreamResponse } from '../../../protocol/a2a.ts'
import { withCamelCase } from '../../../protocol/field-names.ts'
import {
  type A2aMethod,
  type JsonRpcFailure,
  type JsonRpcId,
  type JsonRpcRequest,
  jsonRpcFailure,
  jsonRpcSuccess,
  methodOf,
  parseJsonRpc,
} from '../../../protocol/json-rpc.ts'
import { A2A_BODY_BYTES_MAX } from '../../../protocol/schemas.ts'
import { eventToV03 } from '../../../protocol/v03/v03.ts'
import { type HttpExchange, writeAnswer } from '../server/answer.ts'
import { A2A_JSON_VALUES_MAX, letOthersRun, readBody, requireSimple, SMALL_BODY_BYTES_MAX } from '../server/body.ts'
import { errorAnswer, logFailure } from '../server/errors.ts'
import { writeOnlyEvent } from '../server/sse.ts'
import { a2aFailure, findFailureCause, isKnownVersion, refusal, rpcStatus } from './bindings.ts'
import type { A2aAddress, A2aOptions } from './call.ts'
import { CARD_PATHS, writeCard } from './card-route.ts'
import { authorizeCall, isStreaming, runMethod, withWorkspaceId } from './methods.ts'
import { writeRest } from './rest.ts'
import { type TaskStream, writeStream } from './streams.ts'

export function createA2a(options: A2aOptions): (exchange: HttpExchange, address: A2aAddress) => Promise<void> {
  return (exchange, address) => {
    if (address.path === '') return writeRpc(exchange, address.workspaceId, options)
    const isRead = exchange.request.method === 'GET' || exchange.request.method === 'HEAD'
    if (!CARD_PATHS.includes(address.path) || !isRead) return writeRest(exchange, address, options)
    return writeCard(exchange, address.workspaceId, options).catch((thrown: unknown) => {
      const error = toMoleculeError(thrown)
      logFailure(options.log, error, exchange)
      writeAnswer(exchange, errorAnswer(error, exchange.requestId))
    })
  }
}

/** The A2A address of a request; undefined for a request to another route. A slash at the end makes no difference. */
export function a2aAddress(method: string | undefined, url: string | undefined): A2aAddress | undefined {
  const [, workspaceId, below, query] =
    /^\/workspaces\/([^/?]{1,1000})\/a2a(\/[^?]*)?(?:\?(.*))?$/.exec(url ?? '') ?? []
  if (workspaceId === undefined) return undefined
  const path = below?.replace(/\/$/, '') ?? ''
  // Only POST is JSON-RPC: the router answers any other method on this URL with 404.
  if (path === '' && method !== 'POST') return undefined
  return { workspaceId: workspaceId.includes('%') ? decodeName(workspaceId) : workspaceId, path, query: query ?? '' }
}

/** A name that is not valid percent-encoded UTF-8 stays as it is; no workspace has it. */
function decodeName(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return encoded
  }
}

async function writeRpc(exchange: HttpExchange, workspaceId: string, options: A2aOptions): Promise<void> {
  const { request } = exchange
  let rpc: JsonRpcRequest | undefined
  let method: A2aMethod | undefined
  let isDenied = true
  try {
    const identity = await options.auth.identify(request)
    const bytes = await readBody(request, A2A_BODY_BYTES_MAX, options.auth.openBody(identity, request))
    requireSimple(bytes, A2A_JSON_VALUES_MAX)
    const isLarge = bytes.length > SMALL_BODY_BYTES_MAX
    if (isLarge) await letOthersRun()
    const parsed = parseJsonRpc(bytes)
    if (isLarge) await letOthersRun()
    if (!parsed.ok) return writeError(exchange, parsed.response, undefined)
    rpc = parsed.request
    method = methodOf(rpc.method)
    if (!isKnownVersion(request.headers['a2a-version'])) {
      return writeError(exchange, jsonRpcFailure(rpc.id, refusal('versionNotSupported')), method)
    }
    if (method === undefined) {
      const unknown = refusal('methodNotFound', `A2A has no method "${rpc.method}"`)
      return writeError(exchange, jsonRpcFailure(rpc.id, unknown), method)
    }
    rpc = withReadableParams(rpc)
    const given = { rpc, method, workspaceId, identity, exchange, bytes: bytes.length }
    const call = isWorkspaceId(workspaceId) ? given : await withWorkspaceId(given, options)
    const served = await authorizeCall(call, options)
    isDenied = false
    const result = await runMethod(served, call, options)
    if (isLarge) await letOthersRun()
    if ('value' in result) return writeAnswer(exchange, { status: 200, body: jsonRpcSuccess(rpc.id, result.value) })
    await writeStream(exchange, result.stream, { ...options, identity, form: formOf(rpc.id, method, result.stream) })
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    logFailure(options.log, error, exchange)
    if (exchange.response.headersSent) return
    const failed = a2aFailure(await findFailureCause(options.workspaces, workspaceId, error), exchange.requestId)
    const body = jsonRpcFailure(rpc?.id, failed.error)
    const status = rpcStatus(failed, isDenied)
    if (status === 200) return writeError(exchange, body, method)
    writeAnswer(exchange, { status, headers: failed.headers, body })
  }
}

/** The request with params under the names that our code reads. */
function withReadableParams(rpc: JsonRpcRequest): JsonRpcRequest {
  const params = withCamelCase(rpc.params)
  return params === rpc.params ? rpc : { ...rpc, params }
}

/**
 * Writes a JSON-RPC error with status 200. A 0.3 caller that asked for a stream gets a stream of this one event, because
 * its client reads nothing else; 1.0 has errors of a stream that cannot begin in plain JSON. Where the request does not
 * say what it asks for, its headers do.
 */
function writeError(exchange: HttpExchange, body: JsonRpcFailure, method: A2aMethod | undefined): void {
  const { complete, headers } = exchange.request
  const asksForStream =
    method === undefined
      ? !/^1\./.test(String(headers['a2a-version'] ?? '')) && /^text\/event-stream\b/.test(headers.accept ?? '')
      : method.version === '0.3' && isStreaming(method)
  // A client that still sends its body gets the answer that waits for the rest of it.
  if (asksForStream && complete) writeOnlyEvent(exchange, body)
  else writeAnswer(exchange, { status: 200, body })
}

/** Each event of a stream is a response to the call, in the format of its version. */
function formOf(
  id: JsonRpcId | undefined,
  { version }: A2aMethod,
  stream: TaskStream,
): (event: StreamResponse) => unknown {
  if (version === '1.0') return (event) => jsonRpcSuccess(id, event)
  return (event) => jsonRpcSuccess(id, eventToV03(event, stream))
}
