/**
 * Budgets (TW-10). At the limit a running turn finishes, the message of every further turn is parked, and the owner is
 * asked once. A raise lets the parked messages go on from there; a stop cancels them. Everything is stored, so a crash
 * changes nothing: the sweep finds the messages of an answered budget again.
 */
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { Brief } from '../../protocol/brief.ts'
import { COST_USD_MAX, isBudget } from '../../protocol/delegation.ts'
import { runStatement, sql, type Transaction, together } from '../../store/store.ts'
import { type Spending, spendingText, usdText } from '../../usd.ts'
import { BUDGET_COLUMNS, type Budget, type BudgetRow, isSpent, readBudget, spentText } from '../budget/budget-rows.ts'
import { type BudgetedTurn, holdTurn, logBudget, readBlockedTurn } from '../budget/check-budget.ts'
import { cancel } from '../commands/cancel.ts'
import type { Answerer, Budgets } from '../owners.ts'
import { refreshReadiness } from '../rows/conversation.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { inStates, type MessageState } from '../rows/message.ts'
import { wakeMessage } from '../rows/message-updates.ts'
import { delegationEnded, type InboxContext } from './context.ts'
import { lookForWork } from './directives.ts'

/** Messages handled in one pass; the next pass handles the rest. */
const WAITS_MAX = 200
const PASSES_MAX = 20

/** As the platform itself uses them. */
export interface LocalBudgets extends Budgets {
  /** Undefined when the turn may begin. */
  check(turn: BudgetedTurn): Promise<Brief['parked']>
  /** Wakes or cancels the messages of budgets that were answered. */
  lookAfter(): Promise<void>
}

export function createBudgets(context: InboxContext): LocalBudgets {
  const { store } = context
  const lookAfter = async () => {
    for (let pass = 0; pass < PASSES_MAX; pass++) {
      const waits = await store.read(findAnsweredWaits)
      let handled = 0
      for (const wait of waits) if (await handleWait(context, wait)) handled += 1
      if (handled === 0) return
      lookForWork(context)
    }
  }
  const answer = async (id: string, decide: (budget: Budget) => Transaction<string[]>) => {
    const changed = await store.write(() => decideBudget(id, decide))
    for (const workspaceId of changed) context.changed(workspaceId, workspaceId)
    await lookAfter()
  }
  return {
    lookAfter,
    async check(turn) {
      const { blocked, waited } = await store.read(() => readBlockedTurn(turn))
      if (blocked !== undefined) {
        const held = await store.write(() => holdTurn(turn, blocked))
        if (held?.isAskedNow === true) context.changed(blocked.budget.workspaceId, blocked.budget.taskId ?? turn.taskId)
        if (held !== undefined) return held.parked
      }
      if (waited) await store.write(() => sql(FORGET_WAIT, [turn.messageId]), turn.workspaceId)
      return undefined
    },
    raise: (id, toUsd, answerer) => answer(id, (budget) => raise(budget, toUsd, answerer)),
    stop: (id, answerer) => answer(id, (budget) => stop(budget, answerer)),
  }
}

const FORGET_WAIT = 'delete from budget_waits where message_id = $1'

function* decideBudget(id: string, decide: (budget: Budget) => Transaction<string[]>): Transaction<string[]> {
  const [row] = yield* sql<BudgetRow>(`select ${BUDGET_COLUMNS} from budgets b where b.id = $1 /*for update*/`, [id])
  if (row === undefined) throw unknownBudget(id)
  return yield* decide(yield* readBudget(row))
}

const unknownBudget = (id: string): MoleculeError =>
  new MoleculeError('not_found', `no budget with the id ${JSON.stringify(id.slice(0, 200))} was asked about`)

/** Returns the workspaces that changed. */
function* raise(budget: Budget, toUsd: number, { name }: Answerer): Transaction<string[]> {
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

function* stop(budget: Budget, { name }: Answerer): Transaction<string[]> {
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

interface WaitRow {
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
function* findAnsweredWaits(): Transaction<WaitRow[]> {
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

/** False where it failed; the next pass tries again. */
async function handleWait(context: InboxContext, wait: WaitRow): Promise<boolean> {
  const { store, log } = context
  const { message_id: messageId, workspace_id: workspaceId, task_id: taskId } = wait
  try {
    if (wait.message_state === 'queued' && wait.budget_state === 'stopped' && taskId !== null) {
      await cancelTask(context, { taskId, workspaceId, budgetId: wait.budget_id })
    }
    await store.write(() => wake(wait), workspaceId)
    if (taskId !== null) context.changed(workspaceId, taskId)
    return true
  } catch (error) {
    log.warn({ err: toMoleculeError(error), messageId }, 'a message that waits for a budget could not go on')
    return false
  }
}

/** The message waits no more: one that is still queued is ready at once. */
function* wake({
  message_id: id,
  workspace_id: workspaceId,
  conversation_id: conversationId,
}: WaitRow): Transaction<void> {
  yield* together([lockWorkspace(workspaceId)])
  yield* sql(FORGET_WAIT, [id])
  const woken = yield* runStatement(wakeMessage(id))
  if (woken.length > 0 && conversationId !== null) yield* together([refreshReadiness(conversationId)])
}

async function cancelTask(
  context: InboxContext,
  {
    taskId,
    workspaceId,
    budgetId,
  }: { readonly taskId: string; readonly workspaceId: string; readonly budgetId: string },
): Promise<void> {
  const { store, workerQueues } = context
  const row = await store.read(() => findBudget(budgetId))
  const text = row === undefined ? 'its budget is spent' : spentText(row)
  const status = { parts: [{ text: `${text}, and the owner stopped it` }], code: 'canceled' }
  try {
    const { running } = await store.write(() => cancel(taskId, {}, status), workspaceId)
    if (running !== undefined) workerQueues.stop(running)
    delegationEnded(context)
  } catch (thrown) {
    const { code } = toMoleculeError(thrown)
    // It ended in the meantime.
    if (code !== 'not_cancelable' && code !== 'not_found') throw thrown
  }
}

function* findBudget(id: string): Transaction<Budget | undefined> {
  const [row] = yield* sql<BudgetRow>(`select ${BUDGET_COLUMNS} from budgets b where b.id = $1`, [id])
  return row === undefined ? undefined : yield* readBudget(row)
}
