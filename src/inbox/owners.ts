/** The seam for owners: what needs a person's decision. Dead letters, and permissions that running turns ask for. */
import type { Message } from '../protocol/a2a.ts'
import type { Sender } from '../protocol/request.ts'

/** A message that failed for good. It stays listed until a person replays or discards it. */
export interface DeadLetter {
  readonly id: string
  readonly taskId: string
  readonly contextId: string
  readonly principal: string
  readonly sender: Sender
  readonly message: Message
  readonly code: string
  readonly reason: string
  /** The program's own text, for the owner only. */
  readonly detail?: string
  readonly failures: number
  readonly losses: number
  readonly atMs: number
}

/** A page of a list that people handle. It ends at a number of rows or at 1 MiB, and has at least one row. */
export interface OwnersPage<Row> {
  readonly rows: readonly Row[]
  /** The cursor of the next page; absent on the last one. */
  readonly next?: string
}

export interface DeadLetters {
  /** The newest first. `after` is the cursor of the page before. */
  list(workspaceId: string, after?: string): Promise<OwnersPage<DeadLetter>>
  /** Admits it again as a new task in the same conversation and returns the task's id. A second replay is the first. */
  replay(workspaceId: string, messageId: string): Promise<string>
  discard(workspaceId: string, messageId: string): Promise<void>
}

/** An open permission ask of a running turn. */
export interface PendingAsk {
  readonly id: string
  readonly workspaceId: string
  readonly taskId: string
  readonly messageId: string
  readonly tool: string
  /** Exactly what the agent would do. */
  readonly subject: string
  readonly askedAtMs: number
  readonly expiresInMs: number
}

export type AskDecision = 'allowed' | 'denied'

/** Contract: `answer` counts once. The same decision again changes nothing; another decision is refused. */
export interface PendingAsks {
  /** The oldest first. `after` is the cursor of the page before. */
  list(query: { readonly workspaceId?: string; readonly after?: string }): Promise<OwnersPage<PendingAsk>>
  /** `by` names the person who decided. */
  answer(id: string, decision: AskDecision, by: string): Promise<void>
}
