/**
 * The registry over HTTP: workspaces that run elsewhere register and send heartbeats, and any may ask who is there.
 * A workspace speaks for itself only: its token says which one it is, and a body that names another is refused.
 */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import type { HeartbeatReport } from '../../../workspaces/presence.ts'
import { HEARTBEAT_SECONDS, type WorkspaceRegistry } from '../../../workspaces/registry.ts'
import type { Workspace, WorkspaceLoad, Workspaces } from '../../../workspaces/workspace.ts'
import type { HttpAuth } from '../server/auth.ts'
import { BODY_BYTES_MAX, readJson } from '../server/body.ts'
import { allow, type HttpEnv } from '../server/guard.ts'
import { type Reach, requireOwnWorkspace } from '../server/reach.ts'
import { validateBody } from '../server/validate-body.ts'

const TASK_CHARACTERS_MAX = 500
const WORD_CHARACTERS_MAX = 200
const TASKS_MAX = 100_000

export const reportSchema = z.strictObject({
  workspace_id: z.string().min(1).max(WORD_CHARACTERS_MAX),
  current_task: z.string().max(TASK_CHARACTERS_MAX).optional(),
  active_tasks: z.int().min(0).max(TASKS_MAX).optional(),
  error_rate: z.number().min(0).max(1).optional(),
  runtime_state: z.string().max(WORD_CHARACTERS_MAX).optional(),
  uptime_seconds: z.number().min(0).optional(),
  problem: z.string().max(TASK_CHARACTERS_MAX).optional(),
})

export interface RegistryRouteOptions {
  readonly registry: WorkspaceRegistry
  readonly workspaces: Workspaces
  readonly auth: HttpAuth
  readonly reach: Reach
}

export function registryRoutes({ registry, workspaces, auth, reach }: RegistryRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.post('/registry/register', allow(auth, 'registry.report'), async (context) => {
    const { id, report } = await readReport(context)
    return context.json(viewReported(await registry.register(id, report)))
  })
  routes.post('/registry/heartbeat', allow(auth, 'registry.report'), async (context) => {
    const { id, report } = await readReport(context)
    return context.json(viewReported(await registry.heartbeat(id, report)))
  })
  routes.get('/registry/discover/:id', allow(auth, 'workspace.read'), async (context) => {
    const id = context.req.param('id')
    await reach(context.get('identity'), id, 'workspace.read')
    const workspace = await workspaces.get(id)
    if (workspace === undefined) throw new MoleculeError('not_found', `there is no workspace ${id}`)
    return context.json(viewPeer(workspace, originOf(context)))
  })
  routes.get('/registry/:id/peers', allow(auth, 'registry.peers'), async (context) => {
    const id = context.req.param('id')
    requireOwnWorkspace(context.get('identity'), id)
    const peers = await registry.peers(id)
    return context.json({ peers: peers.map((peer) => viewPeer(peer, originOf(context))) })
  })
  return routes
}

async function readReport(context: Context<HttpEnv>): Promise<{ id: string; report: HeartbeatReport }> {
  const body = await readJson(context.env.incoming, BODY_BYTES_MAX)
  const { workspace_id: id, ...fields } = validateBody(reportSchema, body, 'a report')
  requireOwnWorkspace(context.get('identity'), id)
  const known = Object.entries(fields).filter(([, value]) => value !== undefined)
  return { id, report: Object.fromEntries(known) as HeartbeatReport }
}

/** What a workspace is told when it was heard: how it stands, and when to say something again. */
function viewReported({ id, status, statusReason, queueDepth }: Workspace & WorkspaceLoad) {
  return {
    id,
    status,
    status_reason: statusReason ?? null,
    queue_depth: queueDepth,
    heartbeat_seconds: HEARTBEAT_SECONDS,
  }
}

function viewPeer({ id, name, role, runtime, status, statusReason, parentId }: Workspace, origin: string) {
  const url = `${origin}/workspaces/${id}/a2a`
  return {
    ...{ id, name, role, runtime, status },
    status_reason: statusReason ?? null,
    parent_id: parentId ?? null,
    url,
    card_url: `${url}/.well-known/agent-card.json`,
  }
}

/** Where this platform was reached just now, which is where whoever asks will reach it again. */
export const originOf = (context: Context<HttpEnv>): string => new URL(context.req.url).origin
