/**
 * Retention: what has ended is kept for a time and then goes, a small slice at a time so that no writer waits long.
 * Nothing unsettled is ever touched, nor a dead letter or delivery that nobody has handled.
 */
import { ulidFloor } from '../../ids.ts'
import { type Store, sql, statement, type Transaction, together } from '../../store/store.ts'
import { lockWorkspace } from '../lease/lock-workspace.ts'
import { laterMessagesOfTask, messagesOfTask } from '../read/task-messages.ts'
import { USAGE_PRUNED } from '../read/usage.ts'

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
  const deltas = await bySlices(() => store.write(pruneDeltas(options)), signal)
  const events = await pruneLogs(store, options, signal)
  const tasks = await bySlices(() => store.write(pruneTasks(options)), signal)
  return deltas + events + tasks + (await bySlices(() => store.write(pruneUsage), signal))
}

async function bySlices(slice: () => Promise<number>, signal: AbortSignal): Promise<number> {
  let total = 0
  let gone = SLICE_ROWS_MAX
  while (gone >= SLICE_ROWS_MAX && !signal.aborted) {
    gone = await slice()
    total += gone
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

/** Each log from its oldest entry on as far as it is old; so no index of ages has to be kept with every event. */
async function pruneLogs(store: Store, { eventMs }: RetentionOptions, signal: AbortSignal): Promise<number> {
  const next = (id: string) => store.read(() => nextWorkspaceWithLog(id))
  let total = 0
  for (let id = await next(''); id !== undefined && !signal.aborted; id = await next(id)) {
    const workspaceId = id
    for (let from: number | undefined = 0; from !== undefined && !signal.aborted; ) {
      const place = { workspaceId, afterSeq: from, eventMs }
      const slice: LogSlice = await store.write(() => pruneLog(place), workspaceId)
      total += slice.gone
      from = slice.nextSeq
    }
  }
  return total
}

function* nextWorkspaceWithLog(workspaceId: string): Transaction<string | undefined> {
  const [row] = yield* sql<{ id: string | null }>(
    'select min(workspace_id) as id from events where workspace_id > $1',
    [workspaceId],
  )
  return row?.id ?? undefined
}

interface LogPosition {
  readonly workspaceId: string
  readonly afterSeq: number
  readonly eventMs: number
}

interface LogSlice {
  readonly gone: number
  /** Where the next slice begins; none when all that is old has been seen. */
  readonly nextSeq: number | undefined
}

/** Events of what has settled, and notes; a task that still runs keeps its whole story. */
function* pruneLog({ workspaceId, afterSeq, eventMs }: LogPosition): Transaction<LogSlice> {
  const [, [slice]] = (yield* together([
    lockWorkspace(workspaceId),
    statement(
      `select max(seq) as last, max(case when at_ms < now_ms() - $3 then 0 else 1 end) as young from (
         select seq, at_ms from events where workspace_id = $1 and seq > $2 order by seq limit ${SLICE_ROWS_MAX}) as slice`,
      [workspaceId, afterSeq, eventMs],
    ),
  ])) as unknown as [unknown, { last: number | null; young: number | null }[]]
  const last = slice?.last ?? undefined
  if (last === undefined) return { gone: 0, nextSeq: undefined }
  const rows = yield* sql<{ seq: number }>(
    `delete from events where workspace_id = $1 and seq > $2 and seq <= $3 and at_ms < now_ms() - $4
     and (message_id is null or exists (
       select 1 from messages m where m.id = events.message_id and m.settled_at < now_ms() - $4)) returning seq`,
    [workspaceId, afterSeq, last, eventMs],
  )
  if (rows.length > 0) {
    // A reader whose cursor lies before these can be told that it missed something.
    const pruned = Math.max(...rows.map(({ seq }) => seq))
    yield* sql('update workspace_load set pruned_seq = $2 where workspace_id = $1 and pruned_seq < $2', [
      workspaceId,
      pruned,
    ])
  }
  return { gone: rows.length, nextSeq: slice?.young === 1 ? undefined : last }
}

/** What turns used, when no report shows it any more. */
function* pruneUsage(): Transaction<number> {
  const rows = yield* sql(
    `delete from turn_usage where (message_id, epoch) in (
       select message_id, epoch from turn_usage where ${USAGE_PRUNED} order by ended_at limit ${SLICE_ROWS_MAX})
     returning epoch`,
  )
  return rows.length
}

const KEPT = `(m.settled_at is null or (m.state = 'dead' and m.replayed_as is null and m.discarded_at is null))`

/** Tasks with all of their messages, replies and keys, when they ended long ago and nothing of them needs a person. */
const pruneTasks = ({ taskMs }: RetentionOptions) =>
  function* (): Transaction<number> {
    const [time] = yield* sql<{ now: number }>('select now_ms() as now')
    // Ids are time-ordered: a task that was made lately is passed over without being looked at.
    const before = ulidFloor((time?.now ?? 0) - taskMs)
    const tasks = yield* sql<{ id: string; conversation_id: string }>(
      `select t.id, t.conversation_id from tasks t where t.id < $2 and t.updated_at < now_ms() - $1
       and t.state in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED')
       and not exists (select 1 from messages m where m.id = t.id and ${KEPT})
       and not exists (select 1 from messages m where ${laterMessagesOfTask('m', 't.id')} and ${KEPT})
       and not exists (select 1 from deliveries d where d.task_id = t.id and d.finished_at is null)
       order by t.id limit ${SLICE_ROWS_MAX}`,
      [taskMs, before],
    )
    for (const task of tasks) {
      for (const table of ['events', 'asks', 'deliveries', 'turn_notes', 'push_configs']) {
        yield* sql(`delete from ${table} where task_id = $1`, [task.id])
      }
      yield* sql(`delete from messages where ${messagesOfTask('messages', '$1')}`, [task.id])
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
