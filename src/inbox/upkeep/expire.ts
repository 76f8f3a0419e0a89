/** Expiry: a message that no worker began in time becomes a dead letter, so that no sender waits for ever. */
import { sql, type Transaction, together } from '../../store/store.ts'
import { failTask } from '../commands/fail-task.ts'
import { refreshReadiness } from '../rows/conversation.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { recordChange } from '../rows/log.ts'
import { IS_RUNNING, inStates } from '../rows/message.ts'
import { messagesOfTask } from '../rows/task-messages.ts'
import { IS_MARKED } from './waiting-time.ts'

/** Messages expired in one sweep; the next sweep expires the rest. */
const EXPIRED_MAX = 100

export interface ExpiredMessage {
  readonly id: string
  readonly workspaceId: string
  readonly conversationId: string
  readonly taskId: string
}

/** Without a fresh mark nothing expires: the clock of the database may have jumped since this sweep has marked the time. */
export function* findExpired(): Transaction<ExpiredMessage[]> {
  const rows = yield* sql<{ id: string; workspace_id: string; conversation_id: string; task_id: string }>(
    `select id, workspace_id, conversation_id, task_id from messages
     where ${inStates('queued')} and expires_at < now_ms() and failures + losses + interrupted + parks = 0 and ${IS_MARKED}
     order by expires_at limit ${EXPIRED_MAX}`,
  )
  return rows.map((row) => ({
    id: row.id,
    workspaceId: row.workspace_id,
    conversationId: row.conversation_id,
    taskId: row.task_id,
  }))
}

/** Fails the message and its task, unless a worker has leased it meanwhile. */
export function* expire({ id, workspaceId, conversationId, taskId }: ExpiredMessage): Transaction<boolean> {
  yield* together([lockWorkspace(workspaceId)])
  const [running] = yield* sql(
    `select m.id from messages m where ${messagesOfTask('m', '$1')} and m.${IS_RUNNING} limit 1`,
    [taskId],
  )
  const [message] = yield* sql(`select id from messages where id = $1 and ${inStates('queued')}`, [id])
  // While another message of the task runs, the task must not fail; a later sweep looks again.
  if (message === undefined || running !== undefined) return false
  const { ended, items } = yield* failTask(taskId, { code: 'expired', message: 'the message was not started in time' })
  const entries = [{ taskId, messageId: id, items }]
  yield* together([refreshReadiness(conversationId), ...recordChange({ workspaceId, waiting: -ended, entries })])
  return true
}
