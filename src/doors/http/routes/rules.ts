/** Rules over HTTP: what owners of a workspace always allow. A rule is made with the answer to a pending ask. */
import type { z } from 'zod'
import { listRules, revokeRule, type ruleSchema } from '../../../api/rules.ts'
import type { Answerer, Rule } from '../../../inbox/owners.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { requireWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'

export const ruleRoutes = [
  serve(listRules, async ({ params, query }, { rules, workspaces }) => {
    const { id } = await requireWorkspace(workspaces, params.id)
    const { rows, next } = await rules.list(id, query.after)
    return { rules: rows.map(viewRule), next }
  }),
  serve(revokeRule, async ({ params, identity }, { rules }) => {
    await rules.revoke(params.id, params.rule, answererOf(identity))
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
  last_used_at: rule.lastUsedAtMs === undefined ? undefined : new Date(rule.lastUsedAtMs).toISOString(),
})

export const answererOf = ({ name, principal, sender }: Identity): Answerer => ({ name, principal, door: sender.door })
