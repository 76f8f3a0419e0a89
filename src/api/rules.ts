/** Rules: what owners of a workspace always allow. A rule is made with the answer to a pending ask. */
import { z } from 'zod'
import { endpoint, nothing } from './endpoint.ts'

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

export const listRules = endpoint('GET /workspaces/{id}/rules', {
  access: 'pending.read',
  summary: 'What is always allowed in this workspace, the oldest first; "after" reads the next page',
  query: z.object({ after: z.string().optional() }),
  success: [200, 'The rules, and "next" where there are more'],
  answer: z.strictObject({ rules: z.array(ruleSchema), next: z.string().optional() }),
})

export const revokeRule = endpoint('DELETE /workspaces/{id}/rules/{rule}', {
  access: 'pending.answer',
  summary: 'Revoke a rule: what it covered is asked again',
  success: [204, 'Done'],
  answer: nothing,
})

export const ruleEndpoints = [listRules, revokeRule] as const
