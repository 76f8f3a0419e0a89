/**
 * What waits for a person: `GET /needs-you` is the one list of all, each need with its reason and its ways out as calls of
 * this API. Pending asks, budgets that are spent and dead letters also have lists of their own.
 */
import {
  answerAsk,
  answerBudget,
  decideDelivery,
  discardDeadLetter,
  dismissDamagedReply,
  listDeadLetters,
  listNeeds,
  listPendingAsks,
  replayDeadLetter,
} from '../../../api/needs.ts'
import { MoleculeError } from '../../../errors.ts'
import { readBudgetAsks } from '../../../views/needs/budget-asks.ts'
import { readDeadLetters } from '../../../views/needs/dead-letters.ts'
import { readNeeds } from '../../../views/needs/needs.ts'
import { readPendingAsks } from '../../../views/needs/pending-asks.ts'
import { readRule } from '../../../views/needs/rules.ts'
import type { NeedyWorkspace } from '../../../views/needs/workspace-need.ts'
import { seesConfig } from '../../../workspaces/may-talk.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import { requireWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'
import { answererOf } from './rules.ts'

const AMOUNT_MISSING = { details: { path: 'max_cost_usd' } }

export const needRoutes = [
  serve(listNeeds, async ({ query: { workspace_id: workspaceId, after } }, { store, workspaces }) =>
    readNeeds(store, { workspaceId, after, workspaces: await askedWorkspaces(workspaces, workspaceId) }),
  ),
  serve(decideDelivery, async ({ params: { id }, identity, body: { decision } }, { deliveries }) => {
    await deliveries.resolve(id, decision === 'resend' ? 'resend' : 'dismiss', identity.name)
    return { id, decision }
  }),
  serve(dismissDamagedReply, async ({ params }, { damagedReplies }) => {
    await damagedReplies.dismiss(params.message)
  }),
  serve(listPendingAsks, async ({ query: { workspace_id: workspaceId, after } }, { store }) => {
    const page = await readPendingAsks(store, { workspaceId, after })
    return { ...page, budgets: after === undefined ? await readBudgetAsks(store, { workspaceId }) : [] }
  }),
  serve(answerAsk, async ({ params: { id }, identity, body }, { pending, store }) => {
    const { decision, always = false, pattern } = body
    if (always ? decision === 'deny' : pattern !== undefined) throw contradiction()
    const answerer = answererOf(identity)
    if (always) {
      const made = await pending.allowAlways(id, answerer, pattern)
      return { id, decision, rule: await readRule(store, made.id) }
    }
    await pending.answer(id, decision === 'allow' ? 'allowed' : 'denied', answerer)
    return { id, decision }
  }),
  serve(answerBudget, async ({ params: { id }, identity, body }, { budgets }) => {
    const { decision, max_cost_usd: maxCostUsd } = body
    if (decision === 'stop') await budgets.stop(id, answererOf(identity))
    else if (maxCostUsd !== undefined) await budgets.raise(id, maxCostUsd, answererOf(identity))
    else throw new MoleculeError('invalid_request', 'to raise a budget, say to what: max_cost_usd', AMOUNT_MISSING)
    return { id, ...body }
  }),
  serve(listDeadLetters, async ({ params, query, identity }, { store, workspaces }) => {
    const { id } = await requireWorkspace(workspaces, params.id)
    return await readDeadLetters(store, { workspaceId: id, ...query, detail: seesConfig(identity) })
  }),
  serve(replayDeadLetter, async ({ params }, { deadLetters }) => ({
    task_id: await deadLetters.replay(params.id, params.message),
  })),
  serve(discardDeadLetter, async ({ params }, { deadLetters }) => {
    await deadLetters.discard(params.id, params.message)
  }),
]

const contradiction = () =>
  new MoleculeError('invalid_request', '"always" goes with the decision "allow", and "pattern" with "always"', {
    details: { path: 'always' },
  })

const askedWorkspaces = async (workspaces: Workspaces, id: string | undefined): Promise<readonly NeedyWorkspace[]> => {
  if (id === undefined) return await workspaces.all()
  const found = await workspaces.get(id)
  return found === undefined ? [] : [found]
}
