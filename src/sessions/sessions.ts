/**
 * Sessions: (workspace, conversation) -> the backend's own token, opaque to everybody else. A session lives on one
 * host's disk, so its row carries the host: another host starts afresh. Written inside the settle transaction only,
 * so that a token is kept exactly when the turn that gave it is.
 */
import { type Statement, sql, statement, type Transaction } from '../store/store.ts'

export interface SessionKey {
  readonly workspaceId: string
  readonly conversationId: string
}

/** Keeps the token for this host, or forgets the session when the backend said that it is lost. */
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

/** A workspace's settings as they are stored, and the session that its next turn goes on with. */
export interface TurnRow {
  readonly role: string
  readonly runtime: string
  readonly settings: string
  readonly token: string | null
}

/**
 * The token is that of the conversation's session on this host, if the workspace still runs the backend that gave it.
 * With the settings in one statement, because both are read before every turn. Undefined where the workspace is gone.
 */
export function* findTurnRow(host: string, key: SessionKey): Transaction<TurnRow | undefined> {
  const [row] = yield* sql<TurnRow>(
    `select w.role, w.runtime, w.settings, s.token from workspaces w join workspace_load l on l.workspace_id = w.id
     left join sessions s on s.conversation_id = $2 and s.host = $3 and s.runtime = w.runtime where w.id = $1`,
    [key.workspaceId, key.conversationId, host],
  )
  return row
}
