/**
 * The registry over HTTP: workspaces that run elsewhere register and send heartbeats; a workspace finds its peers.
 * A workspace reports only about itself: a body that names a workspace other than the token's is refused.
 */
import { z } from 'zod'
import type { HeartbeatReport } from '../../../workspaces/presence.ts'
import { HEARTBEAT_SECONDS } from '../../../workspaces/registry.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import type { Workspace, WorkspaceLoad } from '../../../workspaces/workspace.ts'
import { publicReason } from '../../public-reason.ts'
import { CARD_PATH } from '../a2a/card-route.ts'
import { requireOwnWorkspace, requireWorkspace } from '../server/reach.ts'
import { route } from './route.ts'

const TASK_CHARACTERS_MAX = 500
const WORD_CHARACTERS_MAX = 200
const TASKS_MAX = 100_000

/** A report with more is refused: people read each of them. */
const LIMITS_MAX = 10

const reportSchema = z.strictObject({
  workspace_id: z.string().min(1).max(WORD_CHARACTERS_MAX),
  current_task: z.string().max(TASK_CHARACTERS_MAX).optional(),
  active_tasks: z.int().min(0).max(TASKS_MAX).optional(),
  error_rate: z.number().min(0).max(1).optional(),
  runtime_state: z.string().max(WORD_CHARACTERS_MAX).optional(),
  uptime_seconds: z.number().min(0).optional(),
  problem: z.string().max(TASK_CHARACTERS_MAX).optional(),
  limits: z.array(z.string().max(TASK_CHARACTERS_MAX)).max(LIMITS_MAX).optional(),
})

export const registryRoutes = [
  reportRoute('register', 'Register a workspace that runs elsewhere'),
  reportRoute('heartbeat', 'Report that it still runs, and its state'),
  route({
    method: 'get',
    path: '/registry/discover/:id',
    access: 'workspace.read',
    reach: 'reachable',
    summary: 'The address of a workspace',
    success: [200, 'The workspace with its URLs'],
    async handle({ context }, { workspaces, addresses }) {
      const workspace = await requireWorkspace(workspaces, context.req.param('id'))
      return context.json(viewPeer(workspace, addresses.baseUrl(context.env.incoming)))
    },
  }),
  route({
    method: 'get',
    path: '/registry/:id/peers',
    access: 'registry.peers',
    reach: 'own',
    summary: 'The workspaces that this workspace may talk to',
    success: [200, 'The peers with their URLs'],
    async handle({ context }, { registry, addresses }) {
      const peers = await registry.peers(context.req.param('id'))
      return context.json({ peers: peers.map((peer) => viewPeer(peer, addresses.baseUrl(context.env.incoming))) })
    },
  }),
]

function reportRoute(name: 'register' | 'heartbeat', summary: string) {
  return route({
    method: 'post',
    path: `/registry/${name}`,
    access: 'registry.report',
    body: { schema: reportSchema, name: 'a report' },
    summary,
    success: [200, 'The status, and when to send the next heartbeat'],
    async handle({ context, identity, body }, { registry }) {
      const { id, report } = readReport(identity, body)
      return context.json(viewReported(await registry[name](id, report)))
    },
  })
}

function readReport(identity: Identity, { workspace_id: id, ...fields }: z.output<typeof reportSchema>) {
  requireOwnWorkspace(identity, id)
  const known = Object.entries(fields).filter(([, value]) => value !== undefined)
  return { id, report: Object.fromEntries(known) as HeartbeatReport }
}

function viewReported({ id, status, statusReason, queueDepth }: Workspace & WorkspaceLoad) {
  return {
    id,
    status,
    status_reason: statusReason ?? null,
    queue_depth: queueDepth,
    heartbeat_seconds: HEARTBEAT_SECONDS,
  }
}

function viewPeer({ id, name, role, runtime, status, statusReason, parentId }: Workspace, base: string) {
  const url = `${base}/workspaces/${id}/a2a`
  return {
    id,
    name,
    role,
    runtime,
    status,
    status_reason: statusReason === undefined ? null : publicReason(statusReason),
    parent_id: parentId ?? null,
    url,
    card_url: `${url}${CARD_PATH}`,
  }
}
