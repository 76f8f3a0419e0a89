/**
 * Remembers that the turn that delegated a task has read its result. A read belongs to the attempt: it counts when that
 * turn is done, and then the result is not sent to its conversation (`children.ts`). A turn that is lost, fails or is
 * released takes its reads with it. A task that asks its sender has a result too: the question.
 */
import { toMoleculeError } from '../../errors.ts'
import { isFinal, isInterrupted, type Task } from '../../protocol/a2a.ts'
import { runStatement } from '../../store/store.ts'
import type { ResultReader, SentAnswer } from '../reception.ts'
import { findUnread, markRead as markChildRead, markUnread } from '../rows/message-updates.ts'
import type { InboxContext } from './context.ts'

/** A failure only sends the result again, so the read itself goes on. */
export async function markRead(
  context: InboxContext,
  task: Task,
  { reader, answer }: { readonly reader: ResultReader; readonly answer?: SentAnswer | undefined },
): Promise<void> {
  const { store, log } = context
  const { id, status } = task
  if (reader.conversationId === undefined || !(isFinal(status.state) || isInterrupted(status.state))) return
  const read = { taskId: id, reader: reader.principal, state: status.state }
  try {
    // Most repeated reads find nothing, and then nothing is written.
    const [child] = await store.read(() => runStatement<{ workspace_id: string }>(findUnread(read)))
    if (child === undefined) return
    await store.write(() => runStatement(markChildRead(read)), child.workspace_id)
    if (answer !== undefined) forgetUnsent(context, { read, workspaceId: child.workspace_id }, answer)
  } catch (error) {
    log.warn({ err: toMoleculeError(error), taskId: id }, 'a result that was read may be sent to its reader again')
  }
}

/** A result whose answer never left, because the caller disconnected, is unread again while its turn runs. */
function forgetUnsent(
  { store, log }: InboxContext,
  { read, workspaceId }: { readonly read: Parameters<typeof markUnread>[0]; readonly workspaceId: string },
  answer: SentAnswer,
): void {
  const forget = async () => {
    if (answer.writableFinished !== false) return
    try {
      await store.write(() => runStatement(markUnread(read)), workspaceId)
    } catch (error) {
      const fields = { err: toMoleculeError(error), taskId: read.taskId }
      log.warn(fields, 'a result whose answer was not sent counts as read')
    }
  }
  if (answer.destroyed === true) void forget()
  else answer.once('close', () => void forget())
}
