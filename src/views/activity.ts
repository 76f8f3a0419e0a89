/**
 * The activity of a workspace: its event log as people read it, with the notes that agents and people add. `readActivity`
 * leaves out text deltas, `readLogPage` is for followers and has everything. One log, one cursor, one retention: a reader
 * whose cursor was pruned gets an error, never a silent gap.
 */
import type { ApiAnswer } from '../api/api.ts'
import { MoleculeError } from '../errors.ts'
import type { Answerer } from '../inbox/owners.ts'
import { DAMAGED_REPLY, type LogRow, type StoredLogRow, withReplies } from '../inbox/read/event-log.ts'
import { readTexts } from '../inbox/read/task-messages.ts'
import type { LogItem } from '../inbox/rows/log.ts'
import type { TurnEvent } from '../inbox/worker.ts'
import type { Part } from '../protocol/a2a.ts'
import { textOf } from '../protocol/part.ts'
import { DAMAGED } from '../protocol/stored-reply.ts'
import { FOLLOW_BYTES_MAX, PAGE_BYTES_MAX, withinPage } from '../store/page-budget.ts'
import { type ReadStore, sql, type Transaction } from '../store/store.ts'
import { TEXT_CHARACTERS_MAX, truncate } from '../truncate.ts'
import { instant } from './instant.ts'

/** Rows read for one page. A filter that matches little ends here, and the reader goes on from `next`. */
const ROWS_SCANNED_MAX = 2000
/** Rows of one page for a follower, which asks for the next one. */
const FOLLOW_ROWS_MAX = 256

type ActivityAnswer = ApiAnswer<'GET /workspaces/{id}/activity'>
/** One thing that happened. Entries that were stored together share a number. */
type ActivityEntry = ActivityAnswer['activity'][number]

export interface ActivityQuery {
  readonly workspaceId: string
  /** The last entry that the reader knows; 0 = start at the oldest that is kept. */
  readonly since?: number
  /** Only entries with a smaller number. */
  readonly before?: number | undefined
  readonly type?: string | undefined
  readonly limit: number
  /** The last entries instead of the first ones after `since`. */
  readonly newest?: boolean
  /** Also the first words of the message of each task on the page. */
  readonly titles?: boolean
}

/** All entries of one row of the log. Pieces of a reply are entries of the type `text`. */
export interface ActivityRow {
  readonly seq: number
  readonly entries: readonly ActivityEntry[]
}

/** Throws `pruned` where rows between `since` and the kept log are gone. */
export const readActivity = (store: ReadStore, query: ActivityQuery): Promise<ActivityAnswer> =>
  store.read(() => activityOf(query))

/** Where to follow from: the given number if the log still continues there; without one, the end of the log. */
export const readLogCursor = (store: ReadStore, workspaceId: string, afterSeq: number | undefined): Promise<number> =>
  store.read(() => resolveCursor(workspaceId, afterSeq))

/** The next rows after a number, a few hundred at most; undefined when the workspace is deleted and all was read. */
export async function readLogPage(
  store: ReadStore,
  workspaceId: string,
  afterSeq: number,
): Promise<readonly ActivityRow[] | undefined> {
  const rows = await store.read(() => readRows(workspaceId, afterSeq))
  return rows?.map((each) => ({ seq: each.row.seq, entries: entriesOf(each) }))
}

/** The last number of every workspace's log. */
export const readLogHeads = (store: ReadStore): Promise<ReadonlyMap<string, number>> => store.read(readHeads)

const columnsOf = (keys: string): string =>
  `select e.seq, e.at_ms, e.task_id, t.conversation_id, e.message_id, e.items, octet_length(m.reply) as reply_bytes
   from (${keys}) k join events e on e.workspace_id = $1 and e.seq = k.seq
   left join tasks t on t.id = e.task_id
   left join messages m on m.id = e.message_id and e.delta = 0`

const FOLLOWED_ROWS = `${columnsOf(
  withinPage(
    `select seq, octet_length(items) as bytes from events where workspace_id = $1 and seq > $2
     order by seq limit ${FOLLOW_ROWS_MAX}`,
    'p.seq',
    FOLLOW_BYTES_MAX,
  ),
)} order by e.seq`

/** The next rows of the log; undefined when the workspace is deleted and all was read. */
function* readRows(workspaceId: string, afterSeq: number): Transaction<LogRow<EventRow>[] | undefined> {
  const rows = yield* sql<EventRow>(FOLLOWED_ROWS, [workspaceId, afterSeq])
  if (rows.length > 0) return yield* withReplies(rows, FOLLOW_BYTES_MAX)
  const [load] = yield* sql('select seq from workspace_load where workspace_id = $1', [workspaceId])
  return load === undefined ? undefined : []
}

function* readHeads(): Transaction<ReadonlyMap<string, number>> {
  const rows = yield* sql<{ workspace_id: string; seq: number }>('select workspace_id, seq from workspace_load')
  return new Map(rows.map((row) => [row.workspace_id, row.seq]))
}

interface EventRow extends StoredLogRow {
  readonly seq: number
  readonly at_ms: number
  readonly task_id: string | null
  readonly conversation_id: string | null
}

/** Rows that people read, in one direction, within the budget of a page. */
const pageOfActivity = (direction: 'asc' | 'desc'): string =>
  `${columnsOf(
    withinPage(
      `select seq, octet_length(items) as bytes from events
       where workspace_id = $1 and seq > $2 and seq < $4 and delta = 0 order by seq ${direction} limit $3`,
      `p.seq ${direction}`,
    ),
  )} order by e.seq ${direction}`

