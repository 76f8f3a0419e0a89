/** Tokens and browser sessions. A secret is only in the answer that made it. */
import { z } from 'zod'
import { formatDuration, parseDuration } from '../duration.ts'
import { TOKEN_ROLES } from '../workspaces/tokens.ts'
import { isPlainLine, PLAIN_LINE_REASON } from '../workspaces/workspace.ts'
import { endpoint, nothing } from './endpoint.ts'

const NAME_CHARACTERS_MAX = 100
const ID_CHARACTERS_MAX = 200
const WORKSPACES_MAX = 100
const EXPIRY_MS_MAX = 10 * 365 * 24 * 3600_000
const OVERLAP_MS_MAX = 7 * 24 * 3600_000

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

export const newTokenSchema = z.strictObject({
  name: tokenNameSchema,
  role: z.enum(TOKEN_ROLES),
  workspace_id: idSchema.optional(),
  conversation_id: idSchema.optional(),
  workspaces: z.array(idSchema).min(1).max(WORKSPACES_MAX).optional(),
  expires_in: duration(1000, EXPIRY_MS_MAX).optional(),
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
  created_at: z.string(),
  expires_at: z.string().nullable(),
  last_used_at: z.string().nullable(),
  old_secret_until: z.string().nullable().optional(),
})

const secretSchema = z.strictObject({ id: z.string(), token: z.string().describe('The secret.') })

export const readMe = endpoint('GET /me', {
  access: 'platform.read',
  summary: 'The token or session of this request: its name, its role, and the actions that it may do',
  success: [200, 'The caller'],
  answer: z.strictObject({
    token_id: z.string(),
    name: z.string(),
    role: z.enum(TOKEN_ROLES),
    /** The name under which its messages are kept apart from those of other senders. */
    principal: z.string(),
    workspace_id: z.string().optional(),
    /** As `x-action` of each route in the API document. */
    actions: z.array(z.string()),
  }),
})

export const createToken = endpoint('POST /tokens', {
  access: 'token.handle',
  body: { schema: newTokenSchema, name: 'a token' },
  summary: 'Create a token; its secret is only in this answer',
  success: [201, 'Its id and secret'],
  answer: secretSchema,
})

export const listTokens = endpoint('GET /tokens', {
  access: 'token.handle',
  summary: 'All tokens and sessions, without their secrets',
  success: [200, 'Tokens and sessions'],
  answer: z.strictObject({ tokens: z.array(tokenViewSchema) }),
})

export const rotateToken = endpoint('POST /tokens/{id}/rotate', {
  access: 'token.handle',
  body: {
    schema: z.strictObject({ overlap: duration(0, OVERLAP_MS_MAX).optional() }),
    name: 'a rotation',
    optional: true,
  },
  summary: 'Create a new secret; the old one stays valid for the overlap',
  success: [200, 'Its id and new secret'],
  answer: secretSchema,
})

export const revokeToken = endpoint('DELETE /tokens/{id}', {
  access: 'token.handle',
  summary: 'Revoke a token; its open streams and waiting calls end',
  success: [204, 'Done'],
  answer: nothing,
})

export const revokeConversationTokens = endpoint('DELETE /workspaces/{id}/conversation-tokens', {
  access: 'token.handle',
  summary: "Revoke the tokens that processes of the workspace's turns have got so far",
  success: [204, 'Done'],
  answer: nothing,
})

export const tokenEndpoints = [
  readMe,
  createToken,
  listTokens,
  rotateToken,
  revokeToken,
  revokeConversationTokens,
] as const
