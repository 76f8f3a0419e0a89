/**
 * An owner answers for a budget that is spent: a raise lets the messages that wait go on, a stop cancels them. Everything is
 * stored, so a crash changes nothing: the sweep finds the messages of an answered budget again.
 */
import { MoleculeError } from '../../errors.ts'
import { COST_USD_MAX, isBudget } from '../../protocol/delegation.ts'
import { runStatement, type Statement, sql, statement, type Transaction, together } from '../../store/store.ts'
import { type Spending, spendingText, usdText } from '../../usd.ts'
import type { Answerer } from '../owners.ts'
import { refreshReadiness } from '../rows/conversation.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { inStates, type MessageState } from '../rows/message.ts'
import { wakeMessage } from '../rows/message-updates.ts'
import { BUDGET_COLUMNS, type Budget, type BudgetRow, isSpent, readBudget, spentText } from './budget-rows.ts'
import { logBudget } from './check-budget.ts'

/** Messages handled in one pass; the next pass handles the rest. */
const WAITS_MAX = 200

/** For a message that waits for a budget no longer. */
export const forgetWait = (messageId: string): Statement =>
  statement('delete from budget_waits where message_id = $1', [messageId])

export function* decideBudget(id: string, decide: (budget: Budget) => Transaction<string[]>): Transaction<string[]> {
  const [row] = yield* sql<BudgetRow>(`select ${BUDGET_COLUMNS} from budgets b where b.id = $1 /*for update*/`, [id])
  if (row === undefined) throw unknownBudget(id)
  return yield* decide(yield* readBudget(row))
}

const unknownBudget = (id: string): MoleculeError =>
  new MoleculeError('not_found', `no budget with the id ${JSON.stringify(id.slice(0, 200))} was asked about`)

/** Returns the workspaces that changed. */
export function* raiseBudget(budget: Budget, toUsd: number, { name }: Answerer): Transaction<string[]> {
  const { id, workspaceId, limitUsd, spent, state } = budget
  if (!isBudget(toUsd)) {
    throw new MoleculeError('invalid_request', `max_cost_usd must be a number above 0 and up to ${COST_USD_MAX}`)
  }
  if (state === 'stopped') throw new MoleculeError('unsupported_operation', 'this budget was stopped already')
  // The same answer again changes nothing.
  if (state === 'open' && limitUsd === toUsd) return []
  if (isSpent({ ...budget, limitUsd: toUsd })) throw tooLow(toUsd, spent)
  if (toUsd <= limitUsd) {
    throw new MoleculeError('unsupported_operation', `this budget was raised to ${usdText(limitUsd)} already`)
  }
  yield* sql(`update budgets set limit_usd = $2, state = 'open', answered_at = now_ms() where id = $1`, [id, toUsd])
  const text = `the budget was raised from ${usdText(limitUsd)} to ${usdText(toUsd)}`
  yield* logAnswer(budget, { step: 'raised', text, by: name })
  return [workspaceId]
}

const tooLow = (toUsd: number, spent: Spending): MoleculeError =>
  new MoleculeError('invalid_request', `${usdText(toUsd)} is spent already (${spendingText(spent)}); give more`)

export function* stopBudget(budget: Budget, { name }: Answerer): Transaction<string[]> {
  if (budget.state === 'stopped') return []
  if (budget.state === 'open') {
    throw new MoleculeError('unsupported_operation', `this budget was raised to ${usdText(budget.limitUsd)} already`)
  }
  yield* sql(`update budgets set state = 'stopped', answered_at = now_ms() where id = $1`, [budget.id])
  yield* logAnswer(budget, { step: 'stopped', text: `${spentText(budget)}: what waits for it is cancelled`, by: name })
  return [budget.workspaceId]
}

/** The steps of a day's budget are shown with a message that waits for it. */
function* logAnswer(budget: Budget, step: Parameters<typeof logBudget>[2]): Transaction<void> {
  const { id, taskId, workspaceId } = budget
  if (taskId !== undefined) return yield* logBudget(workspaceId, { taskId, messageId: id }, step)
  const [waiting] = yield* sql<{ id: string; task_id: string }>(
    `select m.id, m.task_id from budget_waits w join messages m on m.id = w.message_id
     where w.budget_id = $1 order by w.since, m.id limit 1`,
    [id],
  )
  if (waiting !== undefined) yield* logBudget(workspaceId, { taskId: waiting.task_id, messageId: waiting.id }, step)
}

export interface WaitRow {
  message_id: string
  workspace_id: string
  budget_id: string
  budget_state: string | null
  message_state: MessageState | null
  task_id: string | null
  conversation_id: string | null
}

/**
 * Messages that wait for a budget that was answered, or that wait no more. The stop of a day cancels what waited then;
 * later messages wait for the next day.
 */
export function* findAnsweredWaits(): Transaction<WaitRow[]> {
  return yield* sql<WaitRow>(
    `select w.message_id, w.workspace_id, w.budget_id, b.state as budget_state, m.state as message_state, m.task_id,
       m.conversation_id
     from budget_waits w left join budgets b on b.id = w.budget_id left join messages m on m.id = w.message_id
     where b.id is null or m.id is null or m.settled_at is not null
       or (m.${inStates('queued')} and (b.state = 'open'
         or (b.state = 'stopped' and (b.day is null or w.since <= b.answered_at))))
     order by w.message_id limit ${WAITS_MAX}`,
  )
}

/** The message waits no more: one that is still queued is ready at once. */
export function* endWait({
  message_id: id,
  workspace_id: workspaceId,
  conversation_id: conversationId,
}: WaitRow): Transaction<void> {
  yield* together([lockWorkspace(workspaceId)])
  yield* runStatement(forgetWait(id))
  const woken = yield* runStatement(wakeMessage(id))
  if (woken.length > 0 && conversationId !== null) yield* together([refreshReadiness(conversationId)])
}

export function* findBudget(id: string): Transaction<Budget | undefined> {
  const [row] = yield* sql<BudgetRow>(`select ${BUDGET_COLUMNS} from budgets b where b.id = $1`, [id])
  return row === undefined ? undefined : yield* readBudget(row)
}
