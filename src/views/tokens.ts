/**
 * Tokens and browser log-ins as admins see them: what each may do and when it was used.
 * Invariant: neither a secret nor its hash is read.
 */
import type { ApiAnswer } from '../api/api.ts'
import { type ReadStore, sql } from '../store/store.ts'
import { TOKENS_MAX } from '../workspaces/tokens.ts'
import { instant, instantOf } from './instant.ts'

type TokenAnswer = ApiAnswer<'GET /tokens'>['tokens'][number]

/** All tokens, and the log-ins that are not over, the oldest first. */
export const readTokens = (store: ReadStore): Promise<TokenAnswer[]> => read(store, '')

/** Those with which a bridge or a program acts as the workspace; not those of the processes of its turns. */
export const readTokensOf = (store: ReadStore, workspaceId: string): Promise<TokenAnswer[]> =>
  read(store, `and t.role = 'workspace' and t.workspace_id = $1`, [workspaceId])

interface TokenRow {
  id: string
  kind: string
  name: string
  role: TokenAnswer['role']
  workspace_id: string | null
  conversation_id: string | null
  workspaces: string | null
  created_at: number
  expires_at: number | null
  last_used_at: number | null
  old_until: number | null
}

async function read(store: ReadStore, condition: string, values: readonly string[] = []): Promise<TokenAnswer[]> {
  const select = `select t.id, t.kind, t.name, t.role, t.workspace_id, t.conversation_id, t.workspaces, t.created_at,
      t.expires_at, t.last_used_at, case when t.old_until > now_ms() then t.old_until end as old_until
    from tokens t where (t.kind = 'token' or t.expires_at is null or t.expires_at > now_ms()) ${condition}
    order by t.id limit ${TOKENS_MAX}`
  return (await store.read(() => sql<TokenRow>(select, values))).map(token)
}

const token = ({ old_until, ...row }: TokenRow): TokenAnswer => ({
  ...row,
  workspace_id: row.workspace_id ?? undefined,
  conversation_id: row.conversation_id ?? undefined,
  workspaces: row.workspaces === null ? undefined : (JSON.parse(row.workspaces) as string[]),
  created_at: instant(row.created_at),
  expires_at: instantOf(row.expires_at) ?? null,
  last_used_at: instantOf(row.last_used_at) ?? null,
  old_secret_until: instantOf(old_until),
})
