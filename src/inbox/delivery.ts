/** The seam for doors that push: replies to chat channels (deliveries), and calls to webhooks (push configs). */
import type { Part, TaskState } from '../protocol/a2a.ts'
import type { ProtocolVersion } from '../protocol/envelope.ts'
import type { PushConfig } from '../protocol/push-config.ts'

/** Where a door pushes an answer: the door's name, and a channel in the door's own format. */
export interface ReplyAddress {
  readonly door: string
  readonly channel: string
  /** An answer of exactly `NO_REPLY` is stored and not sent. */
  readonly mayBeSilent?: boolean
}

/** The content of a delivery: the task's state and the reply or status message. */
export interface DeliveryBody {
  readonly state: TaskState
  readonly parts?: readonly Part[]
  readonly code?: string
  /** It is no answer but a prompt of the door, in the door's own format. */
  readonly prompt?: unknown
}

/** Something that a door itself has to say, about a task or about a workspace. */
export type NewDelivery = {
  /** A ULID. The same one again changes nothing. */
  readonly id: string
  readonly door: string
  readonly channel: string
  readonly body: DeliveryBody
} & ({ readonly taskId: string } | { readonly workspaceId: string; readonly purpose: DeliveryPurpose })

/** Of a delivery without a task. `message`: an agent speaks first. `notice`: something needs a person. */
export type DeliveryPurpose = 'message' | 'notice'

export interface Delivery {
  readonly id: string
  readonly workspaceId: string
  /** Absent: it belongs to the workspace only. */
  readonly taskId?: string
  readonly channel: string
  readonly body: DeliveryBody
  /** How many tries in a row failed before this one, without a part that arrived between them. */
  readonly tries: number
  /** The messages that it consists of, in order; absent before the first `take` with `split`. */
  readonly parts?: readonly DeliveryPart[]
}

/** One message of a delivery. Its content is in the door's own format. */
export interface DeliveryPart {
  readonly n: number
  readonly content: string
  /** `sending`: it may have arrived. */
  readonly state: 'pending' | 'sending' | 'sent'
  /** How long ago it was tried first. */
  readonly triedAgoMs?: number
  /** Of a part that was sent. */
  readonly receipt?: string
}

/** How a try ended. `unknown`: the message may have arrived, so only a person may decide to send it again. */
export type DeliveryResult =
  | { readonly type: 'sent'; readonly receipt?: string }
  | { readonly type: 'failed'; readonly error: string; readonly final?: boolean; readonly retryAfterMs?: number }
  /** No try at all: a limit of the service or of the door, or no connection. `retryAfterMs`: when the limit ends. */
  | { readonly type: 'later'; readonly error: string; readonly retryAfterMs?: number }
  | { readonly type: 'unknown'; readonly error: string }

/**
 * Contract: `take` returns the next due delivery of a door and commits it as `sending` first. Deliveries of a channel
 * come in order, one at a time. A delivery that is `sending` at start may have arrived: it becomes `unknown`, and the
 * platform never sends it again by itself. A delivery in parts is `unknown` only when one of them was being sent; a part
 * that was sent is never sent again. A delivery that fails is tried again for a day, however often; after a part that
 * arrived, its waits begin anew.
 */
