/** Rules over HTTP: what owners of a workspace always allow. A rule is made with the answer to a pending ask. */
import { listRules, revokeRule } from '../../../api/rules.ts'
import type { Answerer } from '../../../inbox/owners.ts'
import { readRules } from '../../../views/needs/rules.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { requireWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'

export const ruleRoutes = [
  serve(listRules, async ({ params, query }, { store, workspaces }) => {
    const { id } = await requireWorkspace(workspaces, params.id)
    return await readRules(store, id, query.after)
  }),
  serve(revokeRule, async ({ params, identity }, { rules }) => {
    await rules.revoke(params.id, params.rule, answererOf(identity))
  }),
]

export const answererOf = ({ name, principal, sender }: Identity): Answerer => ({ name, principal, door: sender.door })
