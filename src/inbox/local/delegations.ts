/**
 * Delegations of running turns. The delegations of one tree are admitted one after another in this process: its limits
 * are read before the write, and many at the same moment would all find room. A turn that waits for its child gives up
 * its slot; otherwise agents of one slot each that wait for one another would deadlock.
 */

import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { createKeyedQueue } from '../../wait.ts'
import type { Admission } from '../commands/admit.ts'
import { findParent, toChild, toOrphan } from '../delegate/ancestry.ts'
import { recordDelegation } from '../delegate/record-delegation.ts'
import type { DelegatingConversation, Letter } from '../reception.ts'
import { type Inbox, type LeaseKey, leaseId } from '../worker.ts'
import { admitLetter } from './admissions.ts'
import type { InboxContext } from './context.ts'

/** A turn may wait again after this time, when too many turns of its workspace wait now. */
const WAIT_RETRY_AFTER_MS = 5000

export interface Delegations {
  /** Admits the letter as a child of the turn that sends it. */
  admit(letter: Letter, parent: DelegatingConversation): Promise<Admission>
  /** The turn of that conversation gives up its slot until the work has ended. Throws `queue_full` if too many wait. */
  whileWaiting<T>(parent: DelegatingConversation, work: () => Promise<T>): Promise<T>
}

export function createDelegations(context: InboxContext, inbox: Pick<Inbox, 'suspend' | 'resume'>): Delegations {
  const { store } = context
  const oneAtATime = createKeyedQueue()
  const suspended = createSuspendedTurns(context, inbox)
  return {
    async admit(letter, sender) {
      const found = await findParent(store, sender)
      if (found === undefined) {
        const orphan = toOrphan(letter, sender)
        return admitLetter(context, orphan.letter, orphan.ancestry)
      }
      return oneAtATime(found.rootId, async () => {
        const child = await toChild(store, letter, found)
        const admission = await admitLetter(context, child.letter, child.ancestry)
        if (!admission.admitted.duplicate) await logDelegation(context, found.key, { letter, admission })
        return admission
      })
    },
    async whileWaiting(sender, work) {
      const found = await findParent(store, sender)
      if (found?.isRunning !== true) return work()
      const { key, worker } = found
      await suspended.enter(key)
      sendWaiting(context, { key, worker, waiting: true })
      try {
        return await work()
      } finally {
        await suspended.leave(key)
        sendWaiting(context, { key, worker, waiting: false })
      }
    },
  }
}

interface WaitingTurn {
  readonly key: LeaseKey
  readonly worker: string | null
  readonly waiting: boolean
}

/** Pauses the clocks of the turn, or lets them run. A worker that misses it learns it with its next renewal. */
function sendWaiting({ workerQueues, waitingLeases }: InboxContext, { key, worker, waiting }: WaitingTurn): void {
  // A newer wait of the same turn has begun, or the last one has ended.
  if (worker === null || waitingLeases.has(leaseId(key)) !== waiting) return
  workerQueues.get(worker)?.put({ type: 'waiting', key, waiting })
}

/**
 * Shows the delegation in the activity and the story of its parent, and notes on the parent that it has children. A
 * failure loses only the report: the sweep finds the children of a parent without the note.
 */
async function logDelegation(
  { store, log, changed }: InboxContext,
  parent: LeaseKey,
  { letter, admission }: { readonly letter: Letter; readonly admission: Admission },
): Promise<void> {
  const { workspaceId } = parent
  const child = admission.admitted.taskId
  try {
    await store.write(() => recordDelegation(parent, { taskId: child, workspaceId: letter.workspaceId }), workspaceId)
    changed(workspaceId, parent.taskId)
  } catch (error) {
    log.warn({ err: toMoleculeError(error), taskId: child }, 'a delegation is missing in the activity of its parent')
  }
}

/** One turn may wait for several children at a time: the first wait suspends it, and the end of the last resumes it. */
function createSuspendedTurns({ log, waitingLeases }: InboxContext, inbox: Pick<Inbox, 'suspend' | 'resume'>) {
  const waits = new Map<string, { count: number; readonly standing: ReturnType<Inbox['suspend']> }>()
  const leave = async (key: LeaseKey) => {
    const id = leaseId(key)
    const wait = waits.get(id)
    if (wait === undefined) return
    wait.count -= 1
    if (wait.count > 0) return
    waits.delete(id)
    waitingLeases.delete(id)
    // A turn that stays suspended settles like any other: it only has no slot.
    await inbox.resume(key).catch((error) => {
      log.warn({ err: toMoleculeError(error), messageId: key.messageId }, 'a waiting turn could not take its slot back')
    })
  }
  return {
    async enter(key: LeaseKey): Promise<void> {
      const id = leaseId(key)
      const wait = waits.get(id) ?? { count: 0, standing: inbox.suspend(key) }
      wait.count += 1
      waits.set(id, wait)
      waitingLeases.add(id)
      let standing: Awaited<typeof wait.standing>
      try {
        standing = await wait.standing
      } catch (error) {
        await leave(key)
        throw error
      }
      if (standing !== 'refused') return
      await leave(key)
      const message = 'too many turns of this workspace wait already; delegate without waiting, or later'
      throw new MoleculeError('queue_full', message, {
        retryable: true,
        details: { retryAfterMs: WAIT_RETRY_AFTER_MS },
      })
    },
    leave,
  }
}