export interface Deliveries {
  /**
   * `split` makes the parts of a delivery that has none; it is pure. When it throws, that delivery fails for good and
   * needs a person, and `take` goes on with the next one.
   */
  take(door: string, split?: (body: DeliveryBody) => readonly string[]): Promise<Delivery | undefined>
  /** Throws `too_many_requests` for a further `message` of a workspace that has sent its messages of this hour. */
  add(delivery: NewDelivery): Promise<void>
  /**
   * Sends the deliveries that wait at a door on to other addresses, each as a delivery of its own. Without an address one
   * ends with that reason, and no person has to decide about it.
   */
  forward(door: string, find: (delivery: Delivery) => Promise<ForwardTo>): Promise<void>
  /** What waits in a channel of a door may be tried now: the reason of its wait is over. */
  hurry(door: string, channel: string): Promise<void>
  /** It is no longer needed: nothing of it is sent any more, and no person has to decide about it. */
  withdraw(id: string): Promise<void>
  /** How long until the next delivery of the door can be taken; undefined while it has none that waits. */
  dueInMs(door: string): Promise<number | undefined>
  /**
   * Calls back when a transaction wrote a delivery for any door, until the returned function is called. A hint: the door
   * asks again after some seconds, because one of another process may be lost.
   */
  watch(callback: () => void): () => void
  /** Committed before the part is sent. `content`: the door sends it in another form. */
  beginPart(id: string, n: number, content?: string): Promise<void>
  partSent(id: string, n: number, receipt: string): Promise<void>
  /**
   * When a door starts: its deliveries that are unknown because one of their parts was being sent, and that no person has
   * handled. Also ends the sends of another process that is gone.
   */
  interrupted(door: string): Promise<readonly Delivery[]>
  /** The deliveries of a door of which a part may have arrived, and that no person has handled. */
  unknown(door: string): Promise<readonly Delivery[]>
  /** Whether an answer of a door to a channel, or only that of the given task, is still to be sent. */
  hasOpen(door: string, channel: string, taskId?: string): Promise<boolean>
  /** The receipt of the last delivery of a door that arrived in a channel. */
  lastReceipt(door: string, channel: string): Promise<string | undefined>
  /** The door knows better: the part that was being sent has arrived (`receipt`), or may be sent again. */
  resume(id: string, receipt?: string): Promise<void>
  finish(id: string, result: DeliveryResult): Promise<void>
  /** A channel of the door has another id: its deliveries that were not sent go there. */
  move(door: string, from: string, to: string): Promise<void>
  /** The door is removed for good: its open deliveries fail, and no person has to decide about them. */
  endDoor(door: string): Promise<void>
  /** Deliveries that a person must look at: failed for good, or unknown. */
  needingDecision(): Promise<(Delivery & { readonly state: 'failed' | 'unknown'; readonly error: string })[]>
  /** A person's decision on one of those, and the person's name. */
  resolve(id: string, decision: DeliveryDecision, resolver: string): Promise<void>
}

export interface ForwardTo {
  readonly addresses: readonly ReplyAddress[]
  /** In the error of a delivery without an address. */
  readonly reason: string
}

/** `dismiss`: it arrived, or is no longer needed. */
export type DeliveryDecision = 'resend' | 'dismiss'

/** The last event that the webhook received: the log entry, and the index of the event within it. */
export interface PushCursor {
  readonly seq: number
  readonly k: number
}

export interface PushKey {
  readonly workspaceId: string
  readonly taskId: string
  readonly id: string
}

export interface StoredPush extends PushKey {
  readonly version: ProtocolVersion
  /** Contains the caller's secrets: for the sender of webhooks, never for an answer. */
  readonly config: PushConfig
  /** Why the platform gave up. */
  readonly failed?: string
  readonly cursor: PushCursor
}

export interface NewPush {
  readonly workspaceId: string
  readonly version: ProtocolVersion
  readonly config: PushConfig & { readonly id: string }
  /** The webhook receives only events after this entry of the log. */
  readonly afterSeq: number
  /** The token that set it, and the hash of its secret: it receives nothing more once they end. Absent: nothing ends it. */
  readonly setBy?: { readonly tokenId: string; readonly secretId?: string }
}

/** The webhook of the task that a letter opens. */
export interface LetterPush {
  readonly version: ProtocolVersion
  readonly config: Omit<PushConfig, 'taskId'> & { readonly id: string }
}

/**
 * Contract: `put` with a known id replaces the config, keeps its cursor, and starts again if the platform had given up.
 * `claim` hands each due config to one worker, which must call `advance`, `fail`, `idle` or `release`. A claim that is
 * not renewed is due again after a minute.
 */
export interface PushConfigs {
  put(push: NewPush): Promise<StoredPush>
  list(workspaceId: string, taskId: string): Promise<StoredPush[]>
  remove(key: PushKey): Promise<boolean>
  /** The task changed: its idle configs are due now. */
  nudge(workspaceId: string, taskId: string): Promise<void>
  claim(limit: number): Promise<StoredPush[]>
  renew(keys: readonly PushKey[]): Promise<void>
  /** False when the caller deleted or replaced the config, or when its token ended: then it is marked as failed. */
  isCurrent(push: StoredPush): Promise<boolean>
  /** False when the caller deleted or replaced the config: the claim has ended. */
  advance(push: StoredPush, cursor: PushCursor): Promise<boolean>
  /** The call failed: the config is due again after a backoff, until the platform gives up. */
  fail(push: StoredPush, reason: string): Promise<'later' | 'given_up'>
  /** Every event was sent: the config waits for the next, or is done where the task is final. */
  idle(key: PushKey): Promise<void>
  release(key: PushKey): Promise<void>
}
