/**
 * The one error class of Molecule. This file defines what each code means; each door has one table from a code to its
 * wire form. The original error is kept as `cause`.
 */

/** Stable: programs may switch on these codes. */
export type ErrorCode =
  /** The request itself is wrong: shape, type or value. `details.path` names the place, if known. */
  | 'invalid_request'
  /** No token, or an unknown one. */
  | 'unauthenticated'
  /** The token is known but not allowed to do this. */
  | 'forbidden'
  /** The named thing does not exist, or this caller may not see it. */
  | 'not_found'
  /** The same idempotency key was used before with other content. */
  | 'idempotency_conflict'
  /** The current state does not allow this (a message to a finished task). */
  | 'unsupported_operation'
  /** The task has already ended in another state. */
  | 'not_cancelable'
  /** The workspace's queue is full; `details.retryAfterMs` says when to retry. */
  | 'queue_full'
  /** The token is over its rate limit; `details.retryAfterMs` says when to retry. */
  | 'too_many_requests'
  /** The cursor points at deleted entries; `details.prunedSeq` is the last deleted number. */
  | 'pruned'
  /** A body, an output or an upload is over its limit; `details.limitBytes`. */
  | 'too_large'
  /** The lease's epoch is no longer current, or a settle contradicts the stored one. */
  | 'stale_lease'
  /** The store is unreachable or refused the transaction. If its answer was lost, the write may be committed. */
  | 'store_unavailable'
  /** The store's file is damaged. Nothing is written until its owner has restored it. */
  | 'store_damaged'
  /** The stored reply of one message does not match its checksum: `details.messageId`. It is not shown. */
  | 'reply_damaged'
  /** The disk of the platform is nearly full, so it takes no new messages; running turns finish. */
  | 'disk_low'
  /** Configuration that cannot work: a missing option, a bad duration, an unknown runtime. */
  | 'bad_config'
  /** The program of a backend is missing or not executable. */
  | 'backend_missing'
  /** The program exists, but the subprocess could not be started. */
  | 'spawn_failed'
  /** The backend was silent for too long, or did not finish in time. */
  | 'timeout'
  /** The subprocess ended with a non-zero exit code or by a signal: `details.exitCode`, `details.signal`. */
  | 'exit'
  /** A model agent ended without an error and without a reply. */
  | 'empty_response'
  /** The backend's stream ended without `done` or `failed`. */
  | 'no_end'
  /** The model provider's rate limit is reached; `details.resetAfterMs` says how long to wait, if known. */
  | 'rate_limited'
  /**
   * The quota or the credit at the model provider is used up; `details.resetAfterMs` says when it comes back, if known.
   * Not a rate limit: without that time no retry helps until the owner acts.
   */
  | 'quota_exhausted'
  /** The model provider refuses the credentials. */
  | 'auth_failed'
  /** The model provider has no capacity at the moment. */
  | 'overloaded'
  /** The model provider cannot be reached: no network, or the connection broke. */
  | 'provider_unreachable'
  /** The model provider does not know the model, or does not offer it to this account. */
  | 'unknown_model'
  /** The model provider refuses the request as wrong; the same request is refused again. */
  | 'bad_request'
  /** The model provider failed for another reason; `details.status` is its HTTP status. */
  | 'provider_failed'
  /** The conversation no longer fits into the model's context. */
  | 'context_full'
  /** The agent no longer knows the session it was asked to resume. */
  | 'session_lost'
  /**
   * The agent reports that its task failed, or its answer is unusable. `details.forCaller`: the message is the agent's own
   * reason, written for its caller. Without it only the owner sees the message.
   */
  | 'agent_failed'
  /** The program ended well, but its output is not what its backend reads; `details.stdout` is the end of it. */
  | 'unreadable_output'
  /** A file of the message cannot be used: its URL is refused or fails, or the file is too large. */
  | 'bad_attachment'
  /** The agent reached its limit of model turns. */
  | 'max_turns'
  /** A hook of the workspace refused the message; the message is the reason that the hook printed. */
  | 'vetoed'
  /** The worker disappeared too often while it ran this message. */
  | 'worker_lost'
  /** The message waited too long for its first attempt. */
  | 'expired'
  /** A caller or the owner cancelled it. */
  | 'canceled'
  /** Another process holds a resource that this one needs (data folder, port). */
  | 'in_use'
  /** A bug in Molecule. */
  | 'internal'

export interface MoleculeErrorOptions {
  /** The same call may succeed if it is repeated later. */
  readonly retryable?: boolean
  readonly cause?: unknown
  readonly details?: Readonly<Record<string, unknown>>
}

export class MoleculeError extends Error {
  override readonly name = 'MoleculeError'
  readonly code: ErrorCode
  readonly retryable: boolean
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, message: string, options: MoleculeErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.retryable = options.retryable ?? false
    this.details = options.details ?? {}
  }
}

/** A MoleculeError unchanged; any other thrown value as the cause of an error with `code`. */
export function toMoleculeError(thrown: unknown, code: ErrorCode = 'internal'): MoleculeError {
  if (thrown instanceof MoleculeError) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new MoleculeError(code, message, { cause: thrown })
}
