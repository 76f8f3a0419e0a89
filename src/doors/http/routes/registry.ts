/**
 * The registry over HTTP: workspaces that run elsewhere register and send heartbeats; a workspace finds its peers.
 * A workspace reports only about itself: a body that names a workspace other than the token's is refused.
 */
import type { z } from 'zod'
import {
  discoverWorkspace,
  listPeers,
  type peerSchema,
  registerWorkspace,
  type reportedSchema,
  type reportSchema,
  sendHeartbeat,
} from '../../../api/registry.ts'
import { publicReason } from '../../../views/public-reason.ts'
import type { HeartbeatReport } from '../../../workspaces/presence.ts'
import { HEARTBEAT_SECONDS } from '../../../workspaces/registry.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import type { Workspace, WorkspaceLoad } from '../../../workspaces/workspace.ts'
import { CARD_PATH } from '../a2a/card-route.ts'
import { requireOwnWorkspace, requireWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'

export const registryRoutes = [
  serve(registerWorkspace, async ({ identity, body }, { registry }) => {
    const { id, report } = readReport(identity, body)
    return reportedAnswer(await registry.register(id, report))
  }),
  serve(sendHeartbeat, async ({ identity, body }, { registry }) => {
    const { id, report } = readReport(identity, body)
    return reportedAnswer(await registry.heartbeat(id, report))
  }),
  serve(discoverWorkspace, async ({ context, params }, { workspaces, addresses }) => {
    const workspace = await requireWorkspace(workspaces, params.id)
    return peerAnswer(workspace, addresses.baseUrl(context.env.incoming))
  }),
  serve(listPeers, async ({ context, params }, { registry, addresses }) => {
    const peers = await registry.peers(params.id)
    return { peers: peers.map((peer) => peerAnswer(peer, addresses.baseUrl(context.env.incoming))) }
  }),
]

function readReport(identity: Identity, { workspace_id: id, ...fields }: z.output<typeof reportSchema>) {
  requireOwnWorkspace(identity, id)
  const known = Object.entries(fields).filter(([, value]) => value !== undefined)
  return { id, report: Object.fromEntries(known) as HeartbeatReport }
}

function reportedAnswer(workspace: Workspace & WorkspaceLoad): z.output<typeof reportedSchema> {
  const { id, status, statusReason, queueDepth } = workspace
  return {
    id,
    status,
    status_reason: statusReason ?? null,
    queue_depth: queueDepth,
    heartbeat_seconds: HEARTBEAT_SECONDS,
  }
}

function peerAnswer(workspace: Workspace, base: string): z.output<typeof peerSchema> {
  const { id, name, role, runtime, status, statusReason, parentId } = workspace
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
