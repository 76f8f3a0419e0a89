/**
 * Finds a text in every stored message and answer, the newest message first. The rows are read in slices of bounded
 * bytes, with the event loop free between them. A search that has read enough ends with a cursor, so no text is out of
 * reach and no request holds the platform.
 */
import type { ApiAnswer } from '../api/api.ts'
import { restoreEnvelope } from '../protocol/envelope.ts'
import { textOf } from '../protocol/part.ts'
import type { Sender } from '../protocol/request.ts'
import { readReplyIfWhole } from '../protocol/stored-reply.ts'
import { withinPage } from '../store/page-budget.ts'
import { type ReadStore, sql, type Transaction } from '../store/store.ts'
import { instant } from './instant.ts'

/** Rows of one slice; their texts have at most the bytes of a page. */
const SLICE_ROWS_MAX = 1000
/** A letter: in the collations of most languages a sign such as `~` comes before all digits, and nothing would be found. */
const AFTER_ALL_IDS = 'z'
/** Slices that one search reads: 64 MiB of text, or 64,000 short messages. */
const SLICES_MAX = 64
const EXCERPT_CHARACTERS = 160
/** Of the excerpt, before the text that was found. */
const BEFORE_CHARACTERS = 40

export interface MessageSearch {
  /** Absent: all workspaces. */
  readonly workspaceId?: string | undefined
  /** In any case. */
  readonly text: string
  readonly limit: number
  /** The `next` of the page before. */
  readonly after?: string | undefined
}

type FoundMessages = ApiAnswer<'GET /messages'>
type FoundMessage = FoundMessages['messages'][number]

export async function searchMessages(store: ReadStore, query: MessageSearch): Promise<FoundMessages> {
  const { limit } = query
  const messages: FoundMessage[] = []
  let before = query.after ?? AFTER_ALL_IDS
  for (let slices = 0; slices < SLICES_MAX; slices++) {
    const slice = await store.read(() => readSlice({ ...query, before }))
    for (const message of slice.found) {
      messages.push(message)
      if (messages.length === limit) return { messages, next: message.id }
    }
    if (slice.last === undefined) return { messages }
    before = slice.last
  }
  return { messages, next: before }
}

interface FoundRow {
  id: string
  workspace_id: string
  conversation_id: string
  context_id: string
  principal: string
  task_id: string
  n: number
  sender: string
  admitted_at: number
  envelope: string | null
  reply: string | null
}

/** The last row of the slice comes with it, matching or not: the next slice begins after it. */
const SLICE = `select k.id, m.workspace_id, m.conversation_id, c.context_id, c.principal, m.task_id, m.n, m.sender,
    m.admitted_at, case when k.is_wanted = 1 and c.id is not null and w.deleted_at is null then m.envelope end as envelope,
    case when k.is_wanted = 1 then m.reply end as reply
  from (select b.id, b.is_wanted, case when b.id = min(b.id) over () then 1 else 0 end as is_last
    from (${withinPage(
      `select q.id, q.is_wanted, case when q.is_wanted = 1 then q.all_bytes else 0 end as bytes
       from (select s.id, octet_length(s.envelope) + coalesce(octet_length(s.reply), 0) as all_bytes,
           case when s.workspace_id = $1 or $1 = '' then 1 else 0 end as is_wanted
         from messages s where s.id < $2 order by s.id desc limit ${SLICE_ROWS_MAX}) q`,
      'p.id desc',
    )}) b) k
  join messages m on m.id = k.id left join conversations c on c.id = m.conversation_id
  left join workspaces w on w.id = m.workspace_id
  where k.is_last = 1 or (k.is_wanted = 1
    and (lower(m.envelope) like $3 escape '!' or lower(m.reply) like $3 escape '!'))
  order by k.id desc`

function* readSlice({
  workspaceId = '',
  text,
  before,
}: MessageSearch & { readonly before: string }): Transaction<{ found: FoundMessage[]; last: string | undefined }> {
  const wanted = foldForSearch(text)
  const rows = yield* sql<FoundRow>(SLICE, [workspaceId, before, likePattern(wanted)])
  return { found: rows.flatMap((row) => toFound(row, wanted) ?? []), last: rows.at(-1)?.id }
}

/** In any case, and with a line break as a space, because the page shows it as one. */
export const foldForSearch = (text: string): string => oneLine(text).toLowerCase()

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ')

/**
 * What the database looks for; the texts that it finds are parsed, because a stored text also has names of fields.
 * SQLite knows capital letters only of ASCII, so other letters match anything there, and so does a space.
 */
export function likePattern(wanted: string): string {
  const escaped = JSON.stringify(wanted).slice(1, -1).replaceAll(/[!%_]/g, '!$&')
  return `%${escaped.replaceAll(/[^!-~]+/g, '%')}%`
}

function toFound(row: FoundRow, wanted: string): FoundMessage | undefined {
  const message = row.envelope === null ? '' : messageTextOf(row.envelope)
  const answer = row.reply === null ? '' : replyTextOf(row.reply, row.id)
  const excerpt = excerptOf(message, wanted)
  const answerExcerpt = excerpt ?? excerptOf(answer, wanted)
  if (row.envelope === null || answerExcerpt === undefined) return undefined
  return {
    id: row.id,
    task_id: row.task_id,
    workspace_id: row.workspace_id,
    n: row.n,
    conversation_id: row.conversation_id,
    context_id: row.context_id,
    principal: row.principal,
    sender: JSON.parse(row.sender) as Sender,
    sent_at: instant(row.admitted_at),
    found_in: excerpt === undefined ? 'answer' : 'message',
    excerpt: answerExcerpt,
  }
}

export const messageTextOf = (envelope: string): string => textOf(restoreEnvelope(envelope).message.parts, ' ')

/** With the question that the turn ended with. A damaged reply has no text. */
export function replyTextOf(stored: string, messageId: string): string {
  const reply = readReplyIfWhole(stored, messageId)
  return textOf([...(reply?.parts ?? []), ...(reply?.said?.parts ?? [])], ' ')
}

/** The words around the first place where the text stands, in one line; undefined where it does not. */
function excerptOf(given: string, wanted: string): string | undefined {
  const text = oneLine(given)
  const at = text.toLowerCase().indexOf(wanted)
  if (at < 0) return undefined
  const from = Math.max(0, at - BEFORE_CHARACTERS)
  const to = Math.max(from + EXCERPT_CHARACTERS, at + wanted.length)
  const words = text.slice(from, to).toWellFormed().trim()
  return `${from > 0 ? '…' : ''}${words}${to < text.length ? '…' : ''}`
}
