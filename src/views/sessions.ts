/** The conversations that one chat has had with a workspace, the one that began last first. */
import { type ReadStore, sql, type Transaction } from '../store/store.ts'
import { firstWordsOf } from './conversations.ts'
import { instant } from './instant.ts'

export interface SessionsQuery {
  readonly workspaceId: string
  /** Of the chat. */
  readonly principal: string
  readonly limit: number
}

export interface ChatSession {
  readonly contextId: string
  readonly firstWords: string
  /** When its last message came, for people: `2026-05-04 10:20 UTC`. */
  readonly atText: string
}

export const readSessions = (store: ReadStore, query: SessionsQuery): Promise<ChatSession[]> =>
  store.read(() => sessionsOf(query))

interface SessionRow {
  id: string
  context_id: string
  admitted_at: number
}

/** A context of a chat is a ULID, so its order is that of the beginnings. */
const LATEST = `select c.id, c.context_id, m.admitted_at from conversations c
  join messages m on m.conversation_id = c.id and m.n = c.last_n
  where c.workspace_id = $1 and c.principal = $2 and c.id <> c.context_id order by c.context_id desc limit $3`

function* sessionsOf({ workspaceId, principal, limit }: SessionsQuery): Transaction<ChatSession[]> {
  const rows = yield* sql<SessionRow>(LATEST, [workspaceId, principal, limit])
  const sessions: ChatSession[] = []
  for (const row of rows) {
    const firstWords = yield* firstWordsOf(row.id)
    const atText = `${instant(row.admitted_at).slice(0, 16).replace('T', ' ')} UTC`
    sessions.push({ contextId: row.context_id, firstWords, atText })
  }
  return sessions
}
