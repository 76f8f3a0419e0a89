/**
 * What becomes of a workspace, over HTTP: PATCH, DELETE, restart, pause, resume. Deleting needs the workspace's name
 * or id a second time, because it cannot be taken back.
 */
import { Hono } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import type { WorkspaceLifecycle, Workspaces } from '../../../workspaces/workspace.ts'
import type { HttpAuth } from '../server/auth.ts'
import { BODY_BYTES_MAX, readJson } from '../server/body.ts'
import { allow, type HttpEnv } from '../server/guard.ts'
import { readQueryFlag } from '../server/query.ts'
import { readWorkspaceChange, viewWorkspace } from './workspace-schema.ts'

export interface LifecycleRouteOptions {
  readonly workspaces: Workspaces
  readonly lifecycle: WorkspaceLifecycle
  readonly auth: HttpAuth
}

export function lifecycleRoutes({ workspaces, lifecycle, auth }: LifecycleRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  const at = '/workspaces/:id'
  routes.patch(at, allow(auth, 'workspace.change'), async (context) => {
    const change = readWorkspaceChange(await readJson(context.env.incoming, BODY_BYTES_MAX))
    return context.json(viewWorkspace(await lifecycle.change(context.req.param('id'), change)))
  })
  routes.delete(at, allow(auth, 'workspace.delete'), async (context) => {
    const id = context.req.param('id')
    const cascade = readQueryFlag(context, 'cascade')
    const workspace = await workspaces.get(id)
    if (workspace === undefined) throw new MoleculeError('not_found', `there is no workspace ${id}`)
    requireConfirmation(context.req.query('confirm'), workspace)
    return context.json({ deleted: await lifecycle.remove(id, { cascade }) })
  })
  routes.post(`${at}/restart`, allow(auth, 'workspace.restart'), async (context) =>
    context.json(viewWorkspace(await lifecycle.restart(context.req.param('id')))),
  )
  routes.post(`${at}/pause`, allow(auth, 'workspace.pause'), async (context) => {
    const now = readQueryFlag(context, 'now')
    return context.json(viewWorkspace(await lifecycle.pause(context.req.param('id'), { now })))
  })
  routes.post(`${at}/resume`, allow(auth, 'workspace.pause'), async (context) =>
    context.json(viewWorkspace(await lifecycle.resume(context.req.param('id')))),
  )
  return routes
}

function requireConfirmation(confirm: string | undefined, { id, name }: { id: string; name: string }): void {
  if (confirm === id || confirm === name) return
  const problem = confirm === undefined ? 'deleting needs' : `${JSON.stringify(confirm)} is not its name:`
  throw new MoleculeError('invalid_request', `${problem} confirm=<the name or id of the workspace> in the query`, {
    details: { path: 'confirm' },
  })
}
