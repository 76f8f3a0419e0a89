/** Leases as rows: the columns that make a `LeaseKey`, and the leases of one worker. */
import { sql, type Transaction } from '../../store/store.ts'
import type { LeaseKey } from '../worker.ts'
import { IS_RUNNING } from './message.ts'

/** Leases read at a time; the next sweep or poll reads the rest. */
const LEASES_MAX = 1000

export interface LeaseRow {
  workspace_id: string
  conversation_id: string
  task_id: string
  message_id: string
  lease_epoch: number
}

/** For a query on messages `m` and conversations `c`. */
export const LEASE_COLUMNS = 'm.workspace_id, m.conversation_id, m.task_id, m.id as message_id, c.lease_epoch'

export const toLeaseKey = (row: LeaseRow): LeaseKey => ({
  workspaceId: row.workspace_id,
  conversationId: row.conversation_id,
  taskId: row.task_id,
  messageId: row.message_id,
  epoch: row.lease_epoch,
})

export function* findLeasesOf(worker: string): Transaction<LeaseKey[]> {
  const rows = yield* sql<LeaseRow>(
    `select ${LEASE_COLUMNS} from messages m join conversations c on c.id = m.conversation_id
     where m.${IS_RUNNING} and c.worker = $1 order by c.lease_until limit ${LEASES_MAX}`,
    [worker],
  )
  return rows.map(toLeaseKey)
}
