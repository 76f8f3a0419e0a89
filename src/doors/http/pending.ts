/** What waits for an owner's word, over HTTP: the permissions that running turns ask for, to be allowed or denied. */
import { Hono } from 'hono'
import { z } from 'zod'
import type { Pending, PendingPermission } from '../../inbox/pending.ts'
import type { Auth } from './auth.ts'
import { BODY_BYTES_MAX, readJson } from './body.ts'
import { allow, type HttpEnv } from './context.ts'
import { readForm } from './form.ts'

export interface PendingOptions {
  readonly pending: Pending
  readonly auth: Auth
}

export const decisionSchema = z.strictObject({ decision: z.enum(['allow', 'deny']) })

export function pendingRoutes({ pending, auth }: PendingOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.get('/pending', allow(auth, 'pending.read'), async (context) => {
    const waiting = await pending.list(context.req.query('workspace_id'))
    return context.json({ pending: waiting.map(viewPending) })
  })
  routes.post('/pending/:id', allow(auth, 'pending.answer'), async (context) => {
    const { decision } = readForm(decisionSchema, await readJson(context.env.incoming, BODY_BYTES_MAX), 'an answer')
    const id = context.req.param('id')
    const { name } = context.get('identity')
    await pending.answer(id, decision === 'allow' ? 'allowed' : 'denied', name)
    return context.json({ id, decision })
  })
  return routes
}

const viewPending = (asked: PendingPermission) => ({
  id: asked.id,
  workspace_id: asked.workspaceId,
  task_id: asked.taskId,
  tool: asked.tool,
  subject: asked.subject,
  asked_at: new Date(asked.askedAtMs).toISOString(),
  expires_in: Math.ceil(asked.expiresInMs / 1000),
})
