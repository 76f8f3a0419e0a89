/** The search over stored messages, as its readers see it. */
import type { Sender } from '../protocol/request.ts'

export interface MessageSearch {
  /** Absent: all workspaces. */
  readonly workspaceId?: string
  /** In any case. */
  readonly text: string
  readonly limit: number
  /** The `next` of the page before. */
  readonly after?: string
}

/** A message that contains the text, or whose answer does. */
export interface MessageHit {
  readonly messageId: string
  readonly taskId: string
  readonly workspaceId: string
  readonly conversationId: string
  readonly contextId: string
  readonly principal: string
  readonly n: number
  readonly sender: Sender
  readonly atMs: number
  readonly place: 'message' | 'answer'
  /** The words around it. */
  readonly excerpt: string
}

export interface MessageHitPage {
  readonly hits: readonly MessageHit[]
  /** There may be more; a page may be empty and still have one. */
  readonly next?: string
}
