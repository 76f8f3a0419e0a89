/** Reads the event log of a task or a message, page by page. `log-wire.ts` makes events of its rows. */
import { DAMAGED, readReplyIfWhole, type StoredReply } from '../../protocol/stored-reply.ts'
import { createByteBudget, FOLLOW_BYTES_MAX, withinPage } from '../../store/page-budget.ts'
import { sql, type Transaction } from '../../store/store.ts'
import type { LogItem } from '../rows/log.ts'

/** Small enough to hold a page in memory for a thousand readers; the reader asks for the next page. */
const PAGE_ENTRIES_MAX = 256

interface EventRow {
  seq: number
  at_ms: number
  message_id: string
  items: string
  reply_bytes: number | null
}

const PAGE_OF_TASK = `select e.seq, e.at_ms, e.message_id, e.items, octet_length(m.reply) as reply_bytes
  from (${withinPage(
    `select workspace_id, seq, octet_length(items) as bytes from events where task_id = $1 and seq > $2
     order by seq limit ${PAGE_ENTRIES_MAX}`,
    'p.seq',
    FOLLOW_BYTES_MAX,
  )}) k join events e on e.workspace_id = k.workspace_id and e.seq = k.seq
  join messages m on m.id = e.message_id order by e.seq`

/** A row of a task's log; `log-wire.ts` makes its events. */
export interface TaskLogRow {
  readonly seq: number
  readonly atMs: number
  readonly messageId: string
  readonly items: readonly LogItem[]
  /** Where an item shows it. */
  readonly reply: StoredReply | undefined
}

/** The next page of a task's log after `afterSeq`. */
export function* readLog(taskId: string, afterSeq: number): Transaction<TaskLogRow[]> {
  const rows = yield* sql<EventRow>(PAGE_OF_TASK, [taskId, afterSeq])
  const read = yield* withReplies(rows, FOLLOW_BYTES_MAX)
  return read.map(({ row, items, reply }) => {
    return { seq: row.seq, atMs: row.at_ms, messageId: row.message_id, items, reply }
  })
}

const PAGE_OF_MESSAGE = `select seq, items from events
  where task_id = $1 and message_id = $2 and seq > $3 and seq <= $4 order by seq limit ${PAGE_ENTRIES_MAX}`

/** Every item of a message up to this row of its task's log, in order. */
export function* readItems(
  { taskId, messageId, throughSeq }: { taskId: string; messageId: string; throughSeq: number },
  take: (item: LogItem) => void,
): Transaction<void> {
  for (let afterSeq = 0; ; ) {
    const rows = yield* sql<EventRow>(PAGE_OF_MESSAGE, [taskId, messageId, afterSeq, throughSeq])
    for (const { items } of rows) for (const item of JSON.parse(items) as LogItem[]) take(item)
    const last = rows.at(-1)
    if (last === undefined || rows.length < PAGE_ENTRIES_MAX) return
    afterSeq = last.seq
  }
}

/** A row of the log as a statement reads it, with the size of its message's reply. */
export interface StoredLogRow {
  readonly message_id: string | null
  readonly items: string
  readonly reply_bytes: number | null
}

/** A row with its items parsed, and with the reply when an item shows it. */
export interface LogRow<Row> {
  readonly row: Row
  readonly items: readonly LogItem[]
  readonly reply: StoredReply | undefined
}

/**
 * Reads the replies that these rows show. Every row of a message would bring the whole reply if it were joined, so it is
 * read for the one row that needs it. The rest of the page is left for the next one when a reply does not fit.
 */
export function* withReplies<Row extends StoredLogRow>(
  rows: readonly Row[],
  bytesMax: number,
): Transaction<LogRow<Row>[]> {
  const budget = createByteBudget(bytesMax)
  const read: LogRow<Row>[] = []
  for (const row of rows) {
    const items = JSON.parse(row.items) as LogItem[]
    const messageId = items.some(({ t }) => t === 'reply') ? row.message_id : null
    const replyBytes = messageId === null ? 0 : (row.reply_bytes ?? 0)
    if (!budget.take(row.items.length + replyBytes)) break
    read.push({ row, items, reply: messageId === null ? undefined : yield* readStoredReply(messageId) })
  }
  return read
}

/** A reader of the log learns that there was an answer, and why it is not shown. */
export const DAMAGED_REPLY: StoredReply = { parts: [], artifacts: [], metadata: { error: DAMAGED } }

function* readStoredReply(messageId: string): Transaction<StoredReply | undefined> {
  const [stored] = yield* sql<{ reply: string | null }>('select reply from messages where id = $1', [messageId])
  if (stored === undefined || stored.reply === null) return undefined
  return readReplyIfWhole(stored.reply, messageId) ?? DAMAGED_REPLY
}
