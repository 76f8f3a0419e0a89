/** What waits for an owner's word, over HTTP: the permissions that running turns ask for, to be allowed or denied. */
import { Hono } from 'hono'
import { z } from 'zod'
import type { PendingAsk, PendingAsks } from '../../../inbox/owners.ts'
import type { HttpAuth } from '../server/auth.ts'
import { BODY_BYTES_MAX, readJson } from '../server/body.ts'
import { allow, type HttpEnv } from '../server/guard.ts'
import { validateBody } from '../server/validate-body.ts'

export interface PendingAskRouteOptions {
  readonly pending: PendingAsks
  readonly auth: HttpAuth
}

export const decisionSchema = z.strictObject({ decision: z.enum(['allow', 'deny']) })

export function pendingAskRoutes({ pending, auth }: PendingAskRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.get('/pending', allow(auth, 'pending.read'), async (context) => {
    const waiting = await pending.list(context.req.query('workspace_id'))
    return context.json({ pending: waiting.map(viewPendingAsk) })
  })
  routes.post('/pending/:id', allow(auth, 'pending.answer'), async (context) => {
    const { decision } = validateBody(decisionSchema, await readJson(context.env.incoming, BODY_BYTES_MAX), 'an answer')
    const id = context.req.param('id')
    const { name } = context.get('identity')
    await pending.answer(id, decision === 'allow' ? 'allowed' : 'denied', name)
    return context.json({ id, decision })
  })
  return routes
}

const viewPendingAsk = (asked: PendingAsk) => ({
  id: asked.id,
  workspace_id: asked.workspaceId,
  task_id: asked.taskId,
  tool: asked.tool,
  subject: asked.subject,
  asked_at: new Date(asked.askedAtMs).toISOString(),
  expires_in: Math.ceil(asked.expiresInMs / 1000),
})
