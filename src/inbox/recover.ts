/**
 * After a crash: the leases of this host's earlier process are void. The lock on its data folder proves that it is
 * gone, so nobody has to wait for them to run out. What it was running is counted as a loss and runs again.
 */
import { sql, type Transaction, together } from '../store/store.ts'
import { freeConversation } from './conversation.ts'
import { closeBooks } from './event-log.ts'
import { countLoss, LOST_COLUMNS, type Loss, type LostMessage } from './loss.ts'

/** Voids the leases of every worker of this host; returns how many turns were lost. */
export function* voidLeases(host: string): Transaction<number> {
  const lost = yield* sql<LostMessage>(
    `select ${LOST_COLUMNS} from messages where state in ('leased', 'stopping') and conversation_id in (
       select id from conversations where worker like $1) order by workspace_id, conversation_id`,
    [`${host}.%`],
  )
  for (const message of lost) yield* freeLost(message, yield* countLoss(message))
  return lost.length
}

/** Ends a lease whose worker is gone without giving it to another: the message waits again, or has ended. */
export function* freeLost(message: LostMessage, { again, items, waiting }: Loss): Transaction<void> {
  const books = {
    workspaceId: message.workspace_id,
    running: message.suspended - 1,
    suspended: -message.suspended,
    waiting: waiting + (again ? 1 : 0),
    entries: items.length === 0 ? [] : [{ taskId: message.task_id, messageId: message.id, items }],
  }
  yield* together([freeConversation(message.conversation_id), ...closeBooks(books)])
}
