/**
 * What a workspace says it is doing: one line, set by any process that works for it, shown on its card at once and told
 * to whoever follows its log. An empty text takes it away.
 */
import { Hono } from 'hono'
import { z } from 'zod'
import type { Activity } from '../../../inbox/readers.ts'
import type { WorkspaceRegistry } from '../../../workspaces/registry.ts'
import type { HttpAuth } from '../server/auth.ts'
import { BODY_BYTES_MAX, readJson } from '../server/body.ts'
import { allow, type HttpEnv } from '../server/guard.ts'
import { requireOwnWorkspace } from '../server/reach.ts'
import { validateBody } from '../server/validate-body.ts'

const STATUS_CHARACTERS_MAX = 500

export const statusSchema = z.strictObject({ text: z.string().max(STATUS_CHARACTERS_MAX) })

export interface StatusRouteOptions {
  readonly registry: WorkspaceRegistry
  readonly activity: Activity
  readonly auth: HttpAuth
}

export function statusRoutes({ registry, activity, auth }: StatusRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.put('/workspaces/:id/status', allow(auth, 'status.report'), async (context) => {
    const id = context.req.param('id')
    const identity = context.get('identity')
    requireOwnWorkspace(identity, id)
    const { text } = validateBody(statusSchema, await readJson(context.env.incoming, BODY_BYTES_MAX), 'a status')
    const line = text.replaceAll(/\s+/g, ' ').trim()
    await registry.setStatusText(id, line)
    await activity.addNote(id, { type: 'status_text', text: line, by: identity.name })
    return context.json({ status_text: line })
  })
  return routes
}
