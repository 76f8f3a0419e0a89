/**
 * The A2A service over gRPC. Each method decodes its request, calls the same method as JSON-RPC and REST, and encodes
 * the result. The tenant of a request is the workspace. A client that cancels ends its wait; its task goes on.
 */
import { setImmediate as letOthersRun } from 'node:timers/promises'
import { encodeGrpcStatusDetails, GRPC_STATUS_DETAILS_BIN } from '@a2a-js/sdk/errors/grpc'
import { A2AService } from '@a2a-js/sdk/server/grpc'
import {
  Metadata,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type StatusObject,
  type sendUnaryData,
  status as statusCodes,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { errorInfo } from '../../protocol/json-rpc.ts'
import type { Identity } from '../../workspaces/tokens.ts'
import type { A2aBindingResult, A2aCalls, A2aExchange, A2aLimits, A2aRefusal } from '../a2a-calls.ts'
import { GRPC_METHODS, type GrpcMethod } from './messages.ts'

export interface GrpcCaller {
  readonly identity: Identity
  readonly requestId: string
}

export interface GrpcServiceContext {
  readonly calls: A2aCalls
  readonly clock: Clock
  /** The caller of a call, whose token was verified before its message was read. */
  readonly callerOf: (metadata: Metadata) => GrpcCaller
  /** Host and port of the HTTP door as the caller sees it, for cards. `authority` is what the caller connected to. */
  readonly httpHost: (authority: string) => string
  /** Closes the connection of a peer. */
  readonly disconnect: (peer: string) => void
}

/** The service of the SDK with messages as bytes: this door decodes a message after it has counted its bytes. */
export const GRPC_SERVICE: ServiceDefinition = Object.fromEntries(
  Object.entries(A2AService).map(([key, method]) => [
    key,
    { ...method, requestDeserialize: (bytes: Buffer) => bytes, responseSerialize: (bytes: Buffer) => bytes },
  ]),
)

type UnaryCall = ServerUnaryCall<Buffer, Buffer>
type StreamCall = ServerWritableStream<Buffer, Buffer>

export function createGrpcService(context: GrpcServiceContext): UntypedServiceImplementation {
  const handlers = Object.entries(GRPC_METHODS).map(([key, method]) => {
    const isStream = A2AService[key as keyof typeof A2AService].responseStream
    const unary = (call: UnaryCall, respond: sendUnaryData<Buffer>) => {
      const answer = (result: A2aBindingResult, head: Metadata) => {
        if (!('value' in result)) throw new MoleculeError('internal', `${method.name} has no value`)
        const bytes = method.write(result.value)
        call.sendMetadata(head)
        respond(null, bytes)
      }
      serve({ call, method, answer, refuse: respond }, context)
    }
    const streaming = (call: StreamCall) => {
      const refuse = (status: StatusObject) => call.emit('error', status)
      const answer = async (result: A2aBindingResult, head: Metadata) => {
        if (!('follow' in result)) throw new MoleculeError('internal', `${method.name} has no stream`)
        call.sendMetadata(head)
        const isComplete = await result.follow((event) => send(call, method.write(event), context))
        if (isComplete) call.end()
        // Without an error, the client would take the end of the stream for the end of the task.
        else if (!call.cancelled) refuse(toStatus(STOPPING, head.get('x-request-id').join()))
      }
      serve({ call, method, answer, refuse }, context)
    }
    return [key, isStream ? streaming : unary]
  })
  return Object.fromEntries(handlers)
}

const STOPPING: A2aRefusal = {
  status: 'UNAVAILABLE',
  message: 'the platform stops; subscribe to the task again later',
  info: errorInfo('UNAVAILABLE'),
  headers: {},
}

interface ServedCall {
  readonly call: UnaryCall | StreamCall
  readonly method: GrpcMethod
  readonly answer: (result: A2aBindingResult, head: Metadata) => void | Promise<void>
  readonly refuse: (status: StatusObject) => void
}

function serve(served: ServedCall, context: GrpcServiceContext): void {
  const { calls } = context
  const path = served.call.getPath()
  const { identity, requestId } = context.callerOf(served.call.metadata)
  let workspaceId = ''
  const run = async () => {
    const { call, method } = served
    const bytes = call.request.length
    calls.countBytes(identity, bytes)
    const params = method.read(call.request, calls.limits.requestValuesMax)
    workspaceId = requireTenant(params['tenant'])
    const isLarge = bytes > calls.limits.smallRequestBytesMax
    if (isLarge) await letOthersRun()
    const head = new Metadata()
    head.set('x-request-id', requestId)
    const exchange = exchangeOf(call, { requestId, head, host: context.httpHost(call.getHost()) })
    const result = await calls.call({ name: method.name, params, workspaceId, identity, bytes, exchange })
    if (isLarge) await letOthersRun()
    if ('refusal' in result) served.refuse(toStatus(result.refusal, requestId))
    else await served.answer(result, head)
  }
  const logged = (thrown: unknown) => calls.refuse(thrown, { requestId, workspaceId, path })
  const refused = run().catch(async (thrown: unknown) => served.refuse(toStatus(await logged(thrown), requestId)))
  // An unhandled rejection would end the platform for all callers.
  refused.catch(logged)
}

/** No workspace has a longer name. */
const TENANT_CHARACTERS_MAX = 200

function requireTenant(tenant: unknown): string {
  if (typeof tenant === 'string' && tenant !== '' && tenant.length <= TENANT_CHARACTERS_MAX) return tenant
  const message = 'tenant must be the id or the name of a workspace; the agent card has it in supportedInterfaces'
  throw new MoleculeError('invalid_request', message, { details: { path: 'tenant' } })
}

/** Headers that the methods read, from the metadata of the call. */
const HEADERS = ['a2a-version', 'idempotency-key', 'traceparent', 'tracestate'] as const

function exchangeOf(
  call: UnaryCall | StreamCall,
  { requestId, head, host }: { requestId: string; head: Metadata; host: string },
): A2aExchange {
  const headers = Object.fromEntries(HEADERS.map((name) => [name, call.metadata.get(name)[0]?.toString()]))
  return {
    requestId,
    request: { headers: { ...headers, host }, socket: {} },
    response: {
      setHeader: (name, value) => head.set(name.toLowerCase(), value),
      // grpc-js emits `cancelled` at the end of every call, also after its status was sent.
      once: (_close, listener) => (call.cancelled ? queueMicrotask(listener) : call.once('cancelled', listener)),
      off: (_close, listener) => call.off('cancelled', listener),
    },
  }
}

/**
 * Resolves when the client has received the message, or the call is over. So a slow client costs the memory of one
 * event. A client that is too slow is disconnected: grpc-js cannot end a stream that its client does not read.
 */
function send(call: StreamCall, bytes: Buffer, { clock, calls, disconnect }: GrpcServiceContext): Promise<void> {
  return new Promise((resolve) => {
    if (call.cancelled) return resolve()
    const end = () => {
      stopTimer()
      call.off('cancelled', end)
      resolve()
    }
    const peer = call.getPeer()
    const stopTimer = clock.after(sendMsMax(bytes, calls.limits), () => disconnect(peer))
    call.once('cancelled', end)
    call.write(bytes, end)
  })
}

const sendMsMax = (bytes: Buffer, { unsentBytesMax, unsentMs }: A2aLimits): number =>
  Math.max(1, Math.ceil(bytes.length / unsentBytesMax)) * unsentMs

/** Clients refuse a status that does not fit into their limit of headers, 8 KiB for some. */
const STATUS_CHARACTERS_MAX = 1000

/** A refusal as a status whose details are a `google.rpc.Status` with an `ErrorInfo`. */
export function toStatus({ status, message, info, headers }: A2aRefusal, requestId: string): StatusObject {
  const code = statusCodes[status as keyof typeof statusCodes] ?? statusCodes.UNKNOWN
  // Half a surrogate pair, as a cut can leave it, cannot be sent.
  const details = message.slice(0, STATUS_CHARACTERS_MAX).toWellFormed()
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(headers)) metadata.set(name.toLowerCase(), value)
  metadata.set('x-request-id', requestId)
  metadata.set(GRPC_STATUS_DETAILS_BIN, encodeGrpcStatusDetails(code, details, info.reason, { ...info.metadata }))
  return { code, details, metadata }
}
