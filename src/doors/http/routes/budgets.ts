/** Budgets that are spent: `GET /pending` lists them, and this route raises or stops one. */
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import type { BudgetAsk } from '../../../inbox/owners.ts'
import { COST_USD_MAX } from '../../../protocol/delegation.ts'
import { route } from './route.ts'

const answerSchema = z.strictObject({
  decision: z.enum(['raise', 'stop']),
  max_cost_usd: z.number().positive().max(COST_USD_MAX).optional(),
})

const AMOUNT_MISSING = { details: { path: 'max_cost_usd' } }

export const budgetAskSchema = z.strictObject({
  id: z.string(),
  workspace_id: z.string(),
  task_id: z.string().nullable().describe('Null for the budget of a day.'),
  max_cost_usd: z.number(),
  cost_usd: z.number(),
  unknown_turns: z.number().describe('Turns that count and whose cost is not known.'),
  waiting: z.number().describe('Messages that wait for it.'),
  text: z.string(),
  asked_at: z.string(),
})

export const budgetRoutes = [
  route({
    method: 'post',
    path: '/budgets/:id',
    access: 'pending.answer',
    body: { schema: answerSchema, name: 'an answer' },
    summary: 'Raise a budget that is spent to "max_cost_usd", so that its messages go on, or stop it and cancel them',
    success: [200, 'The decision'],
    async handle({ context, identity, body }, { budgets }) {
      const id = context.req.param('id')
      const { name, principal, sender } = identity
      const answerer = { name, principal, door: sender.door }
      const { decision, max_cost_usd: maxCostUsd } = body
      if (decision === 'stop') await budgets.stop(id, answerer)
      else if (maxCostUsd !== undefined) await budgets.raise(id, maxCostUsd, answerer)
      else throw new MoleculeError('invalid_request', 'to raise a budget, say to what: max_cost_usd', AMOUNT_MISSING)
      return context.json({ id, ...body })
    },
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
