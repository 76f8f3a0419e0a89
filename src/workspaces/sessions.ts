/**
 * Sessions: (workspace, conversation) -> the backend's session token, which only the backend understands. A session is
 * on the disk of one host, so its row carries the host: another host starts a new session. Invariant: written only in
 * the settle transaction, so a token is stored exactly when the turn that returned it is.
 */
import { type Statement, sql, statement, type Transaction } from '../store/store.ts'

export interface SessionKey {
  readonly workspaceId: string
  readonly conversationId: string
}

/** Stores the token for this host, or deletes the session (undefined) when the backend has lost it. */
export function keepSession(host: string, key: SessionKey, token: string | undefined): Statement {
  if (token === undefined) return statement('delete from sessions where conversation_id = $1', [key.conversationId])
  return statement(
    `insert into sessions (conversation_id, workspace_id, host, runtime, token, updated_at)
     select $1, id, $3, runtime, $4, now_ms() from workspaces where id = $2
     on conflict (conversation_id) do update
     set host = excluded.host, runtime = excluded.runtime, token = excluded.token, updated_at = excluded.updated_at`,
    [key.conversationId, key.workspaceId, host, token],
  )
}

/** Whether a session of any host and backend is stored. */
export function* hasSession(conversationId: string): Transaction<boolean> {
  return (yield* sql('select host from sessions where conversation_id = $1', [conversationId])).length > 0
}

/** The session token of the conversation on this host, if the workspace still runs the same backend. */
export function* findSession(host: string, { conversationId }: SessionKey): Transaction<string | undefined> {
  const [row] = yield* sql<{ token: string }>(
    `select s.token from sessions s join workspaces w on w.id = s.workspace_id and w.runtime = s.runtime
     where s.conversation_id = $1 and s.host = $2`,
    [conversationId, host],
  )
  return row?.token
}
