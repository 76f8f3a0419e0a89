/**
 * The row of a workspace's queue, for the transactions of `src/workspaces`. A workspace exists while its queue does: the end
 * of the queue (`WorkspaceQueues.end`) removes the row.
 */
import { sql, type Transaction, together } from '../store/store.ts'
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

/** Two that create at the same moment both find no such workspace. The written row makes the second one wait. */
export function* lockCreation(of: 'names' | 'team'): Transaction<void> {
  yield* sql(
    `insert into upkeep_clock (name, at_ms) values ($1, now_ms())
     on conflict (name) do update set at_ms = excluded.at_ms`,
    [of],
  )
}
