/** Whether a workspace exists, in the transaction that writes a row that names it; and whether any ever did. */
import { hasQueue } from '../inbox/queue-rows.ts'
import { sql, type Transaction } from '../store/store.ts'
import { workspaceNotFound } from './workspace-rows.ts'

/** Throws `not_found` for a workspace that never was or is gone. */
export function* requireExisting(workspaceId: string): Transaction<void> {
  if (!(yield* hasQueue(workspaceId))) throw workspaceNotFound(workspaceId)
}

/** Every platform makes a secret at its first start, and a deleted workspace keeps its row. */
export function* isUnusedStore(): Transaction<boolean> {
  const [row] = yield* sql<{ used: number }>(
    'select (select count(*) from secrets) + (select count(*) from workspaces) as used',
  )
  return Number(row?.used ?? 0) === 0
}
