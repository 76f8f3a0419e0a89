/**
 * The A2A seam between doors: how a binding outside the HTTP door calls the methods of A2A. The HTTP door implements it
 * with the table of methods that its own bindings use. So every binding has the same access rules, refusals and log, and
 * a token has one rate limit for all of them.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { SentAnswer } from '../inbox/reception.ts'
import type { StreamResponse } from '../protocol/a2a.ts'
import type { JsonObject } from '../protocol/json.ts'
import type { ErrorInfo } from '../protocol/json-rpc.ts'
import type { Identity } from '../workspaces/tokens.ts'

/** What the methods need of a request and its answer. Node's own request and response fit. */
export interface A2aExchange {
  readonly request: { readonly headers: IncomingHttpHeaders; readonly socket: object }
  readonly response: ClosingResponse & {
    /** A header of the answer. Called before the answer begins. */
    setHeader(name: string, value: string): unknown
  }
  /** `req_` and a ULID. */
  readonly requestId: string
}

export interface ClosingResponse extends SentAnswer {
  off(event: 'close', listener: () => void): unknown
}

export interface A2aCalls {
  readonly limits: A2aLimits
  newRequestId(): string
  /** Also counts the call against the rate limit of its token. Throws `unauthenticated` or `too_many_requests`. */
  identify(authorization: string | undefined, address: string | undefined): Promise<Identity>
  /** Counts the bytes of a request against the limit of its token. Call it before the request is decoded. */
  countBytes(identity: Identity, bytes: number): void
  call(call: A2aBindingCall): Promise<A2aBindingResult>
  /** Logs why a call failed; the refusal that its caller may see. */
  refuse(thrown: unknown, failed: FailedA2aCall): Promise<A2aRefusal>
}

export interface A2aLimits {
  readonly requestBytesMax: number
  /** Between the steps of work on a larger request, other callers run. */
  readonly smallRequestBytesMax: number
  /** Members of objects and items of arrays in a request. */
  readonly requestValuesMax: number
  /** How long a client may take to send a whole request. */
  readonly requestMs: number
  /** How often a silent connection is checked. */
  readonly keepAliveMs: number
  /** A client that has not read `unsentBytesMax` bytes of a stream within `unsentMs` is disconnected. */
  readonly unsentBytesMax: number
  readonly unsentMs: number
}

export interface A2aBindingCall {
  /** The method's name in 1.0. */
  readonly name: string
  readonly params: JsonObject
  readonly workspaceId: string
  readonly identity: Identity
  /** The size of the request. */
  readonly bytes: number
  readonly exchange: A2aExchange
}

export type A2aBindingResult =
  | { readonly value: unknown }
  | {
      /**
       * Gives each event of the stream to `write`, and waits for it. Resolves with true when the stream is complete, and
       * with false when the client disconnected or the platform stops. Throws when the token is revoked.
       */
      readonly follow: (write: (event: StreamResponse) => Promise<void>) => Promise<boolean>
    }
  | { readonly refusal: A2aRefusal }

export interface FailedA2aCall {
  readonly requestId: string
  /** Empty while it is not known. */
  readonly workspaceId: string
  /** For the log. */
  readonly path: string
}

export interface A2aRefusal {
  /** The name of a gRPC status code. */
  readonly status: string
  readonly message: string
  readonly info: ErrorInfo
  readonly headers: Readonly<Record<string, string>>
}
