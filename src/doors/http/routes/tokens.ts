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
  type tokenViewSchema,
} from '../../../api/tokens.ts'
import { actionsOf } from '../../../api/who-may.ts'
import { parseDuration } from '../../../duration.ts'
import { MoleculeError } from '../../../errors.ts'
import type { Identity, NewToken, TokenInfo } from '../../../workspaces/tokens.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import { requireWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'

const OVERLAP_MS = 10 * 60_000

export const tokenRoutes = [
  serve(readMe, ({ identity }) => viewMe(identity)),
  serve(createToken, async ({ context, body }, { tokens, workspaces }) => {
    const input = toNewToken(body)
    await requireWorkspaces(workspaces, input)
    const { id, secret } = await tokens.create(input)
    context.header('Location', `/tokens/${id}`)
    return { id, token: secret }
  }),
  serve(listTokens, async (_call, { tokens }) => ({ tokens: (await tokens.list()).map(viewToken) })),
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

const viewMe = ({ tokenId, name, role, principal, workspaceId }: Identity): z.input<typeof readMe.answer> => ({
  token_id: tokenId,
  name,
  role,
  principal,
  workspace_id: workspaceId,
  actions: [...actionsOf(role)],
})

function toNewToken(body: z.output<typeof newTokenSchema>): NewToken {
  return {
    name: body.name,
    role: body.role,
    ...(body.workspace_id !== undefined && { workspaceId: body.workspace_id }),
    ...(body.conversation_id !== undefined && { conversationId: body.conversation_id }),
    ...(body.workspaces !== undefined && { workspaces: body.workspaces }),
    ...(body.expires_in !== undefined && { expiresInMs: toMs(body.expires_in) }),
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

export function viewToken(token: TokenInfo): z.input<typeof tokenViewSchema> {
  return {
    id: token.id,
    kind: token.kind,
    name: token.name,
    role: token.role,
    workspace_id: token.workspaceId,
    conversation_id: token.conversationId,
    workspaces: token.workspaces && [...token.workspaces],
    created_at: new Date(token.createdAtMs).toISOString(),
    expires_at: instant(token.expiresAtMs),
    last_used_at: instant(token.lastUsedAtMs),
    old_secret_until: token.oldUntilMs === undefined ? undefined : instant(token.oldUntilMs),
  }
}

const instant = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString())
