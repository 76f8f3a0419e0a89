/**
 * Usage as rows: one for each turn that costs money or reported its usage, written with its settle. Failed and cancelled
 * turns count too, because they cost too. Invariant: an unknown number is null; it is never 0.
 */
import { DAY_MS } from '../../duration.ts'
import { type Statement, statement } from '../../store/store.ts'
import type { LeaseKey, Outcome } from '../worker.ts'

/** Older rows are pruned, so no report covers more days. */
export const USAGE_DAYS_MAX = 90

/** The condition for rows that no report shows any more. */
export const USAGE_PRUNED = `ended_at < now_ms() - ${(USAGE_DAYS_MAX + 1) * DAY_MS}`

/** The statements for a settle: none for a turn without usage. */
export function usageRows(key: LeaseKey, { type, usage }: Outcome): Statement[] {
  if (usage === undefined) return []
  const { inputTokens, outputTokens, costUsd, durationMs } = usage
  return [
    statement(
      `insert into turn_usage (message_id, epoch, workspace_id, task_id, outcome, ended_at, duration_ms, input_tokens,
         output_tokens, cost_usd) values ($1, $2, $3, $4, $5, now_ms(), $6, $7, $8, $9) on conflict do nothing`,
      [
        ...[key.messageId, key.epoch, key.workspaceId, key.taskId, type],
        ...[whole(durationMs), whole(inputTokens), whole(outputTokens), amountOf(costUsd)],
      ],
    ),
  ]
}

/** A bridge may send anything: a value that is no amount is stored as unknown. */
const amountOf = (value: unknown): number | null =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : null

function whole(value: unknown): number | null {
  const amount = amountOf(value)
  return amount === null ? null : Math.round(amount)
}
