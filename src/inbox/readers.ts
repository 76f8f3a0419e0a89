/** The seam for readers: activity, conversations, the story of one message, usage. */
import type { Artifact, Part } from '../protocol/a2a.ts'
import type { FileDiff } from '../protocol/file-diff.ts'
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
  /** Only entries with a smaller number. */
  readonly beforeSeq?: number
  /** Also return the first words of the message of each task on the page. */
  readonly withTitles?: boolean
}

/** One thing that happened. Entries that were stored together share a number. */
export interface ActivityEntry {
  readonly seq: number
  readonly atMs: number
  /** status, reply, partial, retry, late, tool, progress, artifact, permission, rule, delegated, or the type of a note. */
  readonly type: string
  readonly taskId?: string
  /** Of the task. */
  readonly conversationId?: string
  readonly state?: string
  readonly name?: string
  /**
   * Of a tool: what exactly it does. Of a delegation: the id of its task; `name` is the workspace. Of a rule, and of a
   * permission that a rule allowed: the pattern.
   */
  readonly subject?: string
  /** Of a tool that ended: the files that it changed, where the agent reports them. */
  readonly diffs?: readonly FileDiff[]
  readonly text?: string
  /** The author of a note, the person who answered a permission ask, or the maker of the rule that did. */
  readonly by?: string
  /** Of the answer to a permission ask. */
  readonly principal?: string
  readonly door?: string
}

export interface ActivityPage {
  readonly entries: readonly ActivityEntry[]
  /** The cursor for the next page; unchanged when nothing is new. */
  readonly nextSeq: number
  /** The number of the first row of the page: the `beforeSeq` of the page before it. Absent where nothing was found. */
  readonly firstSeq?: number
  /** By task. */
  readonly titles?: ReadonlyMap<string, string>
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

// ---- conversations, as a chat shows them

/** `parked`: tried again at a time, for another reason than a limit of the model provider. */
export type ChatState =
  | 'queued'
  | 'running'
  | 'waiting_for_you'
  | 'rate_limited'
  | 'parked'
  | 'answered'
  | 'failed'
  | 'stopped'

export interface ChatQuery {
  readonly workspaceId: string
  /** Its id, the context id of a conversation of people, or the id of a message or task of it. */
  readonly conversation: string
  readonly limit: number
  /** Only messages before this number. */
  readonly before?: number
  /** The page has this message in its middle: its id, or that of its task. */
  readonly at?: string
  /** The reader is an owner: show what the program printed when it failed. */
  readonly detail: boolean
}

export interface ChatTool {
  readonly name: string
  readonly subject?: string
  readonly state: 'started' | 'finished' | 'failed'
  readonly diffs?: readonly FileDiff[]
  readonly atMs: number
  /** Absent where its end is not known. Without the time that a person took to answer. */
  readonly durationMs?: number
  /** While it runs: how long it has waited for a person. */
  readonly waitedMs?: number
}

/** A permission that the running turn asks for. */
export interface ChatAsk {
  readonly id: string
  readonly tool: string
  readonly subject: string
  readonly askedAtMs: number
  readonly expiresAtMs: number
}

export interface ConversationMessage {
  readonly id: string
  readonly taskId: string
  /** Its place in the conversation, from 1. */
  readonly n: number
  readonly senderMessageId: string
  readonly sender: Sender
  readonly parts: readonly Part[]
  readonly state: ChatState
  /** Messages of the conversation that come before it, while it is queued. */
  readonly place?: number
  readonly nextTryAtMs?: number
  /** While it is queued: why its workspace starts no message now. */
  readonly workspaceIs?: 'paused' | 'offline'
  /** Why it waits, failed or asks, in one sentence; of an answered one a notice of the platform. */
  readonly reason?: string
  readonly code?: string
  /** For the owner: the program's own text. */
  readonly detail?: string
  readonly admittedAtMs: number
  /** When its last attempt began. */
  readonly startedAtMs?: number
  readonly endedAtMs?: number
  readonly lostTurns?: number
  readonly reply?: {
    readonly parts: readonly Part[]
    readonly artifacts: readonly Artifact[]
    readonly isPartial: boolean
  }
  readonly tools: readonly ChatTool[]
  /** There are more tools than are shown; the activity has them. */
  readonly hasMoreTools?: boolean
  /** Absent where no turn reported or cost anything. */
  readonly usage?: UsageSum
  readonly ask?: ChatAsk
  /** Of a dead letter: an owner has replayed or discarded it. */
  readonly isHandled?: boolean
  readonly replayedAs?: string
}

export interface ChatPage {
  /** There are messages after these. */
  readonly hasNewer: boolean
  readonly id: string
  readonly contextId: string
  readonly principal: string
  /** The oldest first. */
  readonly messages: readonly ConversationMessage[]
  /** The last number of the workspace's log when this was read: follow from here. */
  readonly seq: number
  /** Send it to read the messages before these; absent where there are none. */
  readonly before?: number
}

/** Contract: `read` throws `not_found` for an unknown conversation. Pages end at 1 MiB and have at least one row. */
export interface Conversations {
  read(query: ChatQuery): Promise<ChatPage>
}

// ---- usage

/** Sums over turns. A sum is null where no turn reported a number; `unknownTurns` did not report all of them. */
export interface UsageSum {
  readonly turns: number
  readonly unknownTurns: number
  /** Turns that did not report their cost. */
  readonly unknownCostTurns: number
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  readonly costUsd: number | null
  readonly durationMs: number | null
}
