/**
 * The activity of a workspace: its event log as people read it, without text deltas, and with the notes that agents and
 * people add. One log, one cursor, one retention. A reader whose cursor was pruned gets an error, never a silent gap.
 */
import { MoleculeError } from '../../errors.ts'
import type { Part } from '../../protocol/a2a.ts'
import { textOf } from '../../protocol/part.ts'
import { DAMAGED } from '../../protocol/stored-reply.ts'
import { FOLLOW_BYTES_MAX, PAGE_BYTES_MAX, withinPage } from '../../store/page-budget.ts'
import { sql, type Transaction } from '../../store/store.ts'
import { TEXT_CHARACTERS_MAX, truncate } from '../../truncate.ts'
import type { InboxContext } from '../context.ts'
import type { Answerer } from '../owners.ts'
import type { Activity, ActivityEntry, ActivityNote, ActivityPage, ActivityQuery, ActivityRow } from '../readers.ts'
import type { LogItem } from '../rows/log.ts'
import type { TurnEvent } from '../worker.ts'
import { DAMAGED_REPLY, type LogRow, type StoredLogRow, withReplies } from './event-log.ts'
import { readTexts } from './task-messages.ts'
import { listenForChanges, RECHECK_MS } from './watchers.ts'

/** Rows read for one page. A filter that matches little ends here, and the reader goes on from `nextSeq`. */
const ROWS_SCANNED_MAX = 2000
/** Rows of one page for a follower, which asks for the next one. */
const FOLLOW_ROWS_MAX = 256

export function createActivity(context: InboxContext): Activity {
  const { store, watchers } = context
  const readPage = createSharedPages(context)
  return {
    read: (query) => store.read(() => readActivity(query)),
    resolveCursor: (workspaceId, afterSeq) => store.read(() => resolveCursor(workspaceId, afterSeq)),
    follow: (workspaceId, afterSeq, signal) => follow({ ...context, readPage }, { workspaceId, afterSeq }, signal),
    page: readPage,
    heads: () => store.read(readHeads),
    onChange: (callback) =>
      watchers.watchAll((id) => {
        // Changes of tasks come with the task's id.
        if (id === undefined || id.startsWith('ws_')) callback(id)
      }),
    async addNote(workspaceId, note) {
      const seq = await store.write(() => addNote(workspaceId, note), workspaceId)
      watchers.changed(workspaceId)
      store.notify([workspaceId])
      return seq
    },
  }
}

/**
 * One read serves all followers that ask for the same page: a thousand of them wake up for the same event, and each would
 * read and parse it again. A page is shared until the log changes, and no longer than this turn of the event loop.
 */
function createSharedPages({ store, watchers }: InboxContext): Activity['page'] {
  const pages = new Map<string, ReturnType<Activity['page']>>()
  const read = async (workspaceId: string, afterSeq: number) => {
    const rows = await store.read(() => readRows(workspaceId, afterSeq))
    return rows?.map((each) => ({ seq: each.row.seq, entries: entriesOf(each) }))
  }
  // Runs before any reader that the change wakes up, so that none of them gets a page from before the change.
  watchers.watchAll(() => pages.clear())
  return (workspaceId, afterSeq) => {
    const key = `${workspaceId} ${afterSeq}`
    const known = pages.get(key)
    if (known !== undefined) return known
    if (pages.size === 0) setImmediate(() => pages.clear())
    const page = read(workspaceId, afterSeq)
    pages.set(key, page)
    return page
  }
}

async function* follow(
  context: InboxContext & { readonly readPage: Activity['page'] },
  from: { workspaceId: string; afterSeq: number },
  signal: AbortSignal,
): AsyncIterable<ActivityRow> {
  const { workspaceId } = from
  const changes = listenForChanges(context, workspaceId)
  let { afterSeq } = from
  try {
    while (!signal.aborted) {
      const rows = await context.readPage(workspaceId, afterSeq)
      if (rows === undefined) return
      for (const row of rows) {
        afterSeq = row.seq
        yield row
      }
      if (rows.length === 0) await changes.next(RECHECK_MS, signal)
    }
  } finally {
    changes.stop()
  }
}

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

