/**
 * The inbox seam, where doors and the runtime meet. Two faces of one durable thing: `Reception` is what a door sees
 * (admit, then follow), `Inbox` is what a worker sees (lease, extend, append, settle). The worker's face is small
 * enough to be spoken over HTTP: `molecule connect` is the same runtime on a remote Inbox.
 */
import type {
  Artifact,
  Message,
  MessageContent,
  Metadata,
  Part,
  StreamResponse,
  Task,
  TaskState,
} from '../protocol/a2a.ts'
import type { Envelope } from '../protocol/envelope.ts'
import type { Sender } from '../protocol/request.ts'
import type { DeliveryBody, ReplyAddress } from './deliver/delivery-rows.ts'

/**
 * The moments between two steps at which a crash matters most. Whoever is given them is told when one is passed;
 * tests kill the process there.
 */
export type Checkpoint =
  /** A message is durable and its sender has not been told. */
  | 'admitted'
  /** A worker holds the lease and has started nothing. */
  | 'leased'
  /** The backend has ended and nothing of it is stored. */
  | 'answered'
  /** The outcome is stored and nobody has been told. */
  | 'settled'

// ---- the door's face

/** What a door hands in: who speaks, to whom, and the envelope the message came in. */
export interface Letter {
  /**
   * What the message will be called, and the task that it opens: the id of the request that brought it, so that who
   * knows one finds the other. A ULID.
   */
  readonly id?: string
  readonly workspaceId: string
  /** Who speaks, from token or door: `people`, `ws:<id>`, `token:<id>`, `schedule:<id>`, `discord:<channel>`. */
  readonly principal: string
  readonly sender: Sender
  readonly envelope: Envelope
  /** From the `Idempotency-Key` header or the message; the messageId where absent. */
  readonly idempotencyKey?: string
  /** Where the answer is pushed to, besides whoever waits for it. */
  readonly replyTo?: ReplyAddress
  /** How long it may wait for its first attempt; 24 hours where unset. */
  readonly expiresInMs?: number
}

export interface Admitted {
  readonly taskId: string
  readonly contextId: string
  /** True when the same message had been admitted before; then nothing was queued. */
  readonly duplicate: boolean
}

/** One stored row of the workspace's log; `wire` are the A2A events it stands for, numbered by their index. */
export interface LogEntry {
  readonly seq: number
  readonly atMs: number
  readonly wire: readonly StreamResponse[]
}

/**
 * Contract: when `admit` has resolved the message is durable and will have exactly one outcome; a duplicate attaches
 * to the task of the first. `follow` yields every entry of the task after `afterSeq`, in commit order, each once, and
 * ends when the task is final or interrupted and all was yielded, or when the signal aborts.
 */
export interface Reception {
  admit(letter: Letter): Promise<Admitted>
  /** Admits, and waits like `settled`. */
  send(letter: Letter, sending: SendAndWaitOptions, signal: AbortSignal): Promise<Task>
  /** The task as it is now, or undefined for a stranger: tasks are seen by their principal; no principal = the owner. */
  task(taskId: string, options?: TaskView): Promise<Task | undefined>
  /** The task and the number of the last entry of its log, read at one moment: following on from there misses nothing. */
  snapshot(taskId: string, view?: TaskView): Promise<TaskSnapshot | undefined>
  list(query: TaskQuery): Promise<TaskPage>
  follow(taskId: string, afterSeq: number, signal: AbortSignal): AsyncIterable<LogEntry>
  /** Resolves when the task is final or interrupted, or after `maxMs`, or on abort: with the task as it then is. */
  waitForResult(taskId: string, maxMs: number, signal: AbortSignal): Promise<Task | undefined>
  /** Commits `canceled`; a running turn is told to stop. Again = the same answer; another final state refuses. */
  cancel(taskId: string, options?: TaskView): Promise<Task>
}

export interface SendAndWaitOptions {
  readonly maxMs: number
  /** What has to be done between admission and waiting. */
  readonly onAdmitted?: (admitted: Admitted) => Promise<void>
}

export interface TaskSnapshot {
  readonly task: Task
  readonly seq: number
  /** The oldest entry that the log still has; a cursor before it has been pruned. */
  readonly firstSeq: number
}

export interface TaskQuery {
  readonly workspaceId: string
  readonly principal?: string
  readonly contextId?: string
  readonly state?: TaskState
  readonly changedSinceMs?: number
  readonly historyLength?: number
  readonly detail?: boolean
  /** Where the last page ended. */
  readonly after?: { readonly updatedAtMs: number; readonly id: string }
  readonly limit: number
}

export interface TaskPage {
  readonly tasks: readonly Task[]
  /** How many match in all. */
  readonly total: number
  readonly next?: { readonly updatedAtMs: number; readonly id: string }
}

