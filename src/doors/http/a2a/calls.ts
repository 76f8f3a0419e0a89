/** The methods of A2A for bindings outside the HTTP door; implements the seam `doors/a2a-calls.ts`. */
import { toMoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import { type A2aMethod, errorInfo, type JsonRpcError, methodOf } from '../../../protocol/json-rpc.ts'
import { A2A_BODY_BYTES_MAX } from '../../../protocol/schemas.ts'
import type { A2aCalls, A2aRefusal } from '../../a2a-calls.ts'
import { REQUEST_ID_PREFIX } from '../server/answer.ts'
import { A2A_JSON_VALUES_MAX, SMALL_BODY_BYTES_MAX } from '../server/body.ts'
import { logFailure } from '../server/errors.ts'
import { a2aFailure, findFailureCause, grpcStatusName, isVersion1, refusal } from './bindings.ts'
import type { A2aOptions } from './call.ts'
import { callMethod } from './methods.ts'
import { taskEvents } from './streams.ts'

export function createA2aCalls(options: A2aOptions, requestMs: number): A2aCalls {
  const { auth, reception, waitingCalls, workspaces, log } = options
  return {
    limits: {
      requestBytesMax: A2A_BODY_BYTES_MAX,
      smallRequestBytesMax: SMALL_BODY_BYTES_MAX,
      requestValuesMax: A2A_JSON_VALUES_MAX,
      requestMs,
      ...options.limits,
    },
    newRequestId: () => `${REQUEST_ID_PREFIX}${ulid()}`,
    identify: (authorization, remoteAddress) =>
      auth.identify({ headers: { authorization }, socket: { remoteAddress } }),
    countBytes: auth.countBytes,
    async call({ name, params, ...call }) {
      const { identity, exchange } = call
      if (!isVersion1(exchange.request.headers['a2a-version']))
        return { refusal: toRefusal({ status: 400, headers: {}, error: refusal('versionNotSupported') }) }
      const rpc = { jsonrpc: '2.0', id: exchange.requestId, method: name, params } as const
      const result = await callMethod({ ...call, rpc, method: methodOf(name) as A2aMethod }, options)
      if ('value' in result) return result
      return {
        follow: (write) =>
          waitingCalls.run({ response: exchange.response, identity }, async (signal) => {
            for await (const event of taskEvents(result.stream, (wire) => wire, { reception, signal })) {
              await write(event)
            }
            return !signal.aborted
          }),
      }
    },
    async refuse(thrown, { requestId, workspaceId, path }) {
      const error = toMoleculeError(thrown)
      logFailure(log, error, { request: { method: 'gRPC', url: path }, requestId })
      return toRefusal(a2aFailure(await findFailureCause(workspaces, workspaceId, error), requestId))
    },
  }
}

function toRefusal(failed: {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly error: JsonRpcError
}): A2aRefusal {
  const { status, headers, error } = failed
  const [info = errorInfo('INTERNAL')] = error.data ?? []
  return { status: grpcStatusName(status, error.code), message: error.message, info, headers }
}
