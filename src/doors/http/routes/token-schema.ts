/** Tokens on the wire: what makes and rotates one, and what is shown of one, which is never its secret. */
import { z } from 'zod'
import { formatDuration, parseDuration } from '../../../duration.ts'
import { type NewToken, TOKEN_ROLES, type TokenInfo } from '../../../workspaces/tokens.ts'
import { validateBody } from '../server/validate-body.ts'

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

const id = z.string().trim().min(1).max(ID_CHARACTERS_MAX)

export const newTokenSchema = z.strictObject({
  name: z.string().trim().min(1).max(NAME_CHARACTERS_MAX),
  role: z.enum(TOKEN_ROLES),
  workspace_id: id.optional(),
  conversation_id: id.optional(),
  workspaces: z.array(id).min(1).max(WORKSPACES_MAX).optional(),
  expires_in: duration(1000, EXPIRY_MS_MAX).optional(),
})

export const rotationSchema = z.strictObject({ overlap: duration(0, OVERLAP_MS_MAX).optional() })

export function readNewToken(body: unknown): NewToken {
  const form = validateBody(newTokenSchema, body, 'a token')
  return {
    name: form.name,
    role: form.role,
    ...(form.workspace_id !== undefined && { workspaceId: form.workspace_id }),
    ...(form.conversation_id !== undefined && { conversationId: form.conversation_id }),
    ...(form.workspaces !== undefined && { workspaces: form.workspaces }),
    ...(form.expires_in !== undefined && { expiresInMs: toMs(form.expires_in) }),
  }
}

/** How long the old secret stays good. */
export function readOverlapMs(body: unknown): number {
  const { overlap } = validateBody(rotationSchema, body, 'a rotation')
  return overlap === undefined ? OVERLAP_MS : toMs(overlap)
}

/** Whole milliseconds, as every stored time is. */
const toMs = (text: string): number => Math.round(parseDuration(text) ?? 0)

export function viewToken(token: TokenInfo) {
  return {
    id: token.id,
    kind: token.kind,
    name: token.name,
    role: token.role,
    ...(token.workspaceId !== undefined && { workspace_id: token.workspaceId }),
    ...(token.conversationId !== undefined && { conversation_id: token.conversationId }),
    ...(token.workspaces !== undefined && { workspaces: token.workspaces }),
    created_at: instant(token.createdAtMs),
    expires_at: instant(token.expiresAtMs),
    last_used_at: instant(token.lastUsedAtMs),
    ...(token.oldUntilMs !== undefined && { old_secret_until: instant(token.oldUntilMs) }),
  }
}

const instant = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString())
