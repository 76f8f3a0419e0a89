/** Pending asks over HTTP: the permissions that running turns ask their owner for, each to be allowed or denied. */
import { z } from 'zod'
import { rulePatternShape, ruleSchema } from '../../../api/rules.ts'
import { MoleculeError } from '../../../errors.ts'
import type { PendingAsk } from '../../../inbox/owners.ts'
import { budgetAskSchema, viewBudgetAsk } from './budgets.ts'
import { route } from './route.ts'
import { answererOf, viewRule } from './rules.ts'

const PATTERN_CHARACTERS_MAX = 4096

const decisionSchema = z.strictObject({
  decision: z.enum(['allow', 'deny']),
  always: z.boolean().optional(),
  pattern: z.string().min(1).max(PATTERN_CHARACTERS_MAX).optional(),
})

const ruleChoiceSchema = z.strictObject({ ...rulePatternShape, sentence: z.string() })

export const pendingAskSchema = z.strictObject({
  id: z.string(),
  workspace_id: z.string(),
  task_id: z.string(),
  tool: z.string(),
  subject: z.string().describe('Exactly what the agent would do.'),
  asked_at: z.string(),
  expires_in: z.number().describe('In seconds; then it is denied.'),
  would_cover: ruleChoiceSchema.optional().describe('The rule that "always" makes.'),
  would_cover_more: ruleChoiceSchema.optional().describe('A wider rule: "always" with its pattern.'),
})

export const pendingAskRoutes = [
  route({
    method: 'get',
    path: '/pending',
    access: 'pending.read',
    summary: 'The permissions that running turns ask for; "workspace_id" filters, "after" reads the next page',
    success: [200, 'The pending asks, the budgets that are spent on the first page, and "next" where there are more'],
    answer: z.strictObject({
      pending: z.array(pendingAskSchema),
      budgets: z.array(budgetAskSchema),
      next: z.string().optional(),
    }),
    async handle({ context }, { pending, budgets }) {
      const { workspace_id: workspaceId, after } = context.req.query()
      const { rows, next } = await pending.list({
        ...(workspaceId !== undefined && { workspaceId }),
        ...(after !== undefined && { after }),
      })
      const spent = after === undefined ? await budgets.list({ ...(workspaceId !== undefined && { workspaceId }) }) : []
      return context.json({
        pending: rows.map(viewPendingAsk),
        budgets: spent.map(viewBudgetAsk),
        ...(next !== undefined && { next }),
      })
    },
  }),
  route({
    method: 'post',
    path: '/pending/:id',
    access: 'pending.answer',
    body: { schema: decisionSchema, name: 'an answer' },
    summary:
      'Allow or deny this one ask, once; "always" also makes a rule: the exact one, or the one with the given "pattern"',
    success: [200, 'The decision, and the rule that was made'],
    answer: z.strictObject({ id: z.string(), decision: z.enum(['allow', 'deny']), rule: ruleSchema.optional() }),
    async handle({ context, identity, body }, { pending }) {
      const id = context.req.param('id')
      const { decision, always = false, pattern } = body
      if (always ? decision === 'deny' : pattern !== undefined) throw contradiction()
      const answerer = answererOf(identity)
      if (always)
        return context.json({ id, decision, rule: viewRule(await pending.allowAlways(id, answerer, pattern)) })
      await pending.answer(id, decision === 'allow' ? 'allowed' : 'denied', answerer)
      return context.json({ id, decision })
    },
  }),
]

const contradiction = () =>
  new MoleculeError('invalid_request', '"always" goes with the decision "allow", and "pattern" with "always"', {
    details: { path: 'always' },
  })

export const viewPendingAsk = (ask: PendingAsk): z.output<typeof pendingAskSchema> => ({
  id: ask.id,
  workspace_id: ask.workspaceId,
  task_id: ask.taskId,
  tool: ask.tool,
  subject: ask.subject,
  asked_at: new Date(ask.askedAtMs).toISOString(),
  expires_in: Math.ceil(ask.expiresInMs / 1000),
  ...(ask.wouldCover && { would_cover: ask.wouldCover }),
  ...(ask.wouldCoverMore && { would_cover_more: ask.wouldCoverMore }),
})
