/**
 * The seam of the doors. A door turns what arrives into a letter and calls `admit`: one durable row, and only then is the
 * sender told "accepted". Everything that shows a task follows its log from here.
 */
import type { Artifact, StreamResponse, Task, TaskState } from '../protocol/a2a.ts'
import type { Envelope } from '../protocol/envelope.ts'
import type { Sender } from '../protocol/request.ts'
import type { Statement } from '../store/store.ts'
import type { LetterPush, ReplyAddress } from './delivery.ts'

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
   * does not get the result as a message. Another reader changes nothing, and neither does a task without a result. Call it
   * before the answer is sent, because the turn may end right after it; an answer that never left takes it back.
   */
  markRead(task: Task, reader: ResultReader, answer?: SentAnswer): Promise<void>
  /** The running turn of the conversation gives up its slot until the work has ended. `queue_full`: too many wait. */
  whileWaiting<T>(parent: DelegatingConversation, work: () => Promise<T>): Promise<T>
  /**
   * Commits `canceled` and stops a running turn; open tasks that the turn delegated are cancelled too. A second cancel
   * gives the same answer; other final states refuse.
   */
  cancel(taskId: string, view?: TaskView): Promise<Task>
  /**
   * Replaces the text of a message that no turn has seen; its files stay. False when its turn has begun, or it is not
   * known. Nothing else changes: it keeps its place, and no event is written.
   */
  amend(message: UntriedMessage, text: string): Promise<boolean>
  /** Cancels the task of such a message. False as in `amend`, and where the task has further messages. */
  withdraw(message: UntriedMessage): Promise<boolean>
}

/** A message by its task and the key of its admission. */
export interface UntriedMessage {
  readonly taskId: string
  readonly key: string
}

/** A caller; only the token of a turn has a conversation. */
export interface ResultReader {
  readonly principal: string
  readonly conversationId?: string | undefined
}

/** The connection that an answer is sent over. It emits `close` once: after the answer, or when the caller disconnects. */
export interface SentAnswer {
  once(event: 'close', listener: () => void): unknown
  /** Whether the whole answer was sent, and whether the connection is gone. Absent where the door cannot tell. */
  readonly writableFinished?: boolean
  readonly destroyed?: boolean
}

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
