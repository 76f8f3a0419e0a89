/**
 * The conversations of a workspace, the last changed first. A conversation stands at the time of the task of its last
 * message: so the index of tasks gives the order, and each conversation comes once. A page ends at a number of rows, of
 * tasks looked at, or of bytes searched; the reader goes on from the cursor.
 */
import type { ApiAnswer } from '../api/api.ts'
import { inStates } from '../inbox/rows/message.ts'
import type { Sender } from '../protocol/request.ts'
import { readTimeCursor, writeTimeCursor } from '../store/page-budget.ts'
import { type ReadStore, sql, type Transaction } from '../store/store.ts'
import { truncate } from '../truncate.ts'
import { type ChatStateRow, chatStateOf } from './chat-state.ts'
import { instant } from './instant.ts'
import { foldForSearch, likePattern, messageTextOf, replyTextOf } from './message-search.ts'

/** Tasks that one page looks at. */
const TASKS_SCANNED_MAX = 500
/** A search reads at most this many bytes of messages and replies for one page. */
const SEARCH_BYTES_MAX = 4 * 1024 * 1024
/** A search reads the last messages of each conversation, and no larger text. */
const SEARCHED_MESSAGES = 50
const SEARCHED_TEXT_BYTES_MAX = 32 * 1024
/** Messages that seem to match and are read to make sure. */
const MATCHES_READ_MAX = 5
const TITLE_CHARACTERS_MAX = 80
const TITLE_ENVELOPE_BYTES_MAX = 16 * 1024

export interface ConversationsQuery {
  readonly workspaceId: string
  readonly limit: number
  /** The `next` of the page before. */
  readonly after?: string | undefined
  /** Only conversations whose latest messages or replies contain this text, in any case. Empty: all. */
  readonly search?: string | undefined
}

type ConversationsAnswer = ApiAnswer<'GET /workspaces/{id}/conversations'>
type ConversationAnswer = ConversationsAnswer['conversations'][number]

export const readConversations = (store: ReadStore, query: ConversationsQuery): Promise<ConversationsAnswer> =>
  store.read(() => conversationsOf(query))

interface ListedRow extends ChatStateRow {
  task_id: string
  updated_at: number
  id: string
  context_id: string
  principal: string
  last_n: number
  /** 1 for the task of the last message. An answer to a running turn is not looked at: its turn is what goes on. */
  is_last: number
}

const LIST = `select t.id as task_id, t.updated_at, t.state as task_state, c.id, c.context_id, c.principal, c.last_n,
    case when m.task_id = t.id then 1 else 0 end as is_last, m.state, m.parks, m.failures, m.losses, m.ready_at,
    now_ms() as now, 1 as is_newest
  from (select id, conversation_id, updated_at, state from tasks where workspace_id = $1 and updated_at <= $2
      and (updated_at < $2 or id < $3) order by updated_at desc, id desc limit ${TASKS_SCANNED_MAX}) t
  join conversations c on c.id = t.conversation_id
  left join messages m on m.conversation_id = c.id and m.n = (select q.n from messages q where q.conversation_id = c.id
    and not q.${inStates('answer')} order by q.n desc limit 1) order by t.updated_at desc, t.id desc`

function* conversationsOf({
  workspaceId,
  limit,
  after,
  search = '',
}: ConversationsQuery): Transaction<ConversationsAnswer> {
  const from = after === undefined ? { atMs: Number.MAX_SAFE_INTEGER, id: '~' } : readTimeCursor(after)
  const rows = yield* sql<ListedRow>(LIST, [workspaceId, from.atMs, from.id])
  const found: ConversationAnswer[] = []
  const budget = { bytesLeft: SEARCH_BYTES_MAX }
  for (const row of rows) {
    const cursor = writeTimeCursor({ atMs: row.updated_at, id: row.task_id })
    if (row.is_last === 1 && (search === '' || (yield* matches(row, search, budget)))) {
      found.push(yield* summarize(row))
    }
    if (found.length >= limit || budget.bytesLeft <= 0) return { conversations: found, next: cursor }
  }
  const last = rows.length < TASKS_SCANNED_MAX ? undefined : rows.at(-1)
  return { conversations: found, next: last && writeTimeCursor({ atMs: last.updated_at, id: last.task_id }) }
}

interface FirstRow {
  sender: string
  bytes: number
  envelope: string | null
}

const FIRST = `select m.sender, octet_length(m.envelope) as bytes,
    case when octet_length(m.envelope) <= ${TITLE_ENVELOPE_BYTES_MAX} then m.envelope end as envelope
  from messages m where m.conversation_id = $1 order by m.n limit 1`

function* summarize(row: ListedRow): Transaction<ConversationAnswer> {
  const [first] = yield* sql<FirstRow>(FIRST, [row.id])
  return {
    id: row.id,
    context_id: row.context_id,
    principal: row.principal,
    sender: first && (JSON.parse(first.sender) as Sender),
    title: first === undefined ? '' : titleOf(first),
    state: chatStateOf(row),
    messages: row.last_n,
    updated_at: instant(row.updated_at),
  }
}

function titleOf({ envelope, bytes }: FirstRow): string {
  if (envelope === null) return `a message of ${Math.ceil(bytes / 1024)} KB`
  const words = messageTextOf(envelope).replaceAll(/\s+/g, ' ').trim()
  return words === '' ? 'a message without text' : truncate(words, TITLE_CHARACTERS_MAX)
}

const SEARCHED = `from messages m where m.conversation_id = $1 and m.n > $2 and octet_length(m.envelope) <= ${SEARCHED_TEXT_BYTES_MAX}`
const SHORT_REPLY = `case when octet_length(m.reply) <= ${SEARCHED_TEXT_BYTES_MAX} then m.reply end`
const SEARCHED_BYTES = `select sum(octet_length(m.envelope) + coalesce(octet_length(m.reply), 0)) as bytes ${SEARCHED}`
const MATCHING = `select m.id, m.envelope, ${SHORT_REPLY} as reply ${SEARCHED}
    and (lower(m.envelope) like $3 escape '!' or lower(${SHORT_REPLY}) like $3 escape '!')
  order by m.n desc limit ${MATCHES_READ_MAX}`

function* matches(row: ListedRow, search: string, budget: { bytesLeft: number }): Transaction<boolean> {
  const wanted = foldForSearch(search)
  const after = row.last_n - SEARCHED_MESSAGES
  const [size] = yield* sql<{ bytes: number | null }>(SEARCHED_BYTES, [row.id, after])
  budget.bytesLeft -= Number(size?.bytes ?? 0)
  const pattern = likePattern(wanted)
  const found = yield* sql<{ id: string; envelope: string; reply: string | null }>(MATCHING, [row.id, after, pattern])
  return found.some(({ id, envelope, reply }) =>
    foldForSearch(`${messageTextOf(envelope)}\n${reply === null ? '' : replyTextOf(reply, id)}`).includes(wanted),
  )
}

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

/** The conversations that one chat has had with a workspace, the one that began last first. */
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
    const [first] = yield* sql<FirstRow>(FIRST, [row.id])
    const firstWords = first === undefined ? '' : titleOf(first)
    const atText = `${instant(row.admitted_at).slice(0, 16).replace('T', ' ')} UTC`
    sessions.push({ contextId: row.context_id, firstWords, atText })
  }
  return sessions
}
