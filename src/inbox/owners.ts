/**
 * The seam for owners: decisions about what needs a person (listed by `views/needs/`): dead letters, permissions and rules,
 * budgets that are spent, damaged replies.
 */

export interface DeadLetters {
  /** Admits it again as a new task in the same conversation and returns the task's id. A second replay is the first. */
  replay(workspaceId: string, messageId: string): Promise<string>
  discard(workspaceId: string, messageId: string): Promise<void>
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
  readonly maker: Answerer
}

export interface Rules {
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
  answer(id: string, decision: AskDecision, answerer: Answerer): Promise<void>
  /**
   * Allows the ask and stores a rule in one transaction: the exact one, or the one with the pattern that the person saw.
   * Other open asks that the rule covers are allowed with it. A repeated call returns the same rule.
   */
  allowAlways(id: string, answerer: Answerer, pattern?: string): Promise<Rule>
}

/** Contract: an answer counts once. The same answer again changes nothing; another one is refused. */
export interface Budgets {
  /** The messages that wait go on. A raise of a day's budget counts for that day. */
  raise(id: string, toUsd: number, answerer: Answerer): Promise<void>
  /** Cancels the messages that wait, and in a tree also those that follow. */
  stop(id: string, answerer: Answerer): Promise<void>
}

/** Replies whose stored bytes changed. They are listed as needs. */
export interface DamagedReplies {
  /** A person has seen it. Throws `not_found`. */
  dismiss(messageId: string): Promise<void>
}
