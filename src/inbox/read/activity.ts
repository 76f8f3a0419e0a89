/**
 * What happened in a workspace, for people: a view of its event log by number, without the pieces of replies, and the
 * notes that agents and people add to it. One log, one cursor, one retention: who asks for what has been pruned is told
 * so, and never given a gap that looks like silence.
 */
import { MoleculeError } from '../../errors.ts'
import type { Part } from '../../protocol/a2a.ts'
import { sql, type Transaction } from '../../store/store.ts'
import type { InboxContext } from '../context.ts'
import type { TurnEvent } from '../inbox.ts'
import type { Activity, ActivityEntry, ActivityNote, ActivityPage, ActivityQuery, ActivityRow } from '../readers.ts'
import type { LogItem, StoredReply } from './event-log.ts'
import { listenForChanges, RECHECK_MS } from './watchers.ts'

/** Rows of the log looked through for one page; a filter that finds little ends here and goes on from `nextSeq`. */
const ROWS_SCANNED_MAX = 2000
/** What is shown of a long text; the whole is in the task. */
const TEXT_CHARACTERS_MAX = 500
/** A page of a follower, small enough to hold in memory for a thousand of them; one row alone may be larger. */
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
        // Tasks change under their own names too.
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

/** The next rows of the log; undefined when the workspace is gone and all was read. */
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
    // What was stored together is told together: a cursor names a whole row.
    // The newest are all there is after that place.
    if (entries.length >= limit && !newest) break
    nextSeq = row.seq
    entries.push(...entriesOf(row).filter((entry) => entry.type === (type ?? entry.type) && entry.type !== 'text'))
  }
  return { entries, nextSeq }
}

/** The number after which the last `limit` rows come that people read. */
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
  const message = `what came after ${afterSeq} is no longer kept up to ${load.pruned_seq}: begin anew without since`
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
  if (event.type === 'status') return { type: 'progress', text: truncate(event.text) }
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
  return text === '' ? {} : { text: truncate(text) }
}

const truncate = (text: string): string =>
  text.length > TEXT_CHARACTERS_MAX ? `${text.slice(0, TEXT_CHARACTERS_MAX - 1)}…` : text

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
