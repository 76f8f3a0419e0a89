/**
 * The seam for owners: what needs a person's decision. Dead letters, permissions and rules, budgets that are spent, and one
 * list of all.
 */
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
  /** The rule for exactly this use. Absent: the agent does not say what it would do, or the text is too long. */
  readonly wouldCover?: RuleChoice
  /** A rule that covers more than this use; absent where none is suggested. */
  readonly wouldCoverMore?: RuleChoice
}

/** What a rule covers: uses of the tool whose subject is the pattern, or begins with it (`npm test *`, `/shop/src/`). */
export interface RulePattern {
  readonly tool: string
  readonly scope: 'exact' | 'prefix' | 'folder'
  readonly pattern: string
}

/** A rule that a person may make of an ask. The sentence says what it covers and what is still asked. */
export interface RuleChoice extends RulePattern {
  readonly sentence: string
}

/** An owner's "always allow": asks that it covers are allowed without a person. */
export interface Rule extends RulePattern {
  readonly id: string
  readonly workspaceId: string
  readonly maker: Answerer
  readonly madeAtMs: number
  /** How many asks it has allowed. */
  readonly used: number
  readonly lastUsedAtMs?: number
}

export interface Rules {
  /** The oldest first. `after` is the cursor of the page before. */
  list(workspaceId: string, after?: string): Promise<OwnersPage<Rule>>
  /** The asks that it covered are asked again from now on. */
  revoke(workspaceId: string, id: string, revoker: Answerer): Promise<void>
}

export type AskDecision = 'allowed' | 'denied'

/** Who answered an ask. */
export interface Answerer {
  readonly name: string
  readonly principal: string
  /** The door that the answer came through: `http`, `discord`. `rule`: a rule answered, and this is who made it. */
  readonly door: string
}

/** Contract: `answer` counts once. The same decision again changes nothing; another decision is refused. */
export interface PendingAsks {
  /** The oldest first. `after` is the cursor of the page before. */
  list(query: { readonly workspaceId?: string; readonly after?: string }): Promise<OwnersPage<PendingAsk>>
  answer(id: string, decision: AskDecision, answerer: Answerer): Promise<void>
  /**
   * Allows the ask and stores a rule in one transaction: the exact one, or the one with the pattern that the person saw.
   * Other open asks that the rule covers are allowed with it. A repeated call returns the same rule.
   */
  allowAlways(id: string, answerer: Answerer, pattern?: string): Promise<Rule>
}

/** A budget that is spent, and that messages wait for. It stays listed until an owner answers or nothing waits for it. */
export interface BudgetAsk {
  readonly id: string
  /** The workspace of the message that brought the budget, or the workspace whose day it is. */
  readonly workspaceId: string
  /** The task of that message; absent for the budget of a day. */
  readonly taskId?: string
  readonly limitUsd: number
  readonly spentUsd: number
  /** Turns that count and whose cost is not known. */
  readonly unknownTurns: number
  readonly waiting: number
  readonly text: string
  readonly askedAtMs: number
}

/** The budget that a task waits for. */
export interface BudgetWait {
  readonly budgetId: string
  readonly askedAtMs: number
  /** False: an owner stopped the budget of this day, and the task waits for the next day. */
  readonly isAsked: boolean
}

/** Contract: an answer counts once. The same answer again changes nothing; another one is refused. */
export interface Budgets {
  /** The oldest first. `id`: this one, if it still needs an answer. */
  list(query: { readonly workspaceId?: string; readonly id?: string }): Promise<readonly BudgetAsk[]>
  /** Undefined when no message of the task waits for a budget. */
  waitOf(taskId: string): Promise<BudgetWait | undefined>
  /** The messages that wait go on. A raise of a day's budget counts for that day. */
  raise(id: string, toUsd: number, answerer: Answerer): Promise<void>
  /** Cancels the messages that wait, and in a tree also those that follow. */
  stop(id: string, answerer: Answerer): Promise<void>
}

export type NeedKind =
  | 'permission'
  | 'question'
  | 'dead_letter'
  | 'delivery'
  | 'damaged_reply'
  | 'login'
  | 'workspace'
  | 'budget'
  | 'turn_limit'
  | 'pairing'
  | 'schedule'

/** Replies whose stored bytes changed. They are listed as needs. */
export interface DamagedReplies {
  /** A person has seen it. Throws `not_found`. */
  dismiss(messageId: string): Promise<void>
}

/** One thing that waits for a person. */
export interface Need {
  readonly kind: NeedKind
  /** Unique within its kind. */
  readonly id: string
  /** Empty for a pairing with a bot that has no workspace of its own. */
  readonly workspaceId: string
  /** Absent where it is not known. */
  readonly sinceMs?: number
  /** Why it needs a person: one line, without a full stop. */
  readonly reason: string
  readonly expiresInMs?: number
  readonly taskId?: string
  readonly contextId?: string
  /** The question, the message that failed, or the answer that may not have arrived; cut after some hundred characters. */
  readonly text?: string
  /** Of a delivery: the door and the channel. */
  readonly to?: string
  /** Of a permission. */
  readonly ask?: PendingAsk
  readonly budget?: BudgetAsk
}

export interface NeedSummary {
  readonly count: number
  /** Differs after each change of the list. */
  readonly mark: string
}

/** Contract: one kind of need. `list` has the oldest first, and without `workspaceId` those of all workspaces. */
export interface NeedSource {
  readonly kind: NeedKind
  summary(workspaceId?: string): Promise<NeedSummary>
  list(query: { readonly workspaceId?: string; readonly after?: string }): Promise<OwnersPage<Need>>
}
