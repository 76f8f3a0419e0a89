/** One call of an A2A method, independent of its binding and version, and the dependencies of the methods. */
import type { Clock } from '../../../clock.ts'
import type { Reception } from '../../../inbox/reception.ts'
import type { Log } from '../../../log.ts'
import type { A2aMethod, JsonRpcRequest } from '../../../protocol/json-rpc.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import type { A2aExchange } from '../../a2a-calls.ts'
import type { Addresses } from '../server/addresses.ts'
import type { HttpAuth } from '../server/auth.ts'
import type { Reach } from '../server/reach.ts'
import type { SseLimits } from '../server/sse.ts'
import type { WaitingCalls } from '../server/waiting-calls.ts'
import type { PushContext } from './push-methods.ts'
import type { TaskStream } from './streams.ts'

export interface A2aCall {
  /** As it came; a call of another binding is converted to the JSON-RPC request that means the same. */
  readonly rpc: JsonRpcRequest
  readonly method: A2aMethod
  readonly workspaceId: string
  readonly identity: Identity
  readonly exchange: A2aExchange
  /** The size of the body. */
  readonly bytes: number
}

export interface A2aContext {
  readonly reception: Reception
  readonly workspaces: Workspaces
  readonly waitingCalls: WaitingCalls
  readonly reach: Reach
  readonly addresses: Addresses
  readonly maxBlockMs: number
  readonly version: string
  /** The port of the gRPC door, for cards; undefined without one. */
  readonly grpcPort?: () => number | undefined
  /** Absent: this door has no webhooks. A2A allows that. */
  readonly push?: PushContext
}

/** Dependencies of the bindings. */
export interface A2aOptions extends A2aContext {
  readonly auth: HttpAuth
  readonly log: Log
  readonly clock: Clock
  readonly limits: SseLimits
}

export interface A2aAddress {
  readonly workspaceId: string
  /** The path below the workspace's A2A URL; empty for the URL itself, which is JSON-RPC. */
  readonly path: string
  readonly query: string
}

/** The result of a method: a value in the format of the caller's version, or a stream. */
export type A2aResult = { readonly value: unknown } | { readonly stream: TaskStream }
