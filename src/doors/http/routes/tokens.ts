/**
 * Tokens over HTTP, for admins only: create, list, rotate, revoke. A secret is only in the answer that made it, and no
 * cache may store that answer. `GET /me` tells any caller what its own token is and may do.
 */
import type { z } from 'zod'
import {
  createToken,
  listTokens,
  type newTokenSchema,
  readMe,
  revokeConversationTokens,
  revokeToken,
  rotateToken,
} from '../../../api/tokens.ts'
import { actionsOf } from '../../../api/who-may.ts'
import { parseDuration } from '../../../duration.ts'
import { MoleculeError } from '../../../errors.ts'
import { readTokens } from '../../../views/tokens.ts'
import type { NewToken } from '../../../workspaces/tokens.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import { requireWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'

const OVERLAP_MS = 10 * 60_000

export const tokenRoutes = [
  serve(readMe, ({ identity: { tokenId, name, role, principal, workspaceId } }) => {
    return { token_id: tokenId, name, role, principal, workspace_id: workspaceId, actions: actionsOf(role) }
  }),
  serve(createToken, async ({ context, body }, { tokens, workspaces }) => {
    const input = toNewToken(body)
    await requireWorkspaces(workspaces, input)
    const { id, secret } = await tokens.create(input)
    context.header('Location', `/tokens/${id}`)
    return { id, token: secret }
  }),
  serve(listTokens, async (_call, { store }) => ({ tokens: await readTokens(store) })),
  serve(rotateToken, async ({ params, body: { overlap } }, { tokens }) => {
    const { id, secret } = await tokens.rotate(params.id, overlap === undefined ? OVERLAP_MS : toMs(overlap))
    return { id, token: secret }
  }),
  serve(revokeToken, async ({ params }, { tokens }) => {
    await tokens.revoke(params.id)
  }),
  serve(revokeConversationTokens, async ({ params }, { tokens, workspaces }) => {
    const { id } = await requireWorkspace(workspaces, params.id)
    await tokens.revokeConversations(id)
  }),
]

function toNewToken(body: z.output<typeof newTokenSchema>): NewToken {
  return {
    name: body.name,
    role: body.role,
    workspaceId: body.workspace_id,
    conversationId: body.conversation_id,
    workspaces: body.workspaces,
    expiresInMs: body.expires_in === undefined ? undefined : toMs(body.expires_in),
  }
}

/** Prevents a token that becomes valid later, when an admin creates a workspace with the id that it names. */
async function requireWorkspaces(workspaces: Workspaces, { workspaceId, workspaces: listed = [] }: NewToken) {
  const named = workspaceId === undefined ? listed : [workspaceId, ...listed]
  for (const id of named) {
    if ((await workspaces.get(id)) !== undefined) continue
    const path = workspaceId === undefined ? 'workspaces' : 'workspace_id'
    throw new MoleculeError('invalid_request', `field "${path}": there is no workspace ${id}`, { details: { path } })
  }
}

/** In whole milliseconds, like every stored time. */
const toMs = (text: string): number => Math.round(parseDuration(text) ?? 0)
