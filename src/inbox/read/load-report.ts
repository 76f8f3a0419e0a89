/** The load: how many messages wait and run, of the busiest workspaces and in total. */
import { sql, type Transaction } from '../../store/store.ts'
import type { LoadReport } from '../load-readers.ts'

/** Each workspace is one metric series; further ones are in the totals only. */
const WORKSPACES_MAX = 100

interface LoadRow {
  workspace_id: string
  waiting: number
  running: number
  oldest: number | null
  now: number
}

export function* reportLoad(): Transaction<LoadReport> {
  const [total] = yield* sql<{ waiting: number | null; running: number | null }>(
    'select sum(waiting) as waiting, sum(running) as running from workspace_load',
  )
  const rows = yield* sql<LoadRow>(
    `select l.workspace_id, l.waiting, l.running, now_ms() as now,
       (select min(c.ready_at) from conversations c
        where c.workspace_id = l.workspace_id and c.ready_at is not null) as oldest
     from workspace_load l where l.waiting > 0 or l.running > 0
     order by l.waiting desc, l.running desc, l.workspace_id limit ${WORKSPACES_MAX}`,
  )
  return {
    waiting: Number(total?.waiting ?? 0),
    running: Number(total?.running ?? 0),
    workspaces: rows.map(({ workspace_id: id, waiting, running, oldest, now }) => ({
      id,
      waiting,
      running,
      // A retry whose time has not come is not late.
      oldestWaitingMs: oldest === null ? 0 : Math.max(0, now - oldest),
    })),
  }
}
