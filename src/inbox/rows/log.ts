/**
 * The rows of the event log, and the counters of a workspace. A stored row holds several items; `log-wire.ts` makes events
 * of them. A transaction takes its numbers last, so commit order is number order, and a reader that asks for "after N" never
 * misses a row that committed late.
 */
import type { Part, TaskState } from '../../protocol/a2a.ts'
import { type Statement, statement } from '../../store/store.ts'
import type { Answerer, AskDecision } from '../owners.ts'
import type { TurnEvent } from '../worker.ts'
import type { StatusMessage } from './status-message.ts'

export type LogItem =
  | ({ readonly t: 'status'; readonly state: TaskState } & Partial<StatusMessage>)
  /** A new attempt begins: the partial reply so far is void. */
  | { readonly t: 'reset' }
  /** The whole reply, or what a cancelled turn had written of it; its content is stored with the message. */
  | { readonly t: 'reply'; readonly partial?: true }
  /** A result that came after a takeover; kept for the owner, never the reply. */
  | { readonly t: 'late'; readonly parts: readonly Part[] }
  | { readonly t: 'turn'; readonly event: TurnEvent }
  /** The turn delegated to a workspace, as that task. */
  | { readonly t: 'delegated'; readonly taskId: string; readonly workspace: string }
  /** A step of a budget. */
  | {
      readonly t: 'budget'
      readonly step: 'asked' | 'raised' | 'stopped'
      readonly text: string
      /** The name of the person who answered. */
      readonly by?: string
    }
  /** An activity note of a person or an agent. */
  | { readonly t: 'note'; readonly type: string; readonly text: string; readonly by: string }
  /** The decision about a permission ask. Without an answerer: no answer came in time. */
  | {
      readonly t: 'permission'
      readonly decision: AskDecision
      readonly tool: string
      readonly answerer?: Answerer
      /** The pattern of the rule that decided; the answerer is its maker. */
      readonly pattern?: string
    }
  /** An owner made or revoked a rule. */
  | {
      readonly t: 'rule'
      readonly change: 'made' | 'revoked'
      readonly tool: string
      readonly pattern: string
      readonly answerer: Answerer
    }

/** The door of an answerer that is a rule. */
export const RULE_DOOR = 'rule'

export interface NewLogEntry {
  /** Absent for what belongs to the workspace as a whole. */
  readonly taskId?: string
  readonly messageId?: string
  readonly items: readonly LogItem[]
}

/** The counters and log entries that one transaction changes. */
export interface Change {
  readonly workspaceId: string
  readonly running?: number
  readonly suspended?: number
  readonly waiting?: number
  readonly entries?: readonly NewLogEntry[]
}

/**
 * Always the last statements of a transaction: one update of counters and sequence, then the log rows under the numbers
 * that it took. The rows read the sequence in SQL, so they can go to the database together with other writes.
 */
export function recordChange(change: Change): Statement[] {
  const { workspaceId, running = 0, suspended = 0, waiting = 0, entries = [] } = change
  const counted = statement(
    `update workspace_load set running = running + $2, suspended = suspended + $3, waiting = waiting + $4,
       seq = seq + $5 where workspace_id = $1`,
    [workspaceId, running, suspended, waiting, entries.length],
  )
  const rows = entries.map(({ taskId, messageId, items }, index) =>
    statement(
      `insert into events (workspace_id, seq, task_id, message_id, at_ms, delta, items)
       values ($1, (select seq from workspace_load where workspace_id = $1) - $2, $3, $4, now_ms(), $5, $6)`,
      [
        workspaceId,
        entries.length - 1 - index,
        taskId ?? null,
        messageId ?? null,
        items.every(isDelta) ? 1 : 0,
        JSON.stringify(items),
      ],
    ),
  )
  return [counted, ...rows]
}

const isDelta = (item: LogItem): boolean => item.t === 'turn' && item.event.type === 'text'
