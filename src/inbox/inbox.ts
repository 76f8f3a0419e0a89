/**
 * The inbox seam, where doors and the runtime meet. A door sees `Reception` (admit a letter, then follow its task). A
 * worker sees `Inbox` (lease, begin, append, settle). Both work on the same durable rows. The worker's interface is
 * small enough to call over HTTP: `molecule connect` runs the same runtime on a remote `Inbox`.
 */
import type { Artifact, MessageContent, Metadata, Part, StreamResponse, Task, TaskState } from '../protocol/a2a.ts'
import type { WaitsFor } from '../protocol/brief.ts'
import type { Envelope } from '../protocol/envelope.ts'
import type { FileDiff } from '../protocol/file-diff.ts'
import type { Sender } from '../protocol/request.ts'
import type { Statement } from '../store/store.ts'
import type { LetterPush, ReplyAddress } from './delivery.ts'

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

// ---- the door side

/** What a door hands to reception: who speaks, to which workspace, in which envelope. */
export interface Letter {
  /**
   * The id of the message and of the task that it opens: the id of the request that brought it, so that one id finds
   * both. A ULID.
   */
  readonly id?: string
  readonly workspaceId: string
  /** Who speaks, from token or door: `people`, `ws:<id>/<conversation>`, `token:<id>`, `schedule:<id>`, `discord:<channel>`. */
  readonly principal: string
  readonly sender: Sender
  readonly envelope: Envelope
  /** A delegation: the conversation whose turn sends it, from its token. */
  readonly parent?: DelegatingConversation
  /** From the `Idempotency-Key` header or the message; default: the messageId. */
  readonly idempotencyKey?: string
  /** Where a door pushes the answer, in addition to callers that wait for it. */
  readonly replyTo?: ReplyAddress
  /** A webhook of the task, which gets all its events. It is stored with the message, or neither is. */
  readonly push?: LetterPush
  /** Further writes to rows of the workspace that are committed with the message, or none is; also for a duplicate. */
  readonly commitWith?: (taskId: string) => Statement
  /** How long the message may wait for its first attempt; default: 24 hours. */
  readonly expiresInMs?: number
  /** The size of the request that brought it. Other callers run between the steps of work on a large one. */
  readonly bytes?: number
}

export interface DelegatingConversation {
  readonly workspaceId: string
  readonly conversationId: string
}

export interface Admitted {
  readonly taskId: string
  readonly contextId: string
  /** True when the same message was admitted before; then nothing was queued. */
  readonly duplicate: boolean
}

/** One stored row of the workspace's log. `wire` holds its A2A events, numbered by their index. */
export interface LogEntry {
  readonly seq: number
  readonly atMs: number
  readonly wire: readonly StreamResponse[]
}

/**
 * Contract: when `admit` resolves, the message is durable and gets exactly one outcome; a duplicate attaches to the
 * task of the first. `follow` yields every entry of the task after `afterSeq`, in commit order, each once. It ends when
 * the task is final or interrupted (with `untilFinal`: only when it is final) and every entry was yielded, or when the
 * signal aborts.
 */
export interface Reception {
  admit(letter: Letter): Promise<Admitted>
  /** Whether the sender's message of this key was admitted before. */
  isAdmitted(message: {
    readonly workspaceId: string
    readonly principal: string
    readonly key: string
  }): Promise<boolean>
  /** Admits, then waits like `waitForResult`. The turn of a letter's `parent` gives up its slot while it waits. */
  send(letter: Letter, options: SendAndWaitOptions, signal: AbortSignal): Promise<Task>
  /** The task as it is now; undefined where the view does not allow it. A view without a principal is the owner's. */
  task(taskId: string, view?: TaskView): Promise<Task | undefined>
  /** The task and the last number of its log, read together: a reader that follows from that number misses nothing. */
  snapshot(taskId: string, view?: TaskView): Promise<TaskSnapshot | undefined>
  /** One artifact of a settled reply, without reading the others; undefined where the task or the artifact is not. */
  artifact(taskId: string, artifactId: string, view?: TaskView): Promise<Artifact | undefined>
  /** A page ends at `limit` tasks or at 1 MiB, whichever comes first, and has at least one task. */
  list(query: TaskQuery): Promise<TaskPage>
  follow(taskId: string, options: FollowOptions, signal: AbortSignal): AsyncIterable<LogEntry>
  /**
   * Resolves with the task when it is final or interrupted, after `maxMs`, on abort, or at once when none of its turns
   * runs and the workspace is paused or offline. The status of such a task says why.
   */
  waitForResult(taskId: string, maxMs: number, signal: AbortSignal): Promise<Task | undefined>
  /**
   * The running turn of the reader has this result of a task that it delegated: once that turn is done, its conversation
   * does not get the result as a message. `reader` is the principal of the conversation; another reader changes nothing,
   * and neither does a task without a result. Where it changed something, the answer takes it back.
   */
  markRead(task: Task, reader: string): Promise<ForgetRead | undefined>
  /** The running turn of the conversation gives up its slot until the work has ended. `queue_full`: too many wait. */
  whileWaiting<T>(parent: DelegatingConversation, work: () => Promise<T>): Promise<T>
  /**
   * Commits `canceled` and stops a running turn; open tasks that the turn delegated are cancelled too. A second cancel
   * gives the same answer; other final states refuse.
   */
  cancel(taskId: string, view?: TaskView): Promise<Task>
}

