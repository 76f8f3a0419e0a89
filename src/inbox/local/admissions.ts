/**
 * The way of a letter through this process: it is prepared, admitted in one transaction, announced to readers, and forwarded
 * to the worker that the transaction has leased it to. Listen for its end between the announcement and the forwarding.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Admission, admit, isLargeLetter, prepareLargeLetter, prepareLetter } from '../commands/admit.ts'
import type { PreparedLetter } from '../commands/letter-rows.ts'
import type { Ancestry } from '../delegate/ancestry.ts'
import type { Letter } from '../reception.ts'
import type { InboxContext } from './context.ts'
import { sendDirective } from './directives.ts'

/** With an ancestry, the message takes a place in a tree of delegations. */
export function admitLetter(context: InboxContext, letter: Letter, ancestry?: Ancestry): Promise<Admission> {
  if (isLargeLetter(letter)) return admitLargeLetter(context, letter, ancestry)
  return write(context, prepareLetter(letter, ancestry))
}

async function admitLargeLetter(context: InboxContext, letter: Letter, ancestry?: Ancestry): Promise<Admission> {
  const admission = await write(context, await prepareLargeLetter(letter, ancestry))
  // The commit took long, and the turn that now begins works on the same large text.
  await nextTurn()
  return admission
}

function write({ store, workerQueues }: InboxContext, prepared: PreparedLetter): Promise<Admission> {
  const { workspaceId } = prepared.letter
  const ready = workerQueues.ready(workspaceId)
  return store.write(() => admit(prepared, ready), workspaceId)
}

export function announce(context: InboxContext, { workspaceId }: Letter, { admitted }: Admission): void {
  context.onCheckpoint('admitted')
  if (!admitted.duplicate) context.changed(workspaceId, admitted.taskId)
}

export function forward(context: InboxContext, { toWorker }: Admission): void {
  if (toWorker !== undefined) sendDirective(context, toWorker)
}
