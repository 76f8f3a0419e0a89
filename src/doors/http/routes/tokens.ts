/**
 * Tokens over HTTP, for admins only: create, list, rotate, revoke. A secret is only in the answer that made it, and no
 * cache may store that answer. `GET /me` tells any caller what its own token is and may do.
 */
import { z } from 'zod'
import { actionsOf } from '../../../api/who-may.ts'
import { formatDuration, parseDuration } from '../../../duration.ts'
import { MoleculeError } from '../../../errors.ts'
import { type Identity, type NewToken, TOKEN_ROLES, type TokenInfo } from '../../../workspaces/tokens.ts'
import { isPlainLine, PLAIN_LINE_REASON, type Workspaces } from '../../../workspaces/workspace.ts'
import { requireWorkspace } from '../server/reach.ts'
import { route } from './route.ts'

const NAME_CHARACTERS_MAX = 100
const ID_CHARACTERS_MAX = 200
const WORKSPACES_MAX = 100
const EXPIRY_MS_MAX = 10 * 365 * 24 * 3600_000
const OVERLAP_MS_MAX = 7 * 24 * 3600_000
const OVERLAP_MS = 10 * 60_000

const duration = (msMin: number, msMax: number) =>
  z
    .string()
    .refine(
      (text) => {
        const ms = parseDuration(text)
        return ms !== undefined && ms >= msMin && ms <= msMax
      },
      `must be a duration such as "720h" from ${formatDuration(msMin)} to ${formatDuration(msMax)}`,
    )
    .meta({ description: 'Go syntax: 90s, 10m, 720h', examples: ['10m'] })

const idSchema = z.string().trim().min(1).max(ID_CHARACTERS_MAX)

/** The name of a token or a session, as lists and the activity show it. */
export const tokenNameSchema = z.string().trim().min(1).max(NAME_CHARACTERS_MAX).refine(isPlainLine, PLAIN_LINE_REASON)

const newTokenSchema = z.strictObject({
  name: tokenNameSchema,
  role: z.enum(TOKEN_ROLES),
  workspace_id: idSchema.optional(),
  conversation_id: idSchema.optional(),
  workspaces: z.array(idSchema).min(1).max(WORKSPACES_MAX).optional(),
  expires_in: duration(1000, EXPIRY_MS_MAX).optional(),
})

const rotationSchema = z.strictObject({ overlap: duration(0, OVERLAP_MS_MAX).optional() })

const meSchema = z.strictObject({
  token_id: z.string(),
  name: z.string(),
  role: z.enum(TOKEN_ROLES),
  /** The name under which its messages are kept apart from those of other senders. */
  principal: z.string(),
  workspace_id: z.string().optional(),
  /** As `x-action` of each route in the API document. */
  actions: z.array(z.string()),
})

/** A token or session without its secret. */
export const tokenViewSchema = z.strictObject({
  id: z.string(),
  kind: z.string(),
  name: z.string(),
  role: z.enum(TOKEN_ROLES),
  workspace_id: z.string().optional(),
  conversation_id: z.string().optional(),
  workspaces: z.array(z.string()).optional(),
  created_at: z.string().nullable(),
  expires_at: z.string().nullable(),
  last_used_at: z.string().nullable(),
  old_secret_until: z.string().nullable().optional(),
})

export const tokenRoutes = [
  route({
    method: 'get',
    path: '/me',
    access: 'platform.read',
    summary: 'The token or session of this request: its name, its role, and the actions that it may do',
    success: [200, 'The caller'],
    answer: meSchema,
    handle: ({ context, identity }) => context.json(viewMe(identity)),
  }),
  route({
    method: 'post',
    path: '/tokens',
    access: 'token.handle',
    body: { schema: newTokenSchema, name: 'a token' },
    summary: 'Create a token; its secret is only in this answer',
    success: [201, 'Its id and secret'],
    async handle({ context, body }, { tokens, workspaces }) {
      const input = toNewToken(body)
      await requireWorkspaces(workspaces, input)
      const { id, secret } = await tokens.create(input)
      return context.json({ id, token: secret }, 201, { Location: `/tokens/${id}` })
    },
  }),
  route({
    method: 'get',
    path: '/tokens',
    access: 'token.handle',
    summary: 'All tokens and sessions, without their secrets',
    success: [200, 'Tokens and sessions'],
    async handle({ context }, { tokens }) {
      const all = await tokens.list()
      return context.json({ tokens: all.map(viewToken) })
    },
  }),
  route({
    method: 'post',
    path: '/tokens/:id/rotate',
    access: 'token.handle',
    body: { schema: rotationSchema, name: 'a rotation', optional: true },
    summary: 'Create a new secret; the old one stays valid for the overlap',
    success: [200, 'Its id and new secret'],
    async handle({ context, body: { overlap } }, { tokens }) {
      const overlapMs = overlap === undefined ? OVERLAP_MS : toMs(overlap)
      const { id, secret } = await tokens.rotate(context.req.param('id'), overlapMs)
      return context.json({ id, token: secret })
    },
  }),
  route({
    method: 'delete',
    path: '/tokens/:id',
    access: 'token.handle',
    summary: 'Revoke a token; its open streams and waiting calls end',
    success: [204, 'Done'],
    async handle({ context }, { tokens }) {
      await tokens.revoke(context.req.param('id'))
      return context.body(null, 204)
    },
  }),
  route({
    method: 'delete',
    path: '/workspaces/:id/conversation-tokens',
    access: 'token.handle',
    summary: "Revoke the tokens that processes of the workspace's turns have got so far",
    success: [204, 'Done'],
    async handle({ context }, { tokens, workspaces }) {
      const { id } = await requireWorkspace(workspaces, context.req.param('id'))
      await tokens.revokeConversations(id)
      return context.body(null, 204)
    },
  }),
]

const viewMe = ({ tokenId, name, role, principal, workspaceId }: Identity): z.input<typeof meSchema> => ({
  token_id: tokenId,
  name,
  role,
  principal,
  ...(workspaceId !== undefined && { workspace_id: workspaceId }),
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
    ...(token.workspaceId !== undefined && { workspace_id: token.workspaceId }),
    ...(token.conversationId !== undefined && { conversation_id: token.conversationId }),
    ...(token.workspaces !== undefined && { workspaces: [...token.workspaces] }),
    created_at: instant(token.createdAtMs),
    expires_at: instant(token.expiresAtMs),
    last_used_at: instant(token.lastUsedAtMs),
    ...(token.oldUntilMs !== undefined && { old_secret_until: instant(token.oldUntilMs) }),
  }
}

const instant = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString())
