/**
 * The platform API's first routes: make workspaces, list them, look at one. Each route says which action it is and
 * the guard decides; what a workspace looks like on the wire is `workspace-form.ts`.
 */
import { Hono } from 'hono'
import { MoleculeError } from '../../errors.ts'
import type { Workspaces } from '../../workspaces/workspace.ts'
import type { Auth } from './auth.ts'
import { BODY_BYTES_MAX, readJson } from './body.ts'
import { allow, type HttpEnv } from './context.ts'
import { readNewWorkspace, viewWorkspace } from './workspace-form.ts'

export function platformRoutes(workspaces: Workspaces, auth: Auth): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.post('/workspaces', allow(auth, 'workspace.create'), async (context) => {
    const input = readNewWorkspace(await readJson(context.env.incoming, BODY_BYTES_MAX))
    const workspace = await workspaces.create(input)
    return context.json(viewWorkspace(workspace), 201, { Location: `/workspaces/${workspace.id}` })
  })
  routes.get('/workspaces', allow(auth, 'workspace.read'), async (context) => {
    const all = await workspaces.list()
    return context.json({ workspaces: all.map(viewWorkspace) })
  })
  routes.get('/workspaces/:id', allow(auth, 'workspace.read'), async (context) => {
    const id = context.req.param('id')
    const workspace = await workspaces.get(id)
    if (workspace === undefined) throw new MoleculeError('not_found', `there is no workspace ${id}`)
    return context.json(viewWorkspace(workspace))
  })
  return routes
}
