/**
 * The row of a workspace's queue, for the transactions of `src/workspaces`. A workspace exists while its queue does: the end
 * of the queue (`WorkspaceQueues.end`) removes the row.
 */
import { type Statement, sql, statement, type Transaction, together } from '../store/store.ts'
import { inAskStates } from './rows/ask.ts'
import { lockWorkspace } from './rows/lock-workspace.ts'

export interface QueueSettings {
  /** False when a bridge runs the turns. */
  readonly isHosted: boolean
  /** Turns at a time. */
  readonly slots: number
}

export function* insertQueue(workspaceId: string, { isHosted, slots }: QueueSettings): Transaction<void> {
  const insert = 'insert into workspace_load (workspace_id, hosted, slots) values ($1, $2, $3)'
  yield* sql(insert, [workspaceId, isHosted ? 1 : 0, slots])
}

export function* changeQueue(workspaceId: string, { isHosted, slots }: QueueSettings): Transaction<void> {
  const update = 'update workspace_load set hosted = $2, slots = $3 where workspace_id = $1'
  yield* sql(update, [workspaceId, isHosted ? 1 : 0, slots])
}

export const pauseEveryQueue = (): Statement => statement('update workspace_load set paused = 1')

export function* countQueues(): Transaction<number> {
  const [row] = yield* sql<{ total: number }>('select count(*) as total from workspace_load')
  return row?.total ?? 0
}

export function* hasQueue(workspaceId: string): Transaction<boolean> {
  const rows = yield* sql('select workspace_id from workspace_load where workspace_id = $1', [workspaceId])
  return rows.length > 0
}

/** Locks the queue until the commit; false where there is none. */
export function* lockQueue(workspaceId: string): Transaction<boolean> {
  const [rows = []] = yield* together([lockWorkspace(workspaceId)])
  return rows.length > 0
}

/** The same as an SQL condition, for an expression for the id of a workspace. */
export const withQueue = (workspaceId: string): string =>
  `exists (select 1 from workspace_load l where l.workspace_id = ${workspaceId})`

/** The same for the queues whose turns the platform runs. */
export const withHostedQueue = (workspaceId: string): string =>
  `exists (select 1 from workspace_load l where l.workspace_id = ${workspaceId} and l.hosted = 1)`

/**
 * The stored status of the task whose parked message is tried next, as an SQL expression. A parked message is the oldest of
 * its conversation. Only conversations that wait for a retry are read, by the index on their ready time, and of each only the
 * messages that no turn has settled.
 */
export const parkedStatusOf = (workspaceId: string): string => `(select t.status_message from conversations c
    join messages m on m.conversation_id = c.id and m.n > c.settled_n and m.settled_at is null
      and (m.parks > 0 or exists (select 1 from budget_waits b where b.message_id = m.id))
    join tasks t on t.id = m.task_id where c.workspace_id = ${workspaceId} and c.ready_at > now_ms() order by c.ready_at limit 1)`

/** Since when its oldest ready conversation waits, as an SQL expression; null while none does. */
export const readySinceOf = (workspaceId: string): string =>
  `(select min(c.ready_at) from conversations c where c.workspace_id = ${workspaceId} and c.ready_at is not null)`

/** The open permission asks of every workspace that has any, as a table of an SQL query. */
export const OPEN_PERMISSIONS = `(select workspace_id, count(*) as asked from asks where ${inAskStates('open')} and tool is not null
    group by workspace_id)`

/** Two that create at the same moment both find no such workspace. The written row makes the second one wait. */
export function* lockCreation(of: 'names' | 'team'): Transaction<void> {
  yield* sql(
    `insert into upkeep_clock (name, at_ms) values ($1, now_ms())
     on conflict (name) do update set at_ms = excluded.at_ms`,
    [of],
  )
}
