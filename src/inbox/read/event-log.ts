/**
 * The numbered event log of a workspace: how readers see turns and tasks. A stored row holds several items; `log-wire.ts`
 * makes events of them. A transaction takes its numbers last, so commit order is number order, and a reader
 * that asks for "after N" never misses a row that committed late.
 */
import type { Part, TaskState } from '../../protocol/a2a.ts'
import { DAMAGED, readReplyIfWhole, type StoredReply } from '../../protocol/stored-reply.ts'
import { createByteBudget, FOLLOW_BYTES_MAX, withinPage } from '../../store/page-budget.ts'
import { type Statement, sql, statement, type Transaction } from '../../store/store.ts'
import type { Answerer, AskDecision } from '../owners.ts'
import type { StatusMessage } from '../settle/status-message.ts'
import type { TurnEvent } from '../worker.ts'

export type LogItem =
  | ({ readonly t: 'status'; readonly state: TaskState } & Partial<StatusMessage>)
  /** A new attempt begins: the partial reply so far is void. */
  | { readonly t: 'reset' }
  /** The whole reply, or what a cancelled turn had written of it; its content is stored with the message. */
  | { readonly t: 'reply'; readonly partial?: true }
  /** A result that came after a takeover; kept for the owner, never the reply. */
  | { readonly t: 'late'; readonly parts: readonly Part[] }
  | { readonly t: 'turn'; readonly event: TurnEvent }
  /** The turn delegated to a workspace, as that task. */
  | { readonly t: 'delegated'; readonly taskId: string; readonly workspace: string }
  /** A step of a budget. */
  | {
      readonly t: 'budget'
      readonly step: 'asked' | 'raised' | 'stopped'
      readonly text: string
      /** The name of the person who answered. */
      readonly by?: string
    }
  /** An activity note of a person or an agent. */
  | { readonly t: 'note'; readonly type: string; readonly text: string; readonly by: string }
  /** The decision about a permission ask. Without an answerer: no answer came in time. */
  | {
      readonly t: 'permission'
      readonly decision: AskDecision
      readonly tool: string
      readonly answerer?: Answerer
      /** The pattern of the rule that decided; the answerer is its maker. */
      readonly pattern?: string
    }
  /** An owner made or revoked a rule. */
  | {
      readonly t: 'rule'
      readonly change: 'made' | 'revoked'
      readonly tool: string
      readonly pattern: string
      readonly answerer: Answerer
    }

export interface NewLogEntry {
  /** Absent for what belongs to the workspace as a whole. */
  readonly taskId?: string
  readonly messageId?: string
  readonly items: readonly LogItem[]
}

/** The counters and log entries that one transaction changes. */
export interface Change {
  readonly workspaceId: string
  readonly running?: number
  readonly suspended?: number
  readonly waiting?: number
  readonly entries?: readonly NewLogEntry[]
}

/**
 * Always the last statements of a transaction: one update of counters and sequence, then the log rows under the numbers
 * that it took. The rows read the sequence in SQL, so they can go to the database together with other writes.
 */
export function recordChange(change: Change): Statement[] {
  const { workspaceId, running = 0, suspended = 0, waiting = 0, entries = [] } = change
  const counted = statement(
    `update workspace_load set running = running + $2, suspended = suspended + $3, waiting = waiting + $4,
       seq = seq + $5 where workspace_id = $1`,
    [workspaceId, running, suspended, waiting, entries.length],
  )
  const rows = entries.map(({ taskId, messageId, items }, index) =>
    statement(
      `insert into events (workspace_id, seq, task_id, message_id, at_ms, delta, items)
       values ($1, (select seq from workspace_load where workspace_id = $1) - $2, $3, $4, now_ms(), $5, $6)`,
      [
        workspaceId,
        entries.length - 1 - index,
        taskId ?? null,
        messageId ?? null,
        items.every(isDelta) ? 1 : 0,
        JSON.stringify(items),
      ],
    ),
  )
  return [counted, ...rows]
}

const isDelta = (item: LogItem): boolean => item.t === 'turn' && item.event.type === 'text'

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
