/**
 * Remembers that the turn that delegated a task has read its result. A read belongs to the attempt: it counts when that
 * turn is done, and then the result is not sent to its conversation (`children.ts`). A turn that is lost, fails or is
 * released takes its reads with it. A task that asks its sender has a result too: the question.
 */
import { toMoleculeError } from '../../errors.ts'
import { isFinal, isInterrupted, type Task } from '../../protocol/a2a.ts'
import { sql } from '../../store/store.ts'
import type { InboxContext } from '../context.ts'
import { messagesOfTask } from '../read/task-messages.ts'
import type { ForgetRead } from '../reception.ts'

/**
 * Settled children of the task that the running turn of their parent has not read. The principal of the task is that of
 * the conversation that delegated it. The state is the one that was read: a task that went on in the meantime has a
 * result that is unread.
 */
const UNREAD = (child: string): string => `${messagesOfTask(child, '$1')}
  and ${child}.child_open = 1 and ${child}.settled_at is not null
  and p.id = ${child}.parent_id and p.state = 'leased' and c.id = p.conversation_id
  and coalesce(${child}.read_epoch, 0) <> c.lease_epoch
  and exists (select 1 from tasks t where t.id = $1 and t.principal = $2 and t.state = $3)`
const FIND = `select m.workspace_id from messages m, messages p, conversations c where ${UNREAD('m')} limit 1`
const MARK = `update messages set read_epoch = c.lease_epoch from messages p, conversations c where ${UNREAD('messages')}`

/** Only of the turn that runs: what an earlier turn read and was done with stays read. */
const FORGET = `update messages set read_epoch = null where ${messagesOfTask('messages', '$1')} and child_open = 1
  and exists (select 1 from tasks t where t.id = $1 and t.principal = $2)`

/** Changes nothing for any other reader. A failure only sends the result again, so the read itself goes on. */
export async function markRead(context: InboxContext, task: Task, reader: string): Promise<ForgetRead | undefined> {
  const { store, log } = context
  const { id, status } = task
  if (!isFinal(status.state) && !isInterrupted(status.state)) return undefined
  const values = [id, reader, status.state]
  const forget = async (workspaceId: string) => {
    try {
      await store.write(() => sql(FORGET, [id, reader]), workspaceId)
    } catch (error) {
      log.warn({ err: toMoleculeError(error), taskId: id }, 'a result whose answer was not sent counts as read')
    }
  }
  try {
    // Most repeated reads find nothing, and then nothing is written.
    const [child] = await store.read(() => sql<{ workspace_id: string }>(FIND, values))
    if (child === undefined) return undefined
    await store.write(() => sql(MARK, values), child.workspace_id)
    return () => forget(child.workspace_id)
  } catch (error) {
    log.warn({ err: toMoleculeError(error), taskId: id }, 'a result that was read may be sent to its reader again')
    return undefined
  }
}