const OLDEST_FIRST = pageOfActivity('asc')
const NEWEST_FIRST = pageOfActivity('desc')

function* activityOf(query: ActivityQuery): Transaction<ActivityAnswer> {
  const { workspaceId, since = 0, type, limit, newest = false, before = Number.MAX_SAFE_INTEGER } = query
  yield* resolveCursor(workspaceId, since)
  const rowsMax = type === undefined || newest ? Math.min(limit, ROWS_SCANNED_MAX) : ROWS_SCANNED_MAX
  const rows = yield* sql<EventRow>(newest ? NEWEST_FIRST : OLDEST_FIRST, [workspaceId, since, rowsMax, before])
  const read = yield* withReplies(rows, PAGE_BYTES_MAX)
  const activity: ActivityEntry[] = []
  let next = since
  const inOrder = newest ? read.toReversed() : read
  for (const each of inOrder) {
    // Entries of one row stay together, because a cursor names a whole row. With `newest`, every row is wanted.
    if (activity.length >= limit && !newest) break
    next = each.row.seq
    activity.push(...entriesOf(each).filter((entry) => entry.type === (type ?? entry.type) && entry.type !== 'text'))
  }
  const taskIds = new Set(activity.flatMap(({ task_id }) => task_id ?? []))
  const titles = query.titles ? Object.fromEntries(yield* readTexts([...taskIds])) : undefined
  return { activity, next, first: inOrder[0]?.row.seq, titles }
}

function* resolveCursor(workspaceId: string, afterSeq: number | undefined): Transaction<number> {
  const [load] = yield* sql<{ seq: number; pruned_seq: number }>(
    'select seq, pruned_seq from workspace_load where workspace_id = $1',
    [workspaceId],
  )
  if (load === undefined) throw new MoleculeError('not_found', `there is no workspace ${workspaceId}`)
  if (afterSeq === undefined) return load.seq
  if (afterSeq === 0 || afterSeq >= load.pruned_seq) return afterSeq
  const message = `the log is no longer kept from ${afterSeq} to ${load.pruned_seq}: start again without since`
  throw new MoleculeError('pruned', message, { details: { prunedSeq: load.pruned_seq } })
}

function entriesOf({ row, items, reply }: LogRow<EventRow>): ActivityEntry[] {
  const at = {
    seq: row.seq,
    at: instant(row.at_ms),
    task_id: row.task_id ?? undefined,
    conversation_id: row.conversation_id ?? undefined,
  }
  return items.flatMap((item) => {
    const entry = toEntryBody(item, reply === DAMAGED_REPLY ? [{ text: DAMAGED }] : reply?.parts)
    return entry === undefined ? [] : [{ ...at, ...entry }]
  })
}

type EntryBody = Omit<ActivityEntry, 'seq' | 'at' | 'task_id' | 'conversation_id'>

function toEntryBody(item: LogItem, replyParts: readonly Part[] | undefined): EntryBody | undefined {
  if (item.t === 'status') return { type: 'status', state: item.state, text: shortTextOf(item.parts) }
  if (item.t === 'reset') return { type: 'retry' }
  if (item.t === 'reply') return { type: item.partial === true ? 'partial' : 'reply', text: shortTextOf(replyParts) }
  if (item.t === 'late') return { type: 'late', text: shortTextOf(item.parts) }
  if (item.t === 'note') return { type: item.type, text: item.text, by: item.by }
  if (item.t === 'permission') return permissionBody(item)
  if (item.t === 'rule') return ruleBody(item)
  if (item.t === 'delegated') return { type: 'delegated', name: item.workspace, subject: item.taskId }
  if (item.t === 'budget') return { type: 'budget', name: item.step, text: item.text, by: item.by }
  return turnEventBody(item.event)
}

function permissionBody({ decision, tool, answerer, pattern }: LogItem & { t: 'permission' }): EntryBody {
  const body = { type: 'permission', name: tool, text: decision }
  if (answerer === undefined) return { ...body, text: `${decision}: no answer came in time` }
  const byRule =
    pattern === undefined ? {} : { subject: truncate(pattern, TEXT_CHARACTERS_MAX), text: 'allowed by rule' }
  return { ...body, ...byRule, ...answererBody(answerer) }
}

const ruleBody = ({ change, tool, pattern, answerer }: LogItem & { t: 'rule' }): EntryBody => ({
  type: 'rule',
  name: tool,
  subject: truncate(pattern, TEXT_CHARACTERS_MAX),
  text: change,
  ...answererBody(answerer),
})

const answererBody = ({ name, principal, door }: Answerer) => ({ by: name, principal, door })

function turnEventBody(event: TurnEvent): EntryBody | undefined {
  if (event.type === 'tool') return event
  if (event.type === 'status') return { type: 'progress', text: truncate(event.text, TEXT_CHARACTERS_MAX) }
  if (event.type === 'artifact') {
    const { name, artifactId } = event.artifact
    return event.lastChunk ? { type: 'artifact', name: name ?? artifactId } : undefined
  }
  return { type: 'text', text: event.delta }
}

/** Undefined where there is no text. */
function shortTextOf(parts: readonly Part[] | undefined): string | undefined {
  const text = textOf(parts)
  return text === '' ? undefined : truncate(text, TEXT_CHARACTERS_MAX)
}
