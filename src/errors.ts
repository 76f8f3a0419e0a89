/**
 * The one error class of Molecule. Meaning is given once, here; each door has one table from code to its wire form.
 * The upstream error is kept beside ours as `cause`, never pasted over.
 */

/** What can go wrong, in our words. Stable: programs may switch on these. */
export type ErrorCode =
  /** The request itself is wrong: shape, type, value. `details.path` names the place where known. */
  | 'invalid_request'
  /** No token, or one that nobody issued. */
  | 'unauthenticated'
  /** A token that is known but may not do this. */
  | 'forbidden'
  /** The thing named does not exist, or not for this caller. */
  | 'not_found'
  /** The same idempotency key came with other content. */
  | 'idempotency_conflict'
  /** The state of the thing does not allow this (a message to a finished task). */
  | 'unsupported_operation'
  /** The task has ended in another way already. */
  | 'not_cancelable'
  /** The workspace's queue is full; `details.retryAfterMs` says when to come again. */
  | 'queue_full'
  /** One token asks more often than it may; `details.retryAfterMs` says when to come again. */
  | 'too_many_requests'
  /** What the cursor asks for is no longer kept; `details.prunedSeq` is the last number that went. */
  | 'pruned'
  /** A body, an output or an upload passed its limit; `details.limitBytes`. */
  | 'too_large'
  /** A lease whose epoch is no longer current, or a settle that contradicts the one stored. */
  | 'stale_lease'
  /** The store cannot be reached or refused the transaction. Where its answer was lost, the write may stand. */
  | 'store_unavailable'
  /** Configuration that cannot work: a missing option, a bad duration, an unknown runtime. */
  | 'bad_config'
  /** The program behind a backend is not there or not executable. */
  | 'backend_missing'
  /** The subprocess could not be started though it exists. */
  | 'spawn_failed'
  /** The backend gave no sign of life, or was not done, within its time. */
  | 'timeout'
  /** The subprocess ended with a non-zero exit code or by a signal; `details.exitCode`, `details.signal`. */
  | 'exit'
  /** A model agent ended well and said nothing. */
  | 'empty_response'
  /** The backend's stream ended without done or failed. */
  | 'no_end'
  /** The model provider asks to wait; `details.resetAfterMs` where it says how long. */
  | 'rate_limited'
  /** The model provider refuses the credentials. */
  | 'auth_failed'
  /** The model provider failed, or refuses the request for another reason; `details.status` is its HTTP status. */
  | 'provider_failed'
  /** The conversation has grown beyond what the model can hold. */
  | 'context_full'
  /** The agent no longer knows the session it was asked to resume. */
  | 'session_lost'
  /** The agent itself says that its task failed, or gives an answer that is none; its reason is the message. */
  | 'agent_failed'
  /** A file that came with the message could not be had: a URL that is refused or fails, or too much of it. */
  | 'bad_attachment'
  /** The agent used up the turns it was allowed. */
  | 'max_turns'
  /** The worker vanished too often while running this message. */
  | 'worker_lost'
  /** The message was not started within its time. */
  | 'expired'
  /** Somebody cancelled it. */
  | 'canceled'
  /** Another process holds what this one needs (data folder, port). */
  | 'in_use'
  /** A defect of ours. */
  | 'internal'

export interface MoleculeErrorOptions {
  /** May the same thing succeed if it is simply tried again later? */
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

/** Any thrown value as a MoleculeError: ours unchanged, everything else as `internal` with the original as cause. */
export function toMoleculeError(thrown: unknown, code: ErrorCode = 'internal'): MoleculeError {
  if (thrown instanceof MoleculeError) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new MoleculeError(code, message, { cause: thrown })
}
