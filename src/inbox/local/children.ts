/**
 * Looks after the children of delegations. A child whose parent was cancelled or failed for good is cancelled, with its
 * processes, and so on down the tree. When the turn of the parent is done, each child that has ended, and whose result
 * that turn did not read (`mark-read.ts`), is reported: its result becomes a message in the parent's conversation, once.
 * It does not matter which of the two ends first. Everything is found by reading the store, so a crash loses nothing: the
 * next sweep finds it again.
 */
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { runStatement } from '../../store/store.ts'
import { cancel } from '../commands/cancel.ts'
import { type EndedRow, findEnded, findOrphans } from '../delegate/open-children.ts'
import { readResult } from '../delegate/result-letter.ts'
import { closeChild } from '../rows/message-updates.ts'
import { admitLetter, announce, forward } from './admissions.ts'
import type { InboxContext } from './context.ts'
import { lookForWork } from './directives.ts'

/** Passes in one run. A cancel goes down one level of the tree in each. */
const PASSES_MAX = 20

export interface Children {
  /** Resolves when all that was found is handled. Calls at the same moment share one run. */
  lookAfter(): Promise<void>
  /** The same without an answer. A failure is logged, and the next sweep tries again. */
  lookAfterSoon(): void
}

export function createChildren(context: InboxContext): Children {
  const run = async () => {
    for (let pass = 0; pass < PASSES_MAX; pass++) {
      const canceled = await cancelOrphans(context)
      const closed = await closeEnded(context)
      if (canceled > 0) lookForWork(context)
      if (canceled + closed === 0) return
    }
  }
  let running: Promise<void> | undefined
  let again: Promise<void> | undefined
  const children: Children = {
    lookAfterSoon() {
      children.lookAfter().catch((error) => {
        context.log.warn({ err: toMoleculeError(error) }, 'delegations could not be looked after; trying again')
      })
    },
    lookAfter() {
      if (running === undefined) {
        running = run().finally(() => {
          running = undefined
        })
        return running
      }
      // A child may have ended after the current run read the store.
      again ??= running
        .catch(() => undefined)
        .then(() => {
          again = undefined
          return children.lookAfter()
        })
      return again
    },
  }
  context.onDelegationEnd.add(children.lookAfterSoon)
  return children
}

const ORPHANED = { parts: [{ text: 'the task that delegated it was cancelled or has failed' }], code: 'canceled' }

/** Returns how many tasks were cancelled. */
async function cancelOrphans({ store, workerQueues, changed, log }: InboxContext): Promise<number> {
  let canceled = 0
  for (const { task_id: taskId, workspace_id: workspaceId } of await store.read(findOrphans)) {
    try {
      const { running } = await store.write(() => cancel(taskId, {}, ORPHANED), workspaceId)
      changed(workspaceId, taskId)
      if (running !== undefined) workerQueues.stop(running)
      canceled += 1
    } catch (thrown) {
      const error = toMoleculeError(thrown)
      // It ended in the meantime.
      if (error.code === 'not_cancelable' || error.code === 'not_found') continue
      log.warn({ err: error, taskId }, 'a delegated task could not be cancelled; it will be tried again')
    }
  }
  return canceled
}

/** Returns how many ends were handled. */
async function closeEnded(context: InboxContext): Promise<number> {
  const { store, log } = context
  let closed = 0
  for (const child of await store.read(findEnded)) {
    try {
      if (child.due === 1) await reportResult(context, child)
      // Closed after the report: a crash between the two repeats the report, which the key of its message makes one.
      await store.write(() => runStatement(closeChild(child.id)), child.workspace_id)
      closed += 1
    } catch (thrown) {
      const err = toMoleculeError(thrown)
      log.warn({ err, messageId: child.id }, 'the result of a delegation could not be reported; it will be tried again')
    }
  }
  return closed
}

/** Admits the result of the child to the conversation of its parent. */
async function reportResult(context: InboxContext, { id }: EndedRow): Promise<void> {
  const result = await context.store.read(() => readResult(id))
  if (result === undefined) return
  try {
    const admission = await admitLetter(context, result.letter, result.ancestry)
    announce(context, result.letter, admission)
    forward(context, admission)
  } catch (thrown) {
    // The workspace of the parent is deleted: no conversation waits for the result.
    if (!(thrown instanceof MoleculeError) || thrown.code !== 'not_found') throw thrown
  }
}
