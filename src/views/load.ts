/** The load: how many messages wait and run, of the busiest workspaces and in total. */
import { type ReadStore, sql, type Transaction } from '../store/store.ts'

/** Each workspace is one metric series; further ones are in the totals only. */
const WORKSPACES_MAX = 100

export interface Load {
  /** Messages that wait and turns that run, in all workspaces. */
  readonly waiting: number
  readonly running: number
  /** The busiest workspaces, the longest queue first. */
  readonly workspaces: readonly {
    readonly id: string
    readonly waiting: number
    readonly running: number
    /** How long the oldest message that could run has waited. */
    readonly oldest_waiting_ms: number
  }[]
}

export const readLoad = (store: ReadStore): Promise<Load> => store.read(loadOfAll)

interface LoadRow {
  id: string
  waiting: number
  running: number
  oldest: number | null
  now: number
}

function* loadOfAll(): Transaction<Load> {
  const [total] = yield* sql<{ waiting: number | null; running: number | null }>(
    'select sum(waiting) as waiting, sum(running) as running from workspace_load',
  )
  const rows = yield* sql<LoadRow>(
    `select l.workspace_id as id, l.waiting, l.running, now_ms() as now,
       (select min(c.ready_at) from conversations c
        where c.workspace_id = l.workspace_id and c.ready_at is not null) as oldest
     from workspace_load l where l.waiting > 0 or l.running > 0
     order by l.waiting desc, l.running desc, l.workspace_id limit ${WORKSPACES_MAX}`,
  )
  return {
    waiting: Number(total?.waiting ?? 0),
    running: Number(total?.running ?? 0),
    workspaces: rows.map(({ oldest, now, ...row }) => ({
      ...row,
      // A retry whose time has not come is not late.
      oldest_waiting_ms: oldest === null ? 0 : Math.max(0, now - oldest),
    })),
  }
}
