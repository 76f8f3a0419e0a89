/** Messages that nobody began within their time become dead letters, so that no sender waits for ever in silence. */
import { sql, type Transaction, together } from '../../store/store.ts'
import { refreshReadiness } from '../lease/conversation-readiness.ts'
import { recordChange } from '../read/event-log.ts'
import { messagesOfTask } from '../read/task-messages.ts'
import { failTask } from '../settle/fail-task.ts'

/** How long a message may wait for its first attempt. */
export const EXPIRY_MS = 24 * 3600_000
const EXPIRED_MAX = 100

export interface ExpiredMessage {
  readonly id: string
  readonly workspaceId: string
  readonly conversationId: string
  readonly taskId: string
}

export function* findExpired(): Transaction<ExpiredMessage[]> {
  const rows = yield* sql<{ id: string; workspace_id: string; conversation_id: string; task_id: string }>(
    `select id, workspace_id, conversation_id, task_id from messages
     where state = 'queued' and expires_at < now_ms() and failures + losses + interrupted = 0
     order by expires_at limit ${EXPIRED_MAX}`,
  )
  return rows.map((row) => ({
    id: row.id,
    workspaceId: row.workspace_id,
    conversationId: row.conversation_id,
    taskId: row.task_id,
  }))
}

/** Ends the message with its task, unless it was begun meanwhile. */
export function* expire({ id, workspaceId, conversationId, taskId }: ExpiredMessage): Transaction<boolean> {
  yield* sql('select slots from workspace_load where workspace_id = $1 /*for update*/', [workspaceId])
  const [running] = yield* sql(
    `select m.id from messages m where ${messagesOfTask('m', '$1')} and m.state in ('leased', 'stopping') limit 1`,
    [taskId],
  )
  const [message] = yield* sql(`select id from messages where id = $1 and state = 'queued'`, [id])
  // While another message of the task runs, the task lives; this one is looked at again when that has ended.
  if (message === undefined || running !== undefined) return false
  const { ended, items } = yield* failTask(taskId, { code: 'expired', message: 'the message was not started in time' })
  const entries = [{ taskId, messageId: id, items }]
  yield* together([refreshReadiness(conversationId), ...recordChange({ workspaceId, waiting: -ended, entries })])
  return true
}
