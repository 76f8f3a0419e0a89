/** For rows of other tables that name a workspace: whether it exists, in the transaction that writes the row. */
import { hasQueue } from '../inbox/queue-rows.ts'
import type { Transaction } from '../store/store.ts'
import { workspaceNotFound } from './workspace-rows.ts'

/** Throws `not_found` for a workspace that never was or is gone. */
export function* requireExisting(workspaceId: string): Transaction<void> {
  if (!(yield* hasQueue(workspaceId))) throw workspaceNotFound(workspaceId)
}
