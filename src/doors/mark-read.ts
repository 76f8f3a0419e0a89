/** A call that gives a delegated task back to the agent that delegated it, with its result. */
import type { Reception } from '../inbox/inbox.ts'
import type { Task } from '../protocol/a2a.ts'
import type { Identity } from '../workspaces/tokens.ts'

/** Call it before the answer is sent: the turn of the caller may end right after it. Only the token of a turn counts. */
export async function markRead(
  reception: Pick<Reception, 'markRead'>,
  { principal, conversationId }: Pick<Identity, 'principal' | 'conversationId'>,
  task: Task,
): Promise<void> {
  if (conversationId !== undefined) await reception.markRead(task, principal)
}
