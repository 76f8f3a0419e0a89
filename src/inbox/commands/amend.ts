/**
 * Changes of a message that waits and was not tried: its sender edits its text, or takes it back. Its place in the
 * conversation, its key and its files stay. Invariant: what a turn may have read never changes.
 */
import { contentHash, restoreEnvelope, withMessageText, writeEnvelope } from '../../protocol/envelope.ts'
import { runStatement, sql, type Transaction, together } from '../../store/store.ts'
import { findTask } from '../read/tasks.ts'
import type { UntriedMessage } from '../reception.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { IS_UNTRIED, replaceEnvelope } from '../rows/message-updates.ts'
import { messagesOfTask } from '../rows/task-messages.ts'
import { type CanceledTask, cancel } from './cancel.ts'

interface WaitingRow {
  id: string
  envelope: string
  idempotency_key: string
  untried: number
}

/** False: nothing changed. A copy of the letter is then known by the new content, under the same key. */
export function* amend(waiting: UntriedMessage, text: string): Transaction<boolean> {
  const row = (yield* messagesOf(waiting)).find((message) => isWaiting(message, waiting))
  if (row === undefined) return false
  const envelope = withMessageText(restoreEnvelope(row.envelope), text)
  const content = { envelope: writeEnvelope(envelope), contentHash: contentHash(envelope.message) }
  yield* runStatement(replaceEnvelope(row.id, content))
  return true
}

/** Cancels its task. Undefined: nothing changed; a task with further messages goes on without a change. */
export function* withdraw(waiting: UntriedMessage): Transaction<CanceledTask | undefined> {
  const [row, ...others] = yield* messagesOf(waiting)
  if (row === undefined || others.length > 0 || !isWaiting(row, waiting)) return undefined
  return yield* cancel(waiting.taskId, {})
}

const isWaiting = ({ idempotency_key: key, untried }: WaitingRow, waiting: UntriedMessage): boolean =>
  key === waiting.key && untried === 1

/** Under the lock of the workspace: no worker takes one of them meanwhile. */
function* messagesOf({ taskId }: UntriedMessage): Transaction<WaitingRow[]> {
  const task = yield* findTask(taskId, {})
  if (task === undefined) return []
  yield* together([lockWorkspace(task.workspace_id)])
  return yield* sql<WaitingRow>(
    `select m.id, m.envelope, m.idempotency_key, case when ${IS_UNTRIED} then 1 else 0 end as untried
     from messages m where ${messagesOfTask('m', '$1')}`,
    [taskId],
  )
}
