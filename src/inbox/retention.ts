/**
 * Retention: what has ended is kept for a time and then goes, a small slice at a time so that no writer waits long.
 * Nothing unsettled is ever touched, nor a dead letter or delivery that nobody has handled.
 */
import { ulidFloor } from '../ids.ts'
import { type Store, sql, type Transaction } from '../store/store.ts'

/** Rows deleted in one transaction. */
const SLICE_ROWS_MAX = 500
const HOUR_MS = 3600_000
const DAY_MS = 24 * HOUR_MS

export interface RetentionOptions {
  readonly taskMs: number
  readonly eventMs: number
  readonly deltaMs: number
}

export const RETENTION: RetentionOptions = { taskMs: 30 * DAY_MS, eventMs: 7 * DAY_MS, deltaMs: HOUR_MS }

/** Prunes slice by slice until nothing is old enough or the signal aborts. Returns the rows that went. */
export async function prune(store: Store, options: RetentionOptions, signal: AbortSignal): Promise<number> {
  let total = 0
  for (const slice of [pruneDeltas(options), pruneEvents(options), pruneTasks(options)]) {
    let gone = SLICE_ROWS_MAX
    while (gone >= SLICE_ROWS_MAX && !signal.aborted) {
      gone = await store.write(slice)
      total += gone
    }
  }
  return total
}

/** Pieces of a reply, an hour after the reply made them needless. */
const pruneDeltas = ({ deltaMs }: RetentionOptions) =>
  function* (): Transaction<number> {
    const rows = yield* sql(
      `delete from events where (workspace_id, seq) in (
         select e.workspace_id, e.seq from events e join messages m on m.id = e.message_id
         where e.delta = 1 and e.at_ms < now_ms() - $1 and m.settled_at < now_ms() - $1
         order by e.at_ms limit ${SLICE_ROWS_MAX}) returning seq`,
      [deltaMs],
    )
    return rows.length
  }

/** Other events of what has settled, and notes; a task that still runs keeps its whole story. */
const pruneEvents = ({ eventMs }: RetentionOptions) =>
  function* (): Transaction<number> {
    const rows = yield* sql<PrunedRow>(
      `delete from events where (workspace_id, seq) in (
         select e.workspace_id, e.seq from events e left join messages m on m.id = e.message_id
         where e.at_ms < now_ms() - $1 and (e.message_id is null or m.settled_at < now_ms() - $1)
         order by e.at_ms limit ${SLICE_ROWS_MAX}) returning workspace_id, seq`,
      [eventMs],
    )
    yield* rememberPruned(rows)
    return rows.length
  }

interface PrunedRow {
  workspace_id: string
  seq: number
}

/** A reader whose cursor lies before these can be told that it missed something. */
function* rememberPruned(rows: readonly PrunedRow[]): Transaction<void> {
  const last = new Map<string, number>()
  for (const { workspace_id: id, seq } of rows) last.set(id, Math.max(seq, last.get(id) ?? 0))
  // Locked in the order that every transaction keeps.
  for (const id of [...last.keys()].sort()) {
    yield* sql('update workspace_load set pruned_seq = $2 where workspace_id = $1 and pruned_seq < $2', [
      id,
      last.get(id) as number,
    ])
  }
}

/** Tasks with all of their messages, replies and keys, when they ended long ago and nothing of them needs a person. */
const pruneTasks = ({ taskMs }: RetentionOptions) =>
  function* (): Transaction<number> {
    const [time] = yield* sql<{ now: number }>('select now_ms() as now')
    // Ids are time-ordered: a task that was made lately is passed over without being looked at.
    const before = ulidFloor((time?.now ?? 0) - taskMs)
    const tasks = yield* sql<{ id: string; conversation_id: string }>(
      `select t.id, t.conversation_id from tasks t where t.id < $2 and t.updated_at < now_ms() - $1
       and t.state in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED')
       and not exists (select 1 from messages m where m.task_id = t.id and (m.settled_at is null
         or (m.state = 'dead' and m.replayed_as is null and m.discarded_at is null)))
       and not exists (select 1 from deliveries d where d.task_id = t.id and d.finished_at is null)
       order by t.id limit ${SLICE_ROWS_MAX}`,
      [taskMs, before],
    )
    for (const task of tasks) {
      for (const table of ['events', 'asks', 'deliveries', 'turn_notes', 'push_configs', 'messages']) {
        yield* sql(`delete from ${table} where task_id = $1`, [task.id])
      }
      yield* sql('delete from tasks where id = $1', [task.id])
      yield* pruneConversation(task.conversation_id)
    }
    return tasks.length
  }

/** A conversation that nothing is kept of goes too, with the session that only it could resume. */
function* pruneConversation(id: string): Transaction<void> {
  // Locked first: a message that is being admitted to it at this moment would lose its conversation.
  yield* sql('select id from conversations where id = $1 /*for update*/', [id])
  const [message] = yield* sql('select 1 as kept from messages where conversation_id = $1 limit 1', [id])
  if (message !== undefined) return
  yield* sql('delete from sessions where conversation_id = $1', [id])
  yield* sql('delete from conversations where id = $1 and worker is null', [id])
}
