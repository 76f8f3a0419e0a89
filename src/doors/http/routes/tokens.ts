/**
 * Tokens over HTTP, for admins alone: make, list, rotate, revoke. A secret is in the answer that made it and in no
 * other; caches are told to keep nothing of it.
 */
import { Hono } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import type { NewToken, Tokens } from '../../../workspaces/tokens.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import type { HttpAuth } from '../server/auth.ts'
import { BODY_BYTES_MAX, readJson, readOptionalJson } from '../server/body.ts'
import { allow, type HttpEnv } from '../server/guard.ts'
import { readNewToken, readOverlapMs, viewToken } from './token-schema.ts'

export interface TokenRouteOptions {
  readonly tokens: Tokens
  readonly workspaces: Workspaces
  readonly auth: HttpAuth
}

export function tokenRoutes({ tokens, workspaces, auth }: TokenRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  const guard = allow(auth, 'token.handle')
  routes.post('/tokens', guard, async (context) => {
    const input = readNewToken(await readJson(context.env.incoming, BODY_BYTES_MAX))
    await requireWorkspaces(workspaces, input)
    const { id, secret } = await tokens.create(input)
    return context.json({ id, token: secret }, 201, { ...NOT_KEPT, Location: `/tokens/${id}` })
  })
  routes.get('/tokens', guard, async (context) => {
    const all = await tokens.list()
    return context.json({ tokens: all.map(viewToken) })
  })
  routes.post('/tokens/:id/rotate', guard, async (context) => {
    const overlapMs = readOverlapMs((await readOptionalJson(context.env.incoming, BODY_BYTES_MAX)) ?? {})
    const { id, secret } = await tokens.rotate(context.req.param('id'), overlapMs)
    return context.json({ id, token: secret }, 200, NOT_KEPT)
  })
  routes.delete('/tokens/:id', guard, async (context) => {
    await tokens.revoke(context.req.param('id'))
    return context.body(null, 204)
  })
  return routes
}

const NOT_KEPT = { 'Cache-Control': 'no-store' }

/** A token for a workspace that does not exist would begin to work when somebody makes one by that name. */
async function requireWorkspaces(workspaces: Workspaces, { workspaceId, workspaces: listed = [] }: NewToken) {
  const named = workspaceId === undefined ? listed : [workspaceId, ...listed]
  for (const id of named) {
    if ((await workspaces.get(id)) !== undefined) continue
    const path = workspaceId === undefined ? 'workspaces' : 'workspace_id'
    throw new MoleculeError('invalid_request', `field "${path}": there is no workspace ${id}`, { details: { path } })
  }
}
