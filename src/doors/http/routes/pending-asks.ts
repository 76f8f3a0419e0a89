/** Pending asks over HTTP: the permissions that running turns ask their owner for, each to be allowed or denied. */
import { z } from 'zod'
import type { PendingAsk } from '../../../inbox/owners.ts'
import { route } from './route.ts'

const decisionSchema = z.strictObject({ decision: z.enum(['allow', 'deny']) })

export const pendingAskRoutes = [
  route({
    method: 'get',
    path: '/pending',
    access: 'pending.read',
    summary: 'The permissions that running turns ask for; "workspace_id" filters, "after" reads the next page',
    success: [200, 'The pending asks, and "next" where there are more'],
    async handle({ context }, { pending }) {
      const { workspace_id: workspaceId, after } = context.req.query()
      const { rows, next } = await pending.list({
        ...(workspaceId !== undefined && { workspaceId }),
        ...(after !== undefined && { after }),
      })
      return context.json({ pending: rows.map(viewPendingAsk), ...(next !== undefined && { next }) })
    },
  }),
  route({
    method: 'post',
    path: '/pending/:id',
    access: 'pending.answer',
    body: { schema: decisionSchema, name: 'an answer' },
    summary: 'Allow or deny this one ask, once',
    success: [200, 'The decision'],
    async handle({ context, identity, body: { decision } }, { pending }) {
      const id = context.req.param('id')
      await pending.answer(id, decision === 'allow' ? 'allowed' : 'denied', identity.name)
      return context.json({ id, decision })
    },
  }),
]

const viewPendingAsk = (ask: PendingAsk) => ({
  id: ask.id,
  workspace_id: ask.workspaceId,
  task_id: ask.taskId,
  tool: ask.tool,
  subject: ask.subject,
  asked_at: new Date(ask.askedAtMs).toISOString(),
  expires_in: Math.ceil(ask.expiresInMs / 1000),
})
