/**
 * Budgets that are spent, and that messages wait for: each stays listed until an owner answers or nothing waits for it. A
 * budget that no message waits for needs no answer, and must not take the place of one on the list.
 */
import type { ApiAnswer } from '../../api/api.ts'
import { DAY_MS } from '../../duration.ts'
import { BUDGET_COLUMNS, type Budget, type BudgetRow, readBudget, spentText } from '../../inbox/budget/budget-rows.ts'
import { messagesOfTask } from '../../inbox/rows/task-messages.ts'
import { type ReadStore, sql, type Transaction } from '../../store/store.ts'
import { nextUsd } from '../../usd.ts'
import { instant } from '../instant.ts'

export interface BudgetAsksQuery {
  readonly workspaceId?: string | undefined
  /** This one, if it still needs an answer. */
  readonly id?: string | undefined
}

export type BudgetAskAnswer = ApiAnswer<'GET /pending'>['budgets'][number]

/** The oldest first. */
export const readBudgetAsks = (store: ReadStore, query: BudgetAsksQuery): Promise<BudgetAskAnswer[]> =>
  store.read(() => budgetAsksOf(query))

/** The budget that a task waits for. */
export interface BudgetWait {
  readonly budgetId: string
  /** When the owner was asked: it differs after each asking. */
  readonly askedAtMs: number
  /** False: an owner stopped the budget of this day, and the task waits for the next day. */
  readonly isAsked: boolean
}

/** Undefined when no message of the task waits for a budget. */
export const readBudgetWait = (store: ReadStore, taskId: string): Promise<BudgetWait | undefined> =>
  store.read(() => budgetWaitOf(taskId))

/** The amount that every door suggests for a budget that is spent. */
export const raiseSuggestion = ({ max_cost_usd, cost_usd }: Pick<BudgetAskAnswer, 'max_cost_usd' | 'cost_usd'>) =>
  nextUsd(Math.max(max_cost_usd, cost_usd))

/** The next ones are listed when these are answered. */
const LISTED_MAX = 200

/** `$1` is a workspace, or empty for all. */
export const ASKED_BUDGETS = `from budgets b where b.state = 'asked' and (b.workspace_id = $1 or $1 = '')
    and (b.day is null or b.day = now_ms() / ${DAY_MS})`

/** Of `budgets b`. */
const WAITING = `from budget_waits w join messages m on m.id = w.message_id
  where w.budget_id = b.id and m.settled_at is null`
export const IS_AWAITED = `exists (select 1 ${WAITING})`

const PAGE = `select * from (select ${BUDGET_COLUMNS}, b.asked_at,
    (select count(*) ${WAITING}) as waiting ${ASKED_BUDGETS} and (b.id = $2 or $2 = '')) as asked
  where waiting > 0 order by asked_at, id limit ${LISTED_MAX}`

interface BudgetAskRow extends BudgetRow {
  asked_at: number
  waiting: number
}

export function* budgetAsksOf({ workspaceId = '', id = '' }: BudgetAsksQuery): Transaction<BudgetAskAnswer[]> {
  const rows = yield* sql<BudgetAskRow>(PAGE, [workspaceId, id])
  const asks: BudgetAskAnswer[] = []
  for (const row of rows) asks.push(budgetAsk(row, yield* readBudget(row)))
  return asks
}

function budgetAsk(row: BudgetAskRow, budget: Budget): BudgetAskAnswer {
  const waiting = Number(row.waiting)
  return {
    id: row.id,
    workspace_id: row.workspace_id,
    task_id: row.task_id,
    max_cost_usd: row.limit_usd,
    cost_usd: budget.spent.costUsd,
    unknown_turns: budget.spent.unknownTurns,
    waiting,
    text: `${spentText(budget)}; ${waiting === 1 ? '1 message waits' : `${waiting} messages wait`}`,
    asked_at: instant(row.asked_at),
  }
}

function* budgetWaitOf(taskId: string): Transaction<BudgetWait | undefined> {
  const [row] = yield* sql<{ id: string; asked_at: number; state: string }>(
    `select b.id, b.asked_at, b.state from messages m join budget_waits w on w.message_id = m.id
       join budgets b on b.id = w.budget_id
     where ${messagesOfTask('m', '$1')} and m.settled_at is null and b.state in ('asked', 'stopped')
     order by w.since, m.id limit 1`,
    [taskId],
  )
  return row && { budgetId: row.id, askedAtMs: row.asked_at, isAsked: row.state === 'asked' }
}
