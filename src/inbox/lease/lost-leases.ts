/**
 * Leases that nobody heard of: the write that made them was committed and its answer was lost. They stand in the name of
 * a worker of this process, which is alive, so that nobody takes over, and which will never settle them. Seen in two
 * sweeps they are given back as if they had never been taken; by then every answer that was on its way has come.
 */
import { sql, type Transaction } from '../../store/store.ts'
import type { InboxContext } from '../context.ts'
import { type LeaseKey, leaseId } from '../inbox.ts'

/** Looked at in one sweep; the next sees to the rest. */
const LEASES_MAX = 1000

export type ReleaseLease = (key: LeaseKey) => void

/** Returns the look to be taken in every sweep. */
export function createLostLeaseCheck(
  { store, workerQueues, held }: InboxContext,
  releaseLease: ReleaseLease,
): () => Promise<void> {
  let suspected: ReadonlySet<string> = new Set()
  return async () => {
    const lost: LeaseKey[] = []
    for (const { worker } of workerQueues.all()) {
      const stored = await store.read(() => findLeasesOf(worker.id))
      lost.push(...stored.filter((key) => !held.has(leaseId(key))))
    }
    for (const key of lost) if (suspected.has(leaseId(key))) releaseLease(key)
    suspected = new Set(lost.map(leaseId))
  }
}

interface LeaseRow {
  workspace_id: string
  conversation_id: string
  task_id: string
  message_id: string
  lease_epoch: number
}

export function* findLeasesOf(worker: string): Transaction<LeaseKey[]> {
  const rows = yield* sql<LeaseRow>(
    `select m.workspace_id, m.conversation_id, m.task_id, m.id as message_id, c.lease_epoch from messages m
     join conversations c on c.id = m.conversation_id where m.state in ('leased', 'stopping') and c.worker = $1
     order by c.lease_until limit ${LEASES_MAX}`,
    [worker],
  )
  return rows.map((row) => ({
    workspaceId: row.workspace_id,
    conversationId: row.conversation_id,
    taskId: row.task_id,
    messageId: row.message_id,
    epoch: row.lease_epoch,
  }))
}
