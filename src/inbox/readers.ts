/** The seam for readers: the activity log of a workspace, the story of one message, what turns used, and the load. */
import type { TaskState } from '../protocol/a2a.ts'
import type { Sender } from '../protocol/request.ts'

// ---- activity

export interface ActivityQuery {
  readonly workspaceId: string
  /** The last entry that the reader knows; 0 = start at the oldest that is kept. */
  readonly sinceSeq: number
  readonly type?: string
  readonly limit: number
  /** Return the last entries instead of the first ones after `sinceSeq`. */
  readonly newest?: boolean
}

/** One thing that happened. Entries that were stored together share a number. */
export interface ActivityEntry {
  readonly seq: number
  readonly atMs: number
  /** status, reply, retry, late, tool, progress, artifact, or the type of a note. */
  readonly type: string
  readonly taskId?: string
  readonly state?: string
  readonly name?: string
  readonly text?: string
  /** The author of a note. */
  readonly by?: string
}

export interface ActivityPage {
  readonly entries: readonly ActivityEntry[]
  /** The cursor for the next page; unchanged when nothing is new. */
  readonly nextSeq: number
}

/** A line that a person or an agent writes into the activity log. */
export interface ActivityNote {
  readonly type: string
  readonly text: string
  readonly by: string
}

/**
 * All entries of one row of the log. Pieces of a reply are entries of the type `text`. Readers at the same place get the
 * same object, so that it can be written as text once for all of them.
 */
export interface ActivityRow {
  readonly seq: number
  readonly entries: readonly ActivityEntry[]
}

/**
 * Contract: `read` and `resolveCursor` throw `pruned` where rows between the cursor and the kept log are gone. `follow`
 * yields every row after `afterSeq`, in commit order, each once, until the signal aborts or the workspace is deleted.
 */
export interface Activity {
  read(query: ActivityQuery): Promise<ActivityPage>
  /** Where to follow from: the given number if the log still continues there; without one, the end of the log. */
  resolveCursor(workspaceId: string, afterSeq: number | undefined): Promise<number>
  follow(workspaceId: string, afterSeq: number, signal: AbortSignal): AsyncIterable<ActivityRow>
  /** The next rows after a number, a few hundred at most; undefined when the workspace is deleted and all was read. */
  page(workspaceId: string, afterSeq: number): Promise<readonly ActivityRow[] | undefined>
  /** The last number of every workspace's log. */
  heads(): Promise<ReadonlyMap<string, number>>
  /** Calls back with the workspace whose log may have grown, or without one where any may have. A hint only. */
  onChange(callback: (workspaceId?: string) => void): () => void
  /** Returns the note's number. */
  addNote(workspaceId: string, note: ActivityNote): Promise<number>
}

// ---- the story of one message

export interface StoryStep {
  readonly atMs: number
  /**
   * admitted, started, progress, asked, resumed, failed, lost, answered, ended, late, waiting, running, replayed,
   * discarded.
   */
  readonly type: string
  readonly text: string
}

/** What was pushed because of the message: by a door, or to a webhook of its task. */
export interface StoryDelivery {
  readonly to: string
  readonly state: string
  readonly tries: number
  readonly error?: string
}

export interface Story {
  readonly messageId: string
  readonly taskId: string
  readonly workspaceId: string
  readonly contextId: string
  readonly sender: Sender
  /** The id that the sender gave the message. */
  readonly senderMessageId: string
  readonly text: string
  readonly taskState: TaskState
  readonly steps: readonly StoryStep[]
  readonly deliveries: readonly StoryDelivery[]
  /** The cursor of the later steps; absent where these are the last. */
  readonly next?: string
}

/** What a reader may see of the tasks of a workspace; no principal = all of them. */
export interface StoryScope {
  readonly principal?: string
  /** The reader is the owner: show what the program printed when it failed. */
  readonly detail?: boolean
}

export interface StoryQuery {
  /** The id of a message (also the id of the task that it opened), or the id that its sender gave it. */
  readonly id: string
  /** The `next` of an earlier part of the story. */
  readonly after?: string
  readonly scopeOf: (workspaceId: string) => StoryScope
}

export interface Stories {
  /** Undefined where there is no such message for this reader. */
  find(query: StoryQuery): Promise<Story | undefined>
}

// ---- usage

/** Older rows are pruned, so no report covers more days. */
export const USAGE_DAYS_MAX = 90

/** Sums over turns. A sum is null where no turn reported a number; `unknownTurns` did not report all of them. */
export interface UsageSum {
  readonly turns: number
  readonly unknownTurns: number
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  readonly costUsd: number | null
  readonly durationMs: number | null
}

export interface UsageReport {
  readonly total: UsageSum
  /** UTC days that had turns, the latest first. */
  readonly days: readonly (UsageSum & { readonly day: string })[]
  /** The latest messages, each with the sum of its turns. */
  readonly messages: readonly (UsageSum & { readonly messageId: string; readonly taskId: string })[]
}

export interface UsageQuery {
  readonly workspaceId: string
  /** Today and the days before it. */
  readonly days: number
  /** How many of the latest messages. */
  readonly messages: number
}

export interface UsageReader {
  /** Throws `not_found` where the workspace does not exist. */
  read(query: UsageQuery): Promise<UsageReport>
}

// ---- load

export interface LoadReport {
  /** Messages that wait and turns that run, in all workspaces. */
  readonly waiting: number
  readonly running: number
  /** The busiest workspaces, the longest queue first. */
  readonly workspaces: readonly {
    readonly id: string
    readonly waiting: number
    readonly running: number
    /** How long the oldest message that could run has waited. */
    readonly oldestWaitingMs: number
  }[]
}
