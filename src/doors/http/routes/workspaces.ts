/**
 * The platform API's first routes: make workspaces, list them, look at one. Each route says which action it is and
 * the guard decides; what a workspace looks like on the wire is `workspace-form.ts`.
 */
import { Hono } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import type { Identity, Tokens } from '../../../workspaces/tokens.ts'
import { isExternal, type Workspace, type WorkspaceLoad, type Workspaces } from '../../../workspaces/workspace.ts'
import type { HttpAuth } from '../server/auth.ts'
import { BODY_BYTES_MAX, readJson } from '../server/body.ts'
import { allow, type HttpEnv } from '../server/guard.ts'
import { type Reach, reachable, seesConfig } from '../server/reach.ts'
import { originOf } from './registry.ts'
import { readNewWorkspace, viewWorkspace, type WorkspaceView, withoutConfig } from './workspace-schema.ts'

export interface WorkspaceRouteOptions {
  readonly workspaces: Workspaces
  readonly auth: HttpAuth
  readonly reach: Reach
  readonly tokens: Tokens
}

export function workspaceRoutes({ workspaces, auth, reach, tokens }: WorkspaceRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.post('/workspaces', allow(auth, 'workspace.create'), async (context) => {
    const input = readNewWorkspace(await readJson(context.env.incoming, BODY_BYTES_MAX))
    const workspace = await workspaces.create(input)
    const connecting = isExternal(workspace) ? await createBridgeAccess(workspace, tokens, originOf(context)) : {}
    return context.json({ ...viewWorkspace(workspace), ...connecting }, 201, {
      Location: `/workspaces/${workspace.id}`,
    })
  })
  routes.get('/workspaces', allow(auth, 'workspace.read'), async (context) => {
    const identity = context.get('identity')
    const all = reachable(identity, await workspaces.list())
    return context.json({ workspaces: all.map((workspace) => viewWorkspaceFor(identity, workspace)) })
  })
  routes.get('/workspaces/:id', allow(auth, 'workspace.read'), async (context) => {
    const id = context.req.param('id')
    const identity = context.get('identity')
    await reach(identity, id, 'workspace.read')
    const workspace = await workspaces.get(id)
    if (workspace === undefined) throw new MoleculeError('not_found', `there is no workspace ${id}`)
    return context.json(viewWorkspaceFor(identity, workspace))
  })
  return routes
}

/** What the bridge of an external workspace needs: its token, in this answer only, and the command to paste. */
async function createBridgeAccess({ id, name }: Workspace, tokens: Tokens, origin: string) {
  const { secret } = await tokens.create({ name: `bridge of ${name}`, role: 'workspace', workspaceId: id })
  return { auth_token: secret, connect: `molecule connect ${id} --token ${secret} --api-url ${origin}` }
}

/** What of a workspace this token may see. */
export function viewWorkspaceFor(identity: Identity, workspace: Workspace & WorkspaceLoad): WorkspaceView {
  const view = viewWorkspace(workspace)
  if (seesConfig(identity)) return view
  // What others say to a workspace is for people: a program or a peer is not told what it works on.
  const shown = withoutConfig(view)
  if (identity.role === 'viewer') return shown
  const { current_task: _task, status_text: text, status_text_at: at, ...known } = shown
  // Its own words it may read again.
  return identity.workspaceId === workspace.id && text !== undefined
    ? { ...known, status_text: text, status_text_at: at ?? null }
    : known
}