export interface TaskView {
  readonly principal?: string
  readonly workspaceId?: string
  /** Unset = all, 0 = none, N = the last N messages. */
  readonly historyLength?: number
  /** The owner looks: what a program said when it failed is shown. */
  readonly detail?: boolean
}

// ---- the worker's face

/** A worker: the runtime of this process, or a bridge somewhere else. */
export interface Worker {
  readonly id: string
  /** Which workspaces it works for: all that are hosted here, or the ones named. */
  readonly workspaces: 'hosted' | readonly string[]
}

/** The key of a held message. The epoch fences: when another worker took over, every later word of this one is stale. */
export interface LeaseKey {
  readonly workspaceId: string
  readonly conversationId: string
  readonly taskId: string
  readonly messageId: string
  readonly epoch: number
}

/** Names a lease in one text. The epoch is part of it, because a takeover by the same worker is another lease. */
export const leaseId = ({ messageId, epoch }: Pick<LeaseKey, 'messageId' | 'epoch'>): string => `${messageId}.${epoch}`

export interface Lease extends LeaseKey {
  readonly contextId: string
  readonly principal: string
  readonly sender: Sender
  readonly envelope: Envelope
  readonly idempotencyKey: string
  /** Lifetime counters before this attempt: the backend said failed; the worker vanished. */
  readonly failures: number
  readonly losses: number
  /** An earlier attempt began and did not end properly: the prompt says so. */
  readonly interrupted: boolean
  /** The one fresh re-run after a lost session has been used. */
  readonly sessionRetried: boolean
}

/** What a turn tells while it runs. Appended in order under a counter, so that repeating an append adds nothing. */
export type TurnEvent =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'artifact'; readonly artifact: Artifact; readonly append: boolean; readonly lastChunk: boolean }
  | { readonly type: 'tool'; readonly name: string; readonly state: 'started' | 'finished' | 'failed' }
  /** `said` is what the task's status says on the wire; the text alone is for whoever watches. */
  | { readonly type: 'status'; readonly text: string; readonly said?: MessageContent }

export interface Usage {
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly costUsd?: number
  readonly durationMs?: number
}

