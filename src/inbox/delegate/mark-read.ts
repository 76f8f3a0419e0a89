/**
 * Remembers that the conversation that delegated a task has read its result. A result that was read is not sent to that
 * conversation again when its turn ends (`children.ts`). A task that asks its sender has a result too: the question.
 */
import { toMoleculeError } from '../../errors.ts'
import { isFinal, isInterrupted, type Task } from '../../protocol/a2a.ts'
import { sql } from '../../store/store.ts'
import type { InboxContext } from '../context.ts'
import { messagesOfTask } from '../read/task-messages.ts'

/**
 * Settled children of the task whose end was not handled. The principal of the task is that of the conversation that
 * delegated it. The state is the one that was read: a task that went on in the meantime has a result that is unread.
 */
const UNREAD = `child_open = 1 and settled_at is not null
  and exists (select 1 from tasks t where t.id = $1 and t.principal = $2 and t.state = $3)`
const FIND = `select m.workspace_id from messages m where ${messagesOfTask('m', '$1')} and ${UNREAD} limit 1`
const MARK = `update messages set child_open = 0 where ${messagesOfTask('messages', '$1')} and ${UNREAD}`

/** Changes nothing for any other reader. A failure only sends the result again, so the read itself goes on. */
export async function markRead({ store, log }: InboxContext, task: Task, reader: string): Promise<void> {
  const { id, status } = task
  if (!isFinal(status.state) && !isInterrupted(status.state)) return
  const values = [id, reader, status.state]
  try {
    // Most repeated reads find nothing, and then nothing is written.
    const [child] = await store.read(() => sql<{ workspace_id: string }>(FIND, values))
    if (child !== undefined) await store.write(() => sql(MARK, values), child.workspace_id)
  } catch (error) {
    log.warn({ err: toMoleculeError(error), taskId: id }, 'a result that was read may be sent to its reader again')
  }
}
