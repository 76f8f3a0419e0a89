/**
 * The seam of the workers. A worker takes leases, begins, appends and settles. It is small enough to call over HTTP:
 * `molecule connect` runs the same runtime on a remote `Inbox`.
 */
import type { Artifact, MessageContent, Metadata, Part } from '../protocol/a2a.ts'
import type { WaitsFor } from '../protocol/brief.ts'
import type { Envelope } from '../protocol/envelope.ts'
import type { FileDiff } from '../protocol/file-diff.ts'
import type { Sender } from '../protocol/request.ts'

/**
 * The moments at which a crash matters most. The inbox and the runtime report each; crash tests kill the process there.
 */
export type Checkpoint =
  /** The message is durable; its sender has no answer yet. */
  | 'admitted'
  /** A worker holds the lease; it has started nothing. */
  | 'leased'
  /** The backend has ended; nothing of its result is stored. */
  | 'answered'
  /** The outcome is stored; no reader knows of it yet. */
  | 'settled'

/** A worker: the runtime of this process, or a bridge on another machine. */
export interface Worker {
  readonly id: string
  /** Which workspaces it works for: all that are hosted here, or the named ones. */
  readonly workspaces: 'hosted' | readonly string[]
}

/** The key of a leased message. The epoch is the fence: after a takeover, every call with the old epoch is stale. */
export interface LeaseKey {
  readonly workspaceId: string
  readonly conversationId: string
  readonly taskId: string
  readonly messageId: string
  readonly epoch: number
}

/** The id of one lease, and so of one turn. Bridges send it, and spool files are named after it. */
export const leaseId = ({ messageId, epoch }: Pick<LeaseKey, 'messageId' | 'epoch'>): string => `${messageId}.${epoch}`

export interface Lease extends LeaseKey {
  readonly contextId: string
  readonly principal: string
  readonly sender: Sender
  readonly envelope: Envelope
  readonly idempotencyKey: string
  /** Lifetime counters before this attempt: the backend failed; the worker vanished. */
  readonly failures: number
  readonly losses: number
  /** An earlier attempt began and did not end properly; the prompt says so. */
  readonly interrupted: boolean
  /** The one fresh re-run after a lost session is used up. */
  readonly sessionRetried: boolean
  /** Set while a limit of the model provider holds: how often the message was parked, and how long ago first. */
  readonly parked?: { readonly times: number; readonly sinceMs: number }
}

/** What a running turn reports. Events are numbered, so a repeated append adds nothing. */
export type TurnEvent =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'artifact'; readonly artifact: Artifact; readonly append: boolean; readonly lastChunk: boolean }
  /** The subject is what exactly the tool does, cut after some hundred characters. */
  | {
      readonly type: 'tool'
      readonly name: string
      readonly subject?: string
      readonly state: 'started' | 'finished' | 'failed'
      /** The files that it changed, where the agent reports them with its end. */
      readonly diffs?: readonly FileDiff[]
    }
  /** `said` is the task's status on the wire; the text alone is for the activity log. */
  | { readonly type: 'status'; readonly text: string; readonly said?: MessageContent }

export interface Usage {
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly costUsd?: number
  readonly durationMs?: number
}

