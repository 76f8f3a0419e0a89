/**
 * Retention: rows of ended tasks are kept for a time and then deleted, in small slices so that no writer waits long.
 * Unsettled messages, and dead letters and deliveries that no person has handled, are never deleted.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { DAY_MS, HOUR_MS } from '../../duration.ts'
import { ulidFloor } from '../../ids.ts'
import { runStatement, type Store, sql, statement, type Transaction, together } from '../../store/store.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { inStates } from '../rows/message.ts'
import { deleteMessagesOf } from '../rows/message-updates.ts'
import { IS_FINAL } from '../rows/task.ts'
import { laterMessagesOfTask } from '../rows/task-messages.ts'
import { USAGE_PRUNED } from '../rows/turn-usage.ts'

/** Rows deleted in one transaction. */
const SLICE_ROWS_MAX = 100
/** A task has rows in ten tables. With 500 tasks a slice, a message sent meanwhile took 73 ms. */
const SLICE_TASKS_MAX = 20

export interface RetentionOptions {
  readonly taskMs: number
  readonly eventMs: number
  readonly deltaMs: number
}

export const RETENTION: RetentionOptions = { taskMs: 30 * DAY_MS, eventMs: 7 * DAY_MS, deltaMs: HOUR_MS }

/** Prunes slice by slice until nothing is old enough or the signal aborts. Returns the number of deleted rows. */
export async function prune(store: Store, options: RetentionOptions, signal: AbortSignal): Promise<number> {
  const deltas = await bySlices(() => store.write(pruneDeltas(options)), signal)
  const events = await pruneLogs(store, options, signal)
  const tasks = await bySlices(() => store.write(pruneTasks(options)), signal, SLICE_TASKS_MAX)
  const own = await bySlices(() => store.write(pruneOwnDeliveries(options)), signal)
  const usage = await bySlices(() => store.write(pruneUsage), signal)
  // The deleted rows leave free pages.
  while (!signal.aborted && (await store.upkeep?.()) === true) await nextTurn()
  return deltas + events + tasks + own + usage
}

async function bySlices(slice: () => Promise<number>, signal: AbortSignal, max = SLICE_ROWS_MAX): Promise<number> {
  let total = 0
  let gone = max
  while (gone >= max && !signal.aborted) {
    gone = await slice()
    total += gone
  }
  return total
}

/** Text deltas, an hour after the whole reply replaced them. */
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

/** Reads each log from its oldest entry on, so that no event needs a row in an index by age. */
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

interface LogSlice {
  readonly gone: number
  /** Where the next slice begins; undefined when every old entry was read. */
  readonly nextSeq: number | undefined
}

/** Events of settled messages, and activity notes; an unsettled message keeps all of its events. */
function* pruneLog(position: {
  readonly workspaceId: string
  readonly afterSeq: number
  readonly eventMs: number
}): Transaction<LogSlice> {
  const { workspaceId, afterSeq, eventMs } = position
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
    // A reader whose cursor is before these gets `pruned` instead of a silent gap.
    const pruned = Math.max(...rows.map(({ seq }) => seq))
    yield* sql('update workspace_load set pruned_seq = $2 where workspace_id = $1 and pruned_seq < $2', [
      workspaceId,
      pruned,
    ])
  }
  return { gone: rows.length, nextSeq: slice?.young === 1 ? undefined : last }
}

/** Deliveries without a task, some days after they have arrived or a person has decided about them. */
const pruneOwnDeliveries = ({ eventMs }: RetentionOptions) =>
  function* (): Transaction<number> {
    const rows = yield* sql<{ id: string }>(
      `select id from deliveries where task_id is null and finished_at < now_ms() - $1 limit ${SLICE_ROWS_MAX}`,
      [eventMs],
    )
    for (const { id } of rows) {
      yield* sql('delete from delivery_parts where delivery_id = $1', [id])
      yield* sql('delete from deliveries where id = $1', [id])
    }
    return rows.length
  }

/** Usage rows that no report shows any more, and the budgets of days that are over. */
function* pruneUsage(): Transaction<number> {
  yield* sql(`delete from budgets where day < now_ms() / ${DAY_MS} - 1`)
  const rows = yield* sql(
    `delete from turn_usage where (message_id, epoch) in (
       select message_id, epoch from turn_usage where ${USAGE_PRUNED} order by ended_at limit ${SLICE_ROWS_MAX})
     returning epoch`,
  )
  return rows.length
}

const KEPT = `(m.settled_at is null or (m.${inStates('dead')} and m.replayed_as is null and m.discarded_at is null))`

/** Tasks that ended long ago and need no person, with all of their messages, replies and dedupe keys. */
const pruneTasks = ({ taskMs }: RetentionOptions) =>
  function* (): Transaction<number> {
    const [time] = yield* sql<{ now: number }>('select now_ms() as now')
    // Ids are time-ordered, so recent tasks are skipped by the primary key.
    const before = ulidFloor((time?.now ?? 0) - taskMs)
    const tasks = yield* sql<{ id: string; conversation_id: string }>(
      `select t.id, t.conversation_id from tasks t where t.id < $2 and t.updated_at < now_ms() - $1
       and t.${IS_FINAL}
       and not exists (select 1 from messages m where m.id = t.id and ${KEPT})
       and not exists (select 1 from messages m where ${laterMessagesOfTask('m', 't.id')} and ${KEPT})
       and not exists (select 1 from deliveries d where d.task_id = t.id and d.finished_at is null)
       order by t.id limit ${SLICE_TASKS_MAX}`,
      [taskMs, before],
    )
    for (const task of tasks) {
      const deliveries = 'select id from deliveries where task_id = $1'
      yield* sql(`delete from delivery_parts where delivery_id in (${deliveries})`, [task.id])
      for (const table of [
        'events',
        'asks',
        'deliveries',
        'turn_notes',
        'push_configs',
        'budgets',
        'damaged_replies',
      ]) {
        yield* sql(`delete from ${table} where task_id = $1`, [task.id])
      }
      yield* runStatement(deleteMessagesOf(task.id))
      yield* sql('delete from tasks where id = $1', [task.id])
      yield* pruneConversation(task.conversation_id)
    }
    return tasks.length
  }

/** Deletes a conversation without messages, and its session. */
function* pruneConversation(id: string): Transaction<void> {
  // Lock first: a message that is admitted at this moment would lose its conversation.
  yield* sql('select id from conversations where id = $1 /*for update*/', [id])
  const [message] = yield* sql('select 1 as kept from messages where conversation_id = $1 limit 1', [id])
  if (message !== undefined) return
  yield* sql('delete from sessions where conversation_id = $1', [id])
  yield* sql('delete from conversations where id = $1 and worker is null', [id])
}
