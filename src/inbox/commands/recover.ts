/**
 * Recovery at start: the leases of an earlier process of this host are void. The lock on the data folder proves that
 * the process is gone, so they need not run out first. Each lost turn is recorded and its message runs again.
 */
import { sql, statement, type Transaction, together } from '../../store/store.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { IS_RUNNING } from '../rows/message.ts'
import { freeLost, LOST_COLUMNS, type LostMessage, recordLoss } from './lose.ts'

/** Voids the leases of every worker of this host; returns how many turns were lost. */
export function* recoverLeases(host: string): Transaction<number> {
  const workers = `${host}.%`
  const held = yield* sql<{ id: string; workspace_id: string }>(
    `select c.id, c.workspace_id from messages m join conversations c on c.id = m.conversation_id
     where m.${IS_RUNNING} and c.worker like $1 order by c.workspace_id, c.id`,
    [workers],
  )
  let lost = 0
  for (const { id, workspace_id: workspaceId } of held) {
    const [, [message]] = (yield* together([
      lockWorkspace(workspaceId),
      // Read again under the lock: another node may have taken over since.
      statement(
        `select ${LOST_COLUMNS} from messages where conversation_id = $1 and ${IS_RUNNING}
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