/** A failure as it is stored: our code, one sentence, and details for the owner. */
export interface Failure {
  readonly code: string
  /** The program's own text, secrets masked: for the owner only. */
  readonly message: string
  /** One sentence for everyone, where `message` is not ours, and the kind of failure. */
  readonly sentence?: string
  readonly category?: string
  /** Finds the whole error in the log file. */
  readonly id?: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** How a turn ends, and what it used: a failed turn has a cost too. */
export type Outcome = End & { readonly usage?: Usage }

type End =
  | {
      readonly type: 'done'
      readonly finality: 'completed' | 'input_required' | 'auth_required' | 'rejected'
      readonly parts: readonly Part[]
      /** Complete artifacts of the turn, without the reply. */
      readonly artifacts: readonly Artifact[]
      /** Of the reply. */
      readonly metadata?: Metadata
      /** The task's status message, where that is not the reply itself. */
      readonly said?: MessageContent
      /** One sentence of the platform about the answer; it is added to the task's status message. */
      readonly notice?: string
      readonly session?: string
    }
  /** Run again after `afterMs`. `session_lost` drops the session and raises no counter. */
  | {
      readonly type: 'retry'
      readonly failure: Failure
      readonly afterMs: number
      readonly reason: 'failure' | 'session_lost'
      /** The attempt may have acted before it broke off; the next prompt says so. */
      readonly interrupted: boolean
      /** A limit of the model provider holds: the wait raises `parked` of the next lease and no other counter. */
      readonly parked?: boolean
    }
  /** Artifacts that the turn finished before it failed stay visible. */
  | { readonly type: 'dead'; readonly failure: Failure; readonly artifacts?: readonly Artifact[] }
  /** A cancelled turn has ended; its conversation is free again. */
  | { readonly type: 'stopped' }
  /** Given back (drain, or never begun); raises no counter. Parked: not before that time, with the reason. */
  | {
      readonly type: 'released'
      readonly interrupted: boolean
      readonly parked?: { readonly afterMs: number; readonly said: MessageContent; readonly waitsFor?: WaitsFor }
    }

/** How a lease stands: still held, the turn must stop, or another worker took over. */
export type LeaseStanding = 'held' | 'stop' | 'stale'

/** `waiting`: the lease is held, and its turn waits for another agent or a person. Its silence is no stall. */
export type RenewedStanding = LeaseStanding | 'waiting'

/** What a worker receives: run this lease, stop that turn, take this answer. */
export type Directive =
  | { readonly type: 'lease'; readonly lease: Lease }
  | { readonly type: 'stop'; readonly key: LeaseKey }
  /** The turn begins to wait for a delegation, or no longer waits: meanwhile its time limits are paused. */
  | { readonly type: 'waiting'; readonly key: LeaseKey; readonly waiting: boolean }
  /** A person's answer to an ask; undefined = denied or timed out. The same answer may come more than once. */
  | {
      readonly type: 'answer'
      readonly key: LeaseKey
      readonly askId: string
      readonly parts: readonly Part[] | undefined
    }

/** Events of a turn and the number of the first; numbers start at 1 for each lease. */
export interface NumberedEvents {
  readonly from: number
  readonly events: readonly TurnEvent[]
  /** For the next attempt at the message, by key; a later value of a key replaces the earlier. */
  readonly notes?: Readonly<Record<string, string>>
}

/**
 * Contract: `leases` yields each lease once; a lease that was claimed but not taken when the signal aborts is released.
 * `begin`, `append` and `settle` are idempotent: the same number, or the same outcome under the same epoch, changes
 * nothing the second time. A settle is valid while its epoch is current, even after the lease time ran out.
 */
export interface Inbox {
  leases(worker: Worker, signal: AbortSignal): AsyncIterable<Directive>
  /**
   * The turn begins. A worker that vanishes before this costs the message nothing; after it, one of its losses. A
   * bridge awaits it before it starts the backend. In a hosted workspace the claim itself begins the turn, and no call
   * is needed. `text` goes into the activity log: `started on laptop`.
   */
  begin(key: LeaseKey, text?: string): Promise<LeaseStanding>
  extend(keys: readonly LeaseKey[]): Promise<RenewedStanding[]>
  append(key: LeaseKey, events: NumberedEvents): Promise<LeaseStanding>
  /** Stores events not yet appended and the outcome, in one transaction. `stale`: this result is not the reply. */
  settle(key: LeaseKey, outcome: Outcome, unsent?: NumberedEvents): Promise<'settled' | 'stale'>
  /** The turn waits: it keeps lease and conversation and gives up its slot. Refused when too many turns wait. */
  suspend(key: LeaseKey): Promise<LeaseStanding | 'refused'>
  /** The wait is over: the turn takes its slot back, over the limit if need be. */
  resume(key: LeaseKey): Promise<LeaseStanding>
  /** Asks a person and suspends the turn; the answer comes as a directive. One open ask at a time. */
  ask(key: LeaseKey, ask: Ask): Promise<LeaseStanding | 'refused'>
}

/** What a running turn asks a person. Its id is unique within the turn, so a repeated call asks nothing twice. */
export type Ask = AskContent &
  (
    | { readonly kind: 'question' }
    /** May the agent do exactly this? The owners answer, never the sender of the task. */
    | { readonly kind: 'permission'; readonly tool: string; readonly subject: string }
  )

interface AskContent {
  readonly id: string
  readonly parts: readonly Part[]
  /** No answer by then is a denial; default: 30 minutes. */
  readonly timeoutMs?: number
}