/** The reader did not get the result after all: it is unread, while its turn runs. Never rejects. */
export type ForgetRead = () => Promise<void>

export interface FollowOptions {
  readonly afterSeq: number
  /** Also waits while the task waits for its caller. */
  readonly untilFinal?: boolean
  /** Each reply is one event, its last; otherwise it comes in chunks, as it is written. */
  readonly wholeReplies?: boolean
}

export interface SendAndWaitOptions {
  readonly maxMs: number
  /** Runs after admission and before the wait. */
  readonly onAdmitted?: (admitted: Admitted) => Promise<void>
}

export interface TaskSnapshot {
  readonly task: Task
  /** Where to follow from. Before the end of the log when the artifacts of a running turn are too large for a snapshot. */
  readonly seq: number
  /** The last entry of the log, where that is not `seq`. */
  readonly lastSeq?: number
  /** The oldest entry that the log still has. Entries before it were pruned. */
  readonly firstSeq: number
}

export interface TaskQuery {
  readonly workspaceId: string
  readonly principal?: string
  readonly contextId?: string
  readonly state?: TaskState
  readonly changedSinceMs?: number
  readonly historyLength?: number
  /** False: artifacts are neither read nor shown. */
  readonly artifacts?: boolean
  readonly detail?: boolean
  /** The last task of the page before. */
  readonly after?: { readonly updatedAtMs: number; readonly id: string }
  readonly limit: number
}

export interface TaskPage {
  readonly tasks: readonly Task[]
  /** How many of the last changed 10,000 tasks match, on all pages. */
  readonly total: number
  /** Where the next page begins. A page with a filter may be empty and have one. */
  readonly next?: { readonly updatedAtMs: number; readonly id: string }
}

export interface TaskView {
  readonly principal?: string
  readonly workspaceId?: string
  /** Unset = all, 0 = none, N = the last N messages. */
  readonly historyLength?: number
  /** False: artifacts are neither read nor shown. */
  readonly artifacts?: boolean
  /** A reply with more bytes is neither read nor shown: for lists, which show the first words. */
  readonly replyBytesMax?: number
  /** The reader is the owner: show what the program printed when it failed. */
  readonly detail?: boolean
}

// ---- the worker side

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

// ---- bridges: workers on other machines

export interface BridgeCall {
  readonly workspaceId: string
  /** The bridge's own name for itself; the same after its restart. */
  readonly bridge: string
  /** How many leases the bridge can hold at a time. */
  readonly leasesMax: number
  /** The leases that it holds, by `leaseId`. */
  readonly holding: readonly string[]
  readonly waitMs: number
}

/**
 * Contract: `lease` answers as soon as there is a directive, or with none after `waitMs`; a second call of the same
 * bridge ends the first. A lease that was claimed for a call whose caller has gone is released. The other methods are
 * those of `Inbox`; a key of another workspace is stale.
 */
export interface Bridges extends Omit<Inbox, 'leases' | 'settle'> {
  lease(call: BridgeCall, signal: AbortSignal): Promise<Directive[]>
  settle(key: LeaseKey, input: BridgeSettleInput): ReturnType<Inbox['settle']>
  /** True while a bridge of the workspace waits for work in this process. */
  isConnected(workspaceId: string): boolean
}

export interface BridgeSettleInput {
  readonly outcome: Outcome
  readonly unsent?: NumberedEvents
  /** The host on which the session of the outcome lives. */
  readonly host: string
}

// ---- the queue of a workspace as a whole

/**
 * Contract: a paused queue admits messages and leases none. A running turn goes on; with `now` it is killed and its
 * message waits again. `end` settles every open message with the failure and removes the queue, in one transaction, and
 * returns how many tasks it ended; a second `end` changes nothing.
 */
export interface WorkspaceQueues {
  pause(workspaceId: string, options: { readonly now: boolean }): Promise<void>
  /** Pauses the queue and cancels the task of every running turn, in one transaction; the ids of those tasks. */
  stop(workspaceId: string): Promise<readonly string[]>
  resume(workspaceId: string): Promise<void>
  /** A limit of the workspace changed: what waits for one (slots, turns of the hour, budget of the day) looks again now. */
  limitsChanged(workspaceId: string): Promise<void>
  /** Its messages that failed and wait for a late attempt are ready now: their worker was restarted or works again. */
  retryFailed(workspaceId: string): Promise<void>
  end(workspaceId: string, failure: Failure): Promise<number>
}
