/** For rows of other tables that name a workspace: whether it exists, in the transaction that writes the row. */
import { sql, type Transaction } from '../store/store.ts'
import { workspaceNotFound } from './workspace-rows.ts'

/** Throws `not_found` for a workspace that never was or is gone. */
export function* requireExisting(workspaceId: string): Transaction<void> {
  const [row] = yield* sql('select workspace_id from workspace_load where workspace_id = $1', [workspaceId])
  if (row === undefined) throw workspaceNotFound(workspaceId)
}
