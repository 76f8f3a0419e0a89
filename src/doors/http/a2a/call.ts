/** One call of an A2A method, whichever binding and version it came by, and what methods are served from. */
import type { Reception } from '../../../inbox/inbox.ts'
import type { A2aMethod, JsonRpcRequest } from '../../../protocol/json-rpc.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import type { HttpExchange } from '../server/answer.ts'
import type { Reach } from '../server/reach.ts'
import type { WaitingCalls } from '../server/waiting-calls.ts'
import type { PushContext } from './push-methods.ts'
import type { TaskStream } from './streams.ts'

export interface A2aCall {
  /** As it came; a REST call in the words that JSON-RPC would have used for it. */
  readonly rpc: JsonRpcRequest
  readonly method: A2aMethod
  readonly workspaceId: string
  readonly identity: Identity
  readonly exchange: HttpExchange
}

export interface A2aContext {
  readonly reception: Reception
  readonly workspaces: Workspaces
  readonly waitingCalls: WaitingCalls
  readonly reach: Reach
  readonly maxBlockMs: number
  readonly version: string
  /** Absent: this door has no webhooks, which A2A allows. */
  readonly push?: PushContext
}

/** What a method answers: a value in the words of the version that it was called in, or a stream. */
export type A2aResult = { readonly value: unknown } | { readonly stream: TaskStream }
