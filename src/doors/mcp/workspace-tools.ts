/** The tools about workspaces: peers, and the workspace itself. */
import { z } from 'zod'
import { MoleculeError } from '../../errors.ts'
import { isWorkspaceId } from '../../ids.ts'
import { shorten } from '../../truncate.ts'
import { mayTalk, seesStatusText } from '../../workspaces/may-talk.ts'
import type { Workspace, WorkspaceLoad } from '../../workspaces/workspace.ts'
import { jsonResult, type ToolCall, tool } from './tool.ts'

export const WORKSPACE_CHARACTERS_MAX = 200
/** More peers are only counted: the list must fit into one result of a tool, and a list of tasks asks each of them. */
export const PEERS_MAX = 100
const ROLE_CHARACTERS_MAX = 120

const workspaceId = z.string().min(1).max(WORKSPACE_CHARACTERS_MAX)

export const workspaceTools = [
  tool({
    name: 'list_peers',
    access: 'registry.peers',
    description: 'Lists the other workspaces that you can give tasks to: name, id, status and role of each.',
    input: z.object({}),
    readOnly: true,
    async run(_, { registry, workspaceId: own }) {
      const peers = await registry.peers(own)
      const listed = peers.slice(0, PEERS_MAX).map(peerLine)
      return jsonResult({ peers: listed, ...(peers.length > PEERS_MAX && { not_listed: peers.length - PEERS_MAX }) })
    },
  }),
  tool({
    name: 'get_workspace_info',
    access: 'workspace.read',
    description: 'Shows your own workspace, or the one with the given id or name: role, status, parent, open tasks.',
    input: z.object({ workspace_id: workspaceId.optional().describe('id or name; default: your own workspace') }),
    readOnly: true,
    async run({ workspace_id: given }, call) {
      const { workspaceId: own, workspaces, identity } = call
      const isOwn = given === undefined || given === own
      const workspace = isOwn ? await workspaces.get(own) : await findPeer(given, call)
      if (workspace === undefined) throw new MoleculeError('not_found', `there is no workspace ${own}`)
      const { parentId, runtime, model, statusText, queueDepth, running } = workspace
      return jsonResult({
        ...peerLine(workspace),
        parent_id: parentId ?? null,
        runtime,
        model: model ?? null,
        ...(seesStatusText(identity, workspace.id) && { status_text: statusText?.text ?? null }),
        queue_depth: queueDepth,
        running,
      })
    },
  }),
]

function peerLine({ name, id, status, role }: Workspace) {
  return { name, id, status, role: shorten(role, ROLE_CHARACTERS_MAX) }
}

/** The workspace with this id or name, if the caller's workspace may talk to it. Throws with the reason. */
export async function findPeer(
  idOrName: string,
  { workspaceId: own, workspaces, registry }: Pick<ToolCall, 'workspaceId' | 'workspaces' | 'registry'>,
): Promise<Workspace & WorkspaceLoad> {
  if (!isWorkspaceId(idOrName)) return onlyOne(idOrName, await registry.peers(own))
  const [from, to] = await Promise.all([workspaces.get(own), workspaces.get(idOrName)])
  if (from === undefined || to === undefined) throw new MoleculeError('not_found', `there is no workspace ${idOrName}`)
  const decision = mayTalk(from, to)
  if (decision.ok) return to
  throw new MoleculeError('forbidden', decision.reason)
}

/** Names of other workspaces do not exist for this caller. */
function onlyOne(name: string, peers: readonly (Workspace & WorkspaceLoad)[]): Workspace & WorkspaceLoad {
  const named = peers.filter((peer) => peer.name === name)
  const [found] = named
  if (found === undefined) throw new MoleculeError('not_found', `you have no peer called ${JSON.stringify(name)}`)
  if (named.length === 1) return found
  const ids = named.map(({ id }) => id).join(', ')
  throw new MoleculeError(
    'invalid_request',
    `${named.length} peers are called ${JSON.stringify(name)}; use an id: ${ids}`,
  )
}
