/**
 * Remembers that the turn that delegated a task has read its result. A read belongs to the attempt: it counts when that
 * turn is done, and then the result is not sent to its conversation (`children.ts`). A turn that is lost, fails or is
 * released takes its reads with it. A task that asks its sender has a result too: the question.
 */
import { toMoleculeError } from '../../errors.ts'
import { isFinal, isInterrupted, type Task } from '../../protocol/a2a.ts'
import { runStatement } from '../../store/store.ts'
import type { ForgetRead } from '../reception.ts'
import { findUnread, markRead as markChildRead, markUnread } from '../rows/message-updates.ts'
import type { InboxContext } from './context.ts'

/** Changes nothing for any other reader. A failure only sends the result again, so the read itself goes on. */
export async function markRead(context: InboxContext, task: Task, reader: string): Promise<ForgetRead | undefined> {
  const { store, log } = context
  const { id, status } = task
  if (!isFinal(status.state) && !isInterrupted(status.state)) return undefined
  const read = { taskId: id, reader, state: status.state }
  const forget = async (workspaceId: string) => {
    try {
      await store.write(() => runStatement(markUnread(read)), workspaceId)
    } catch (error) {
      log.warn({ err: toMoleculeError(error), taskId: id }, 'a result whose answer was not sent counts as read')
    }
  }
  try {
    // Most repeated reads find nothing, and then nothing is written.
    const [child] = await store.read(() => runStatement<{ workspace_id: string }>(findUnread(read)))
    if (child === undefined) return undefined
    await store.write(() => runStatement(markChildRead(read)), child.workspace_id)
    return () => forget(child.workspace_id)
  } catch (error) {
    log.warn({ err: toMoleculeError(error), taskId: id }, 'a result that was read may be sent to its reader again')
    return undefined
  }
}
