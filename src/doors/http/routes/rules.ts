/** Rules over HTTP: what owners of a workspace always allow. A rule is made with the answer to a pending ask. */
import { z } from 'zod'
import type { Answerer, Rule } from '../../../inbox/owners.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { requireWorkspace } from '../server/reach.ts'
import { route } from './route.ts'

export const rulePatternShape = {
  tool: z.string(),
  scope: z.enum(['exact', 'prefix', 'folder']),
  pattern: z.string(),
}

export const ruleSchema = z.strictObject({
  id: z.string(),
  workspace_id: z.string(),
  ...rulePatternShape,
  made_by: z.string(),
  made_at: z.string(),
  used: z.number().describe('How many asks it has allowed.'),
  last_used_at: z.string().optional(),
})

export const ruleRoutes = [
  route({
    method: 'get',
    path: '/workspaces/:id/rules',
    access: 'pending.read',
    summary: 'What is always allowed in this workspace, the oldest first; "after" reads the next page',
    success: [200, 'The rules, and "next" where there are more'],
    answer: z.strictObject({ rules: z.array(ruleSchema), next: z.string().optional() }),
    async handle({ context }, { rules, workspaces }) {
      const { id } = await requireWorkspace(workspaces, context.req.param('id'))
      const { rows, next } = await rules.list(id, context.req.query('after'))
      return context.json({ rules: rows.map(viewRule), ...(next !== undefined && { next }) })
    },
  }),
  route({
    method: 'delete',
    path: '/workspaces/:id/rules/:rule',
    access: 'pending.answer',
    summary: 'Revoke a rule: what it covered is asked again',
    success: [204, 'Done'],
    async handle({ context, identity }, { rules }) {
      const { id, rule } = context.req.param()
      await rules.revoke(id, rule, answererOf(identity))
      return context.body(null, 204)
    },
  }),
]

export const viewRule = (rule: Rule): z.output<typeof ruleSchema> => ({
  id: rule.id,
  workspace_id: rule.workspaceId,
  tool: rule.tool,
  scope: rule.scope,
  pattern: rule.pattern,
  made_by: rule.maker.name,
  made_at: new Date(rule.madeAtMs).toISOString(),
  used: rule.used,
  ...(rule.lastUsedAtMs !== undefined && { last_used_at: new Date(rule.lastUsedAtMs).toISOString() }),
})

export const answererOf = ({ name, principal, sender }: Identity): Answerer => ({ name, principal, door: sender.door })
