/** Budgets that are spent: `GET /pending` lists them, and this route raises or stops one. */
import type { z } from 'zod'
import { answerBudget, type budgetAskSchema } from '../../../api/needs.ts'
import { MoleculeError } from '../../../errors.ts'
import type { BudgetAsk } from '../../../inbox/owners.ts'
import { serve } from './route.ts'
import { answererOf } from './rules.ts'

const AMOUNT_MISSING = { details: { path: 'max_cost_usd' } }

export const budgetRoutes = [
  serve(answerBudget, async ({ params: { id }, identity, body }, { budgets }) => {
    const { decision, max_cost_usd: maxCostUsd } = body
    if (decision === 'stop') await budgets.stop(id, answererOf(identity))
    else if (maxCostUsd !== undefined) await budgets.raise(id, maxCostUsd, answererOf(identity))
    else throw new MoleculeError('invalid_request', 'to raise a budget, say to what: max_cost_usd', AMOUNT_MISSING)
    return { id, ...body }
  }),
]

export const viewBudgetAsk = (ask: BudgetAsk): z.output<typeof budgetAskSchema> => ({
  id: ask.id,
  workspace_id: ask.workspaceId,
  task_id: ask.taskId ?? null,
  max_cost_usd: ask.limitUsd,
  cost_usd: ask.spentUsd,
  unknown_turns: ask.unknownTurns,
  waiting: ask.waiting,
  text: ask.text,
  asked_at: new Date(ask.askedAtMs).toISOString(),
})
