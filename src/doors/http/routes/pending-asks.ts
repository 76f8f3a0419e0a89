/** Pending asks over HTTP: the permissions that running turns ask their owner for, each to be allowed or denied. */
import type { z } from 'zod'
import { answerAsk, listPendingAsks, type pendingAskSchema } from '../../../api/needs.ts'
import { MoleculeError } from '../../../errors.ts'
import type { PendingAsk } from '../../../inbox/owners.ts'
import { viewBudgetAsk } from './budgets.ts'
import { serve } from './route.ts'
import { answererOf, viewRule } from './rules.ts'

export const pendingAskRoutes = [
  serve(listPendingAsks, async ({ query: { workspace_id: workspaceId, after } }, { pending, budgets }) => {
    const only = workspaceId === undefined ? {} : { workspaceId }
    const { rows, next } = await pending.list({ ...only, ...(after !== undefined && { after }) })
    const spent = after === undefined ? await budgets.list(only) : []
    return { pending: rows.map(viewPendingAsk), budgets: spent.map(viewBudgetAsk), next }
  }),
  serve(answerAsk, async ({ params: { id }, identity, body }, { pending }) => {
    const { decision, always = false, pattern } = body
    if (always ? decision === 'deny' : pattern !== undefined) throw contradiction()
    const answerer = answererOf(identity)
    if (always) return { id, decision, rule: viewRule(await pending.allowAlways(id, answerer, pattern)) }
    await pending.answer(id, decision === 'allow' ? 'allowed' : 'denied', answerer)
    return { id, decision }
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
  would_cover: ask.wouldCover,
  would_cover_more: ask.wouldCoverMore,
})
