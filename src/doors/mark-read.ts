/** A call that gives a delegated task back to the agent that delegated it, with its result. */
import type { Reception } from '../inbox/reception.ts'
import type { Task } from '../protocol/a2a.ts'
import type { Identity } from '../workspaces/tokens.ts'
import type { ClosingResponse } from './a2a-calls.ts'

/**
 * Call it before the answer is sent: the turn of the caller may end right after it. Only the token of a turn counts. A
 * result whose answer never left, because the caller disconnected, is unread again.
 */
export async function markRead(
  reception: Pick<Reception, 'markRead'>,
  { identity, response }: { readonly identity: Reader; readonly response?: ClosingResponse },
  task: Task,
): Promise<void> {
  const { principal, conversationId } = identity
  if (conversationId === undefined) return
  const forget = await reception.markRead(task, principal)
  if (forget === undefined || response === undefined) return
  const forgetUnsent = () => void (response.writableFinished === false && forget())
  if (response.destroyed === true) forgetUnsent()
  else response.once('close', forgetUnsent)
}

type Reader = Pick<Identity, 'principal' | 'conversationId'>
