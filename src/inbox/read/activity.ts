/**
 * The activity of a workspace: its event log as people read it, without text deltas, and with the notes that agents and
 * people add. One log, one cursor, one retention. A reader whose cursor was pruned gets an error, never a silent gap.
 */
import { MoleculeError } from '../../errors.ts'
import type { Part } from '../../protocol/a2a.ts'
import { sql, type Transaction } from '../../store/store.ts'
import type { InboxContext } from '../context.ts'
import type { TurnEvent } from '../inbox.ts'
import type { Activity, ActivityEntry, ActivityNote, ActivityPage, ActivityQuery, ActivityRow } from '../readers.ts'
import type { LogItem, StoredReply } from './event-log.ts'
import { TEXT_CHARACTERS_MAX, truncate } from './truncate.ts'
import { listenForChanges, RECHECK_MS } from './watchers.ts'

/** Rows read for one page. A filter that matches little ends here, and the reader goes on from `nextSeq`. */
const ROWS_SCANNED_MAX = 2000
/** A page is small enough to hold in memory for a thousand followers; a single row may be larger. */
const FOLLOW_ROWS_MAX = 256
const FOLLOW_CHARACTERS_MAX = 256 * 1024

export function createActivity(context: InboxContext): Activity {
  const { store, watchers } = context
  return {
    read: (query) => store.read(() => readActivity(query)),
    resolveCursor: (workspaceId, afterSeq) => store.read(() => resolveCursor(workspaceId, afterSeq)),
    follow: (workspaceId, afterSeq, signal) => follow(context, { workspaceId, afterSeq }, signal),
    async page(workspaceId, afterSeq) {
      const rows = await store.read(() => readRows(workspaceId, afterSeq))
      return rows?.map((row) => ({ seq: row.seq, entries: entriesOf(row) }))
    },
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

async function* follow(
  context: InboxContext,
  from: { workspaceId: string; afterSeq: number },
  signal: AbortSignal,
): AsyncIterable<ActivityRow> {
  const { workspaceId } = from
  const changes = listenForChanges(context, workspaceId)
  let { afterSeq } = from
  try {
    while (!signal.aborted) {
      const rows = await context.store.read(() => readRows(workspaceId, afterSeq))
      if (rows === undefined) return
      for (const row of rows) {
        afterSeq = row.seq
        yield { seq: row.seq, entries: entriesOf(row) }
      }
      if (rows.length === 0) await changes.next(RECHECK_MS, signal)
    }
  } finally {
    changes.stop()
  }
}

/** The next rows of the log; undefined when the workspace is deleted and all was read. */
function* readRows(workspaceId: string, afterSeq: number): Transaction<EventRow[] | undefined> {
  const rows = yield* sql<EventRow>(
    `select p.seq, p.at_ms, p.task_id, p.items, m.reply from (
       select e.*, sum(length(e.items)) over (order by e.seq) - length(e.items) as characters_before from (
         select seq, at_ms, task_id, message_id, delta, items from events
         where workspace_id = $1 and seq > $2 order by seq limit ${FOLLOW_ROWS_MAX}) e) p
     left join messages m on m.id = p.message_id and p.delta = 0
     where p.characters_before < ${FOLLOW_CHARACTERS_MAX} order by p.seq`,
    [workspaceId, afterSeq],
  )
  if (rows.length > 0) return rows
  const [load] = yield* sql('select seq from workspace_load where workspace_id = $1', [workspaceId])
  return load === undefined ? undefined : []
}

function* readHeads(): Transaction<ReadonlyMap<string, number>> {
  const rows = yield* sql<{ workspace_id: string; seq: number }>('select workspace_id, seq from workspace_load')
  return new Map(rows.map((row) => [row.workspace_id, row.seq]))
}

interface EventRow {
  seq: number
  at_ms: number
  task_id: string | null
  items: string
  reply: string | null
}

function* readActivity(query: ActivityQuery): Transaction<ActivityPage> {
  const { workspaceId, type, limit, newest = false } = query
  yield* resolveCursor(workspaceId, query.sinceSeq)
  const sinceSeq = newest ? yield* beforeNewest(query) : query.sinceSeq
  const rows = yield* sql<EventRow>(
    `select e.seq, e.at_ms, e.task_id, e.items, m.reply from events e left join messages m on m.id = e.message_id
     where e.workspace_id = $1 and e.seq > $2 and e.delta = 0 order by e.seq limit $3`,
    [workspaceId, sinceSeq, type === undefined ? Math.min(limit, ROWS_SCANNED_MAX) : ROWS_SCANNED_MAX],
  )
  const entries: ActivityEntry[] = []
  let nextSeq = sinceSeq
  for (const row of rows) {
    // Entries of one row stay together, because a cursor names a whole row. With `newest`, every row is wanted.
    if (entries.length >= limit && !newest) break
    nextSeq = row.seq
    entries.push(...entriesOf(row).filter((entry) => entry.type === (type ?? entry.type) && entry.type !== 'text'))
  }
  return { entries, nextSeq }
}

/** The number before the last `limit` rows that people read. */
function* beforeNewest({ workspaceId, sinceSeq, limit }: ActivityQuery): Transaction<number> {
  const [row] = yield* sql<{ seq: number }>(
    `select seq from events where workspace_id = $1 and seq > $2 and delta = 0 order by seq desc limit 1 offset $3`,
    [workspaceId, sinceSeq, limit],
  )
  return row?.seq ?? sinceSeq
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

function entriesOf(row: EventRow): ActivityEntry[] {
  const at = { seq: row.seq, atMs: row.at_ms, ...(row.task_id !== null && { taskId: row.task_id }) }
  const items = JSON.parse(row.items) as LogItem[]
  return items.flatMap((item) => {
    const entry = toEntryBody(item, row)
    return entry === undefined ? [] : [{ ...at, ...entry }]
  })
}

type EntryBody = Omit<ActivityEntry, 'seq' | 'atMs' | 'taskId'>

function toEntryBody(item: LogItem, row: EventRow): EntryBody | undefined {
  if (item.t === 'status') return { type: 'status', state: item.state, ...textOf(item.parts) }
  if (item.t === 'reset') return { type: 'retry' }
  if (item.t === 'reply') return { type: 'reply', ...textOf(replyParts(row.reply)) }
  if (item.t === 'late') return { type: 'late', ...textOf(item.parts) }
  if (item.t === 'note') return { type: item.type, text: item.text, by: item.by }
  return turnEventBody(item.event)
}

function turnEventBody(event: TurnEvent): EntryBody | undefined {
  if (event.type === 'tool') return { type: 'tool', name: event.name, state: event.state }
  if (event.type === 'status') return { type: 'progress', text: truncate(event.text, TEXT_CHARACTERS_MAX) }
  if (event.type === 'artifact') {
    const { name, artifactId } = event.artifact
    return event.lastChunk ? { type: 'artifact', name: name ?? artifactId } : undefined
  }
  return { type: 'text', text: event.delta }
}

const replyParts = (reply: string | null): readonly Part[] =>
  reply === null ? [] : (JSON.parse(reply) as StoredReply).parts

function textOf(parts: readonly Part[] | undefined): { text?: string } {
  const text = parts?.map((part) => part.text ?? '').join('') ?? ''
  return text === '' ? {} : { text: truncate(text, TEXT_CHARACTERS_MAX) }
}

function* addNote(workspaceId: string, { type, text, by }: ActivityNote): Transaction<number> {
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
