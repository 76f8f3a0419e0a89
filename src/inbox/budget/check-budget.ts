/**
 * Checks the budgets of a turn before it begins. A turn whose budget is spent is held: its message is parked with the
 * reason, and the first one that is held asks the owner. Only turns that a budget may cover get here, so other turns
 * cost no query.
 */
import type { Brief } from '../../protocol/brief.ts'
import { sql, type Transaction, together } from '../../store/store.ts'
import { recordChange } from '../rows/log.ts'
import { type Budget, budgetOfDay, budgetsOfMessage, isSpent, spentText } from './budget-rows.ts'

/** A message looks again after this time, if no answer wakes it before. */
const TREE_PARK_MS = 3600_000
/** A shorter time for a day: `max_cost_usd_per_day` may change in the meantime. */
const DAY_PARK_MS = 600_000
/** The next day has begun for sure when the message comes back. */
const DAY_MARGIN_MS = 100

/** The turn that is about to begin. */
export interface BudgetedTurn {
  readonly workspaceId: string
  readonly messageId: string
  readonly taskId: string
  /** A budget of its message, or of one above it, may cover it. */
  readonly mayHaveMessageBudget: boolean
  /** `max_cost_usd_per_day` of the workspace. */
  readonly costUsdPerDayMax?: number | undefined
}

export interface BlockedTurn {
  readonly budget: Budget
  readonly afterMs: number
}

/** The budget that keeps the turn from beginning, and whether the message waited for a budget before. */
export function* readBlockedTurn(turn: BudgetedTurn): Transaction<{ blocked?: BlockedTurn; waited: boolean }> {
  const { messageId, workspaceId, costUsdPerDayMax } = turn
  const waits = yield* sql('select 1 as waits from budget_waits where message_id = $1', [messageId])
  const waited = waits.length > 0
  const budgets = turn.mayHaveMessageBudget ? yield* budgetsOfMessage(messageId) : []
  const spent = budgets.find((budget) => budget.state === 'stopped' || isSpent(budget))
  if (spent !== undefined) return { blocked: { budget: spent, afterMs: TREE_PARK_MS }, waited }
  if (costUsdPerDayMax === undefined) return { waited }
  const { endsInMs, ...today } = yield* budgetOfDay(workspaceId, costUsdPerDayMax)
  if (!isSpent(today)) return { waited }
  return { blocked: { budget: today, afterMs: Math.min(DAY_PARK_MS, endsInMs + DAY_MARGIN_MS) }, waited }
}

/** How the turn is held; undefined when an owner has raised the budget in the meantime. */
export interface HeldByBudget {
  readonly isAskedNow: boolean
  readonly parked: NonNullable<Brief['parked']>
}

/** Asks the owner if no turn has asked before, and notes that the message waits. Touches rows of several workspaces. */
export function* holdTurn(turn: BudgetedTurn, { budget, afterMs }: BlockedTurn): Transaction<HeldByBudget | undefined> {
  const asked = yield* askOnce(budget)
  const [row] = yield* sql<{ state: Budget['state'] }>('select state from budgets where id = $1 /*for update*/', [
    budget.id,
  ])
  if (row === undefined || row.state === 'open') return undefined
  yield* sql(
    `insert into budget_waits (message_id, workspace_id, budget_id, since) values ($1, $2, $3, now_ms())
     on conflict (message_id) do update set budget_id = excluded.budget_id, since = case
       when budget_waits.budget_id = excluded.budget_id then budget_waits.since else excluded.since end`,
    [turn.messageId, turn.workspaceId, budget.id],
  )
  if (asked) {
    const { id, taskId, workspaceId } = budget
    const where = taskId === undefined ? { taskId: turn.taskId, messageId: turn.messageId } : { taskId, messageId: id }
    yield* logBudget(workspaceId, where, { step: 'asked', text: `${spentText(budget)}: the owner is asked` })
  }
  const isStopped = row.state === 'stopped'
  return { isAskedNow: asked, parked: { afterMs, reason: reasonText(budget, isStopped) } }
}

/** True when this call asked the owner. It compares the limit again, because an owner may just have raised it. */
function* askOnce({ id, workspaceId, day, limitUsd, spent }: Budget): Transaction<boolean> {
  if (day === undefined) {
    const rows = yield* sql(
      `update budgets set state = 'asked', asked_at = now_ms()
       where id = $1 and state = 'open' and limit_usd <= $2 returning id`,
      [id, limitUsd],
    )
    return rows.length > 0
  }
  // A budget of a day has a row once the owner is asked. A larger limit in config.yaml asks again when it is spent.
  const rows = yield* sql(
    `insert into budgets (id, workspace_id, day, limit_usd, state, asked_at) values ($1, $2, $3, $4, 'asked', now_ms())
     on conflict (id) do update set limit_usd = excluded.limit_usd, state = 'asked', asked_at = excluded.asked_at
       where (budgets.state = 'open' and budgets.limit_usd <= $5) or budgets.limit_usd < excluded.limit_usd
     returning id`,
    [id, workspaceId, day, limitUsd, spent.costUsd],
  )
  return rows.length > 0
}

/** Adds a step of a budget to the activity of its workspace, if the workspace still exists. */
export function* logBudget(
  workspaceId: string,
  where: { readonly taskId: string; readonly messageId: string },
  step: { readonly step: 'asked' | 'raised' | 'stopped'; readonly text: string; readonly by?: string },
): Transaction<void> {
  const [load] = yield* sql('select 1 as there from workspace_load where workspace_id = $1 /*for update*/', [
    workspaceId,
  ])
  if (load === undefined) return
  yield* together(recordChange({ workspaceId, entries: [{ ...where, items: [{ t: 'budget', ...step }] }] }))
}

function reasonText(budget: Budget, isStopped: boolean): string {
  const then = budget.day === undefined ? '' : '; it goes on at midnight UTC at the latest'
  if (!isStopped) return `waiting: ${spentText(budget)}; the owner is asked to raise it or to stop${then}`
  return budget.day === undefined
    ? `${spentText(budget)}, and the owner stopped it`
    : `waiting: ${spentText(budget)}${then}`
}