/** What went wrong, in the form that is stored: our code, one sentence, and details for the owner. */
export interface Failure {
  readonly code: string
  /** In the program's own words, secrets masked: for the owner. */
  readonly message: string
  /** What everybody is told instead, where the message is not ours: one sentence, and what kind of failure it is. */
  readonly sentence?: string
  readonly category?: string
  /** Under which the log has everything. */
  readonly id?: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** How a turn ends, and what it used: every end of one that is paid for has cost something. */
export type Outcome = End & { readonly usage?: Usage }

type End =
  | {
      readonly type: 'done'
      readonly finality: 'completed' | 'input_required' | 'auth_required' | 'rejected'
      readonly parts: readonly Part[]
      /** What the turn made besides its reply, whole. */
      readonly artifacts: readonly Artifact[]
      /** Of the reply. */
      readonly metadata?: Metadata
      /** What the task's status says, where that is not the reply itself. */
      readonly said?: MessageContent
      readonly session?: string
    }
  /** Run again after `afterMs`. `session_lost` drops the session and is counted against neither counter. */
  | {
      readonly type: 'retry'
      readonly failure: Failure
      readonly afterMs: number
      readonly reason: 'failure' | 'session_lost'
      /** The attempt may have done things before it broke off: the next prompt says so. */
      readonly interrupted: boolean
    }
  /** What the turn made before it failed stays to be seen. */
  | { readonly type: 'dead'; readonly failure: Failure; readonly artifacts?: readonly Artifact[] }
  /** A cancelled turn has ended; its conversation is free again. */
  | { readonly type: 'stopped' }
  /** Given back (drain, or never begun); counted against nothing. Parked: not before that time, and why. */
  | {
      readonly type: 'released'
      readonly interrupted: boolean
      readonly parked?: { readonly afterMs: number; readonly said: MessageContent }
    }

/** What the inbox says of a lease: still held, told to stop, or taken over. */
export type LeaseStanding = 'held' | 'stop' | 'stale'

/** What a worker is handed: work, or the word that work it holds was cancelled. */
export type Directive =
  | { readonly type: 'lease'; readonly lease: Lease }
  | { readonly type: 'stop'; readonly key: LeaseKey }
  /** What a person said to a question of this turn: undefined = denied, or nobody answered in time. May come again. */
  | {
      readonly type: 'answer'
      readonly key: LeaseKey
      readonly askId: string
      readonly parts: readonly Part[] | undefined
    }

/** Events of a turn with the number of the first; numbers start at 1 for each lease. */
export interface NumberedEvents {
  readonly from: number
  readonly events: readonly TurnEvent[]
  /** For the next attempt at the message, by key; a later value of a key replaces the earlier. */
  readonly notes?: Readonly<Record<string, string>>
}

/**
 * Contract: `leases` hands out each lease once; what was claimed but not taken when the signal aborts is released.
 * `append` and `settle` are idempotent: the same number, or the same outcome under the same epoch, changes nothing
 * the second time. A settle is valid while its epoch is current, even after the lease time ran out.
 */
export interface Inbox {
  leases(worker: Worker, signal: AbortSignal): AsyncIterable<Directive>
  extend(keys: readonly LeaseKey[]): Promise<LeaseStanding[]>
  append(key: LeaseKey, events: NumberedEvents): Promise<LeaseStanding>
  /** Events not yet appended and the outcome, in one transaction. `stale`: this result is not the reply. */
  settle(key: LeaseKey, outcome: Outcome, unsent?: NumberedEvents): Promise<'settled' | 'stale'>
  /** The turn waits: it keeps lease and conversation and gives up its slot. Refused when too many wait already. */
  suspend(key: LeaseKey): Promise<LeaseStanding | 'refused'>
  /** The wait is over: the turn takes its slot back, over the limit if need be. */
  resume(key: LeaseKey): Promise<LeaseStanding>
  /** Puts a question to whoever sent the task and suspends the turn; the answer comes as a directive. One at a time. */
  ask(key: LeaseKey, question: Ask): Promise<LeaseStanding | 'refused'>
}

/** A question of a running turn; its id is unique to the turn, so that asking again asks nothing twice. */
export interface Ask {
  readonly id: string
  readonly parts: readonly Part[]
  /** It asks whether it may do exactly this: for the owners to answer, not for whoever sent the task. */
  readonly permission?: { readonly tool: string; readonly subject: string }
  /** No answer by then is a denial; 30 minutes where unset. */
  readonly timeoutMs?: number
}

// ---- what needs a person

/** A message that has failed for good, until it is replayed or discarded. */
export interface DeadLetter {
  readonly id: string
  readonly taskId: string
  readonly contextId: string
  readonly principal: string
  readonly sender: Sender
  readonly message: Message
  readonly code: string
  readonly reason: string
  /** The program's own words, for the owner. */
  readonly detail?: string
  readonly failures: number
  readonly losses: number
  readonly atMs: number
}

export interface DeadLetters {
  list(workspaceId: string): Promise<DeadLetter[]>
  /** Admits it again as a new task in the same conversation; replaying twice is one replay. Gives the task's id. */
  replay(workspaceId: string, messageId: string): Promise<string>
  discard(workspaceId: string, messageId: string): Promise<void>
}

// ---- how much there is

export interface LoadReport {
  /** Messages that wait and turns that run, of all workspaces. */
  readonly waiting: number
  readonly running: number
  /** The busiest, the longest queue first. */
  readonly workspaces: readonly {
    readonly id: string
    readonly waiting: number
    readonly running: number
    /** How long its oldest message that could run has been waiting. */
    readonly oldestWaitingMs: number
  }[]
}

// ---- a workspace's queue as a whole

/**
 * Contract: a paused queue takes messages in and hands none out; a running turn goes on, or with `now` is killed and
 * its message waits again. `end` settles all that is open with the failure, in one step with taking the queue away,
 * and gives the number of tasks it ended; again = nothing.
 */
export interface WorkspaceQueues {
  pause(workspaceId: string, options: { readonly now: boolean }): Promise<void>
  resume(workspaceId: string): Promise<void>
  end(workspaceId: string, failure: Failure): Promise<number>
}

// ---- what doors push out

export interface Delivery {
  readonly id: string
  readonly workspaceId: string
  readonly taskId: string
  readonly channel: string
  readonly body: DeliveryBody
  /** How often it was tried before. */
  readonly tries: number
}

/** How a try ended. `unknown`: it may have arrived, and only a person may decide to send it again. */
export type DeliveryResult =
  | { readonly type: 'sent'; readonly receipt?: string }
  | { readonly type: 'failed'; readonly error: string; readonly final?: boolean }
  | { readonly type: 'unknown'; readonly error: string }

/**
 * Contract: `take` gives the next due delivery of a door and commits it as `sending` first; deliveries of a channel
 * come in order, one in flight. One found `sending` at start may have happened: it becomes `unknown` and is never
 * sent again by itself.
 */
export interface Deliveries {
  take(door: string): Promise<Delivery | undefined>
  finish(id: string, result: DeliveryResult): Promise<void>
  /** What a person has to look at: given up, or unknown. */
  needingDecision(): Promise<(Delivery & { readonly state: 'failed' | 'unknown'; readonly error: string })[]>
  /** A person's word on one of those: send it again, or let it be. */
  resolve(id: string, decision: 'resend' | 'dismiss'): Promise<void>
}