function* readActivity(query: ActivityQuery): Transaction<ActivityPage> {
  const { workspaceId, sinceSeq, type, limit, newest = false, beforeSeq = Number.MAX_SAFE_INTEGER } = query
  yield* resolveCursor(workspaceId, sinceSeq)
  const rowsMax = type === undefined || newest ? Math.min(limit, ROWS_SCANNED_MAX) : ROWS_SCANNED_MAX
  const rows = yield* sql<EventRow>(newest ? NEWEST_FIRST : OLDEST_FIRST, [
    ...[workspaceId, sinceSeq, rowsMax, beforeSeq],
  ])
  const read = yield* withReplies(rows, PAGE_BYTES_MAX)
  const entries: ActivityEntry[] = []
  let nextSeq = sinceSeq
  const inOrder = newest ? read.toReversed() : read
  const firstSeq = inOrder[0]?.row.seq
  for (const each of inOrder) {
    // Entries of one row stay together, because a cursor names a whole row. With `newest`, every row is wanted.
    if (entries.length >= limit && !newest) break
    nextSeq = each.row.seq
    entries.push(...entriesOf(each).filter((entry) => entry.type === (type ?? entry.type) && entry.type !== 'text'))
  }
  const taskIds = query.withTitles === true ? new Set(entries.flatMap(({ taskId }) => taskId ?? [])) : undefined
  return {
    entries,
    nextSeq,
    ...(firstSeq !== undefined && { firstSeq }),
    ...(taskIds && { titles: yield* readTexts([...taskIds]) }),
  }
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
    atMs: row.at_ms,
    ...(row.task_id !== null && { taskId: row.task_id }),
    ...(row.conversation_id !== null && { conversationId: row.conversation_id }),
  }
  return items.flatMap((item) => {
    const entry = toEntryBody(item, reply === DAMAGED_REPLY ? [{ text: DAMAGED }] : reply?.parts)
    return entry === undefined ? [] : [{ ...at, ...entry }]
  })
}

type EntryBody = Omit<ActivityEntry, 'seq' | 'atMs' | 'taskId' | 'conversationId'>

function toEntryBody(item: LogItem, replyParts: readonly Part[] | undefined): EntryBody | undefined {
  if (item.t === 'status') return { type: 'status', state: item.state, ...textFieldOf(item.parts) }
  if (item.t === 'reset') return { type: 'retry' }
  if (item.t === 'reply') return { type: item.partial === true ? 'partial' : 'reply', ...textFieldOf(replyParts) }
  if (item.t === 'late') return { type: 'late', ...textFieldOf(item.parts) }
  if (item.t === 'note') return { type: item.type, text: item.text, by: item.by }
  if (item.t === 'permission') return permissionBody(item)
  if (item.t === 'rule') return ruleBody(item)
  if (item.t === 'delegated') return { type: 'delegated', name: item.workspace, subject: item.taskId }
  if (item.t === 'budget') return { type: 'budget', name: item.step, text: item.text, ...(item.by && { by: item.by }) }
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

function textFieldOf(parts: readonly Part[] | undefined): { text?: string } {
  const text = textOf(parts)
  return text === '' ? {} : { text: truncate(text, TEXT_CHARACTERS_MAX) }
}

export function* addNote(workspaceId: string, { type, text, by }: ActivityNote): Transaction<number> {
  const item: LogItem = { t: 'note', type, text, by }
  const [load] = yield* sql<{ seq: number }>(
    'update workspace_load set seq = seq + 1 where workspace_id = $1 returning seq',
    [workspaceId],
  )
  if (load === undefined) throw new MoleculeError('not_found', `there is no workspace ${workspaceId}`)
  yield* sql('insert into events (workspace_id, seq, at_ms, items) values ($1, $2, now_ms(), $3)', [
    workspaceId,
    load.seq,
    JSON.stringify([item]),
  ])
  return load.seq
}
