/**
 * After a crash: the leases of this host's earlier process are void. The lock on its data folder proves that it is
 * gone, so nobody has to wait for them to run out. What it was running is counted as a loss and runs again.
 */
import { sql, statement, type Transaction, together } from '../../store/store.ts'
import { recordChange } from '../read/event-log.ts'
import { freeConversation } from './conversation-readiness.ts'
import { lockWorkspace } from './lock-workspace.ts'
import { LOST_COLUMNS, type LostMessage, type LostTurn, recordLoss } from './lost-turn.ts'

/** Voids the leases of every worker of this host; returns how many turns were lost. */
export function* recoverLeases(host: string): Transaction<number> {
  const workers = `${host}.%`
  const held = yield* sql<{ id: string; workspace_id: string }>(
    `select c.id, c.workspace_id from messages m join conversations c on c.id = m.conversation_id
     where m.state in ('leased', 'stopping') and c.worker like $1 order by c.workspace_id, c.id`,
    [workers],
  )
  let lost = 0
  for (const { id, workspace_id: workspaceId } of held) {
    const [, [message]] = (yield* together([
      lockWorkspace(workspaceId),
      // Looked at again under the lock: another node may have taken over meanwhile.
      statement(
        `select ${LOST_COLUMNS} from messages where conversation_id = $1 and state in ('leased', 'stopping')
         and exists (select 1 from conversations c where c.id = $1 and c.worker like $2)`,
        [id, workers],
      ),
    ])) as unknown as [unknown, LostMessage[]]
    if (message === undefined) continue
    yield* freeLost(message, yield* recordLoss(message))
    lost += 1
  }
  return lost
}

/** Ends a lease whose worker is gone without giving it to another: the message waits again, or has ended. */
export function* freeLost(message: LostMessage, { again, items, waiting }: LostTurn): Transaction<void> {
  const change = {
    workspaceId: message.workspace_id,
    running: message.suspended - 1,
    suspended: -message.suspended,
    waiting: waiting + (again ? 1 : 0),
    entries: items.length === 0 ? [] : [{ taskId: message.task_id, messageId: message.id, items }],
  }
  yield* together([freeConversation(message.conversation_id), ...recordChange(change)])
}
