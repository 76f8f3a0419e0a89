/** The seam for readers: conversations. */
import type { Artifact, Part } from '../protocol/a2a.ts'
import type { FileDiff } from '../protocol/file-diff.ts'
import type { Sender } from '../protocol/request.ts'

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
  /** The question of the running turn that this message answered. */
  readonly answers?: string
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
