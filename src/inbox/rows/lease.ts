/** Leases as rows: the columns that make a `LeaseKey`, the leases of one worker, and who holds a lease. */
import { sql, type Transaction } from '../../store/store.ts'
import type { LeaseKey } from '../worker.ts'
import { IS_RUNNING } from './message.ts'
import { messagesOfTask } from './task-messages.ts'

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

export interface LeaseHolder {
  /** Null when the conversation is free. */
  readonly worker: string | null
  readonly leaseEpoch: number
}

/**
 * The worker of the message's conversation. Undefined when the key is wrong: a bridge's token is for one workspace, and a
 * key with the id of a message elsewhere must not reach that message.
 */
export function* findHolder(key: LeaseKey): Transaction<LeaseHolder | undefined> {
  const [row] = yield* sql<{ worker: string | null; lease_epoch: number }>(
    `select c.worker, c.lease_epoch from messages m join conversations c on c.id = m.conversation_id
     where m.id = $1 and m.task_id = $2 and m.conversation_id = $3 and m.workspace_id = $4`,
    [key.messageId, key.taskId, key.conversationId, key.workspaceId],
  )
  return row && { worker: row.worker, leaseEpoch: Number(row.lease_epoch) }
}

/** Whether a turn of the task runs, or still stops. */
export function* hasRunningTurn(taskId: string): Transaction<boolean> {
  const running = yield* sql(
    `select 1 as running from messages m where ${messagesOfTask('m', '$1')} and m.${IS_RUNNING} limit 1`,
    [taskId],
  )
  return running.length > 0
}
