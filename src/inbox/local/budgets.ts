/**
 * Budgets (TW-10). At the limit a running turn finishes, the message of every further turn is parked, and the owner is
 * asked once. The answer wakes or cancels the messages that wait, in passes until none is left.
 */
import { toMoleculeError } from '../../errors.ts'
import type { Brief } from '../../protocol/brief.ts'
import { runStatement, type Transaction } from '../../store/store.ts'
import {
  decideBudget,
  endWait,
  findAnsweredWaits,
  findBudget,
  forgetWait,
  raiseBudget,
  stopBudget,
  type WaitRow,
} from '../budget/answer-budget.ts'
import { type Budget, spentText } from '../budget/budget-rows.ts'
import { type BudgetedTurn, holdTurn, readBlockedTurn } from '../budget/check-budget.ts'
import { cancel } from '../commands/cancel.ts'
import type { Budgets } from '../owners.ts'
import { delegationEnded, type InboxContext } from './context.ts'
import { lookForWork } from './directives.ts'

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
      if (waited) await store.write(() => runStatement(forgetWait(turn.messageId)), turn.workspaceId)
      return undefined
    },
    raise: (id, toUsd, answerer) => answer(id, (budget) => raiseBudget(budget, toUsd, answerer)),
    stop: (id, answerer) => answer(id, (budget) => stopBudget(budget, answerer)),
  }
}

/** False where it failed; the next pass tries again. */
async function handleWait(context: InboxContext, wait: WaitRow): Promise<boolean> {
  const { store, log } = context
  const { message_id: messageId, workspace_id: workspaceId, task_id: taskId } = wait
  try {
    if (wait.message_state === 'queued' && wait.budget_state === 'stopped' && taskId !== null) {
      await cancelTask(context, { taskId, workspaceId, budgetId: wait.budget_id })
    }
    await store.write(() => endWait(wait), workspaceId)
    if (taskId !== null) context.changed(workspaceId, taskId)
    return true
  } catch (error) {
    log.warn({ err: toMoleculeError(error), messageId }, 'a message that waits for a budget could not go on')
    return false
  }
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
