/**
 * The worker's side of the local inbox: lease, extend, append, settle, and waiting. What a worker is handed is
 * committed before it is handed out; a lease whose worker has left meanwhile goes back unharmed.
 */
import { toMoleculeError } from '../../errors.ts'
import type { Transaction } from '../../store/store.ts'
import { ask } from '../ask/ask.ts'
import type { InboxContext, KeepSession } from '../context.ts'
import {
  type Directive,
  type Inbox,
  type LeaseKey,
  type LeaseStanding,
  leaseId,
  type NumberedEvents,
  type Outcome,
  type Worker,
} from '../inbox.ts'
import { append, extend } from '../settle/append.ts'
import { settle } from '../settle/settle.ts'
import type { Claim } from './claim.ts'
import { resume, type SuspendOutput, suspend } from './suspend.ts'
import type { WorkerQueue } from './worker-queues.ts'

export interface WorkerInbox extends Inbox {
  /** A settle whose session token is kept for another host than ours. */
  settleFor(key: LeaseKey, settling: SettleForInput): ReturnType<Inbox['settle']>
  sendDirective(workerId: string, directive: Directive): void
  /** A lease that no worker has begun, or will ever hear of, goes back unharmed. */
  releaseLease(key: LeaseKey): void
}

export interface SettleForInput {
  readonly outcome: Outcome
  readonly unsent: NumberedEvents | undefined
  readonly keepSession: KeepSession
}

/** Gets work for a worker that has just come. */
export type FillQueue = (queue: WorkerQueue) => Promise<void>

export interface WorkerInboxOptions {
  readonly context: InboxContext
  readonly fill: FillQueue
  /** There may be work to hand out at this time. */
  readonly lookAfter: (delayMs: number) => void
}

export function createWorkerInbox({ context, fill, lookAfter }: WorkerInboxOptions): WorkerInbox {
  const { store, workerQueues, held, keepSession } = context
  const accepting = (key: LeaseKey) => (workerId: string) => workerQueues.get(workerId)?.accepts(leaseId(key)) === true
  const letGo = (key: LeaseKey) => {
    held.delete(leaseId(key))
    workerQueues.forget(leaseId(key))
  }
  /** What was taken over is no longer in anybody's hands here, and may never be settled. */
  const noted = (key: LeaseKey, standing: LeaseStanding) => {
    if (standing === 'stale') letGo(key)
    return standing
  }
  const passOn = (next: { worker: string; claim: Claim } | undefined) => {
    if (next === undefined) return
    const { lease } = next.claim
    context.changed(lease.workspaceId, lease.taskId)
    workerInbox.sendDirective(next.worker, { type: 'lease', lease })
  }
  const suspended = async (key: LeaseKey, work: () => Transaction<SuspendOutput>) => {
    const { answer, next } = await store.write(work, key.workspaceId)
    // It waits and takes no room; what its slot went to does.
    if (answer === 'held') workerQueues.forget(leaseId(key))
    context.changed(key.workspaceId, key.taskId)
    passOn(next)
    return answer
  }
  const workerInbox: WorkerInbox = {
    leases: (worker, signal) =>
      takeDirectives(worker, { workerQueues, fill, releaseLease: (key) => workerInbox.releaseLease(key) }, signal),
    extend: (keys) =>
      Promise.all(keys.map(async (key) => noted(key, await store.write(() => extend(key), key.workspaceId)))),
    async append(key, events) {
      const standing = noted(key, await store.write(() => append(key, events), key.workspaceId))
      context.changed(key.workspaceId, key.taskId)
      return standing
    },
    settle: (key, outcome, unsent) => workerInbox.settleFor(key, { outcome, unsent, keepSession }),
    async settleFor(key, settling) {
      const settlement = { key, ...settling, accepts: accepting(key) }
      const { answer, next, result } = await store.write(() => settle(settlement), key.workspaceId)
      letGo(key)
      context.onCheckpoint('settled')
      context.changed(key.workspaceId, key.taskId, result)
      passOn(next)
      if (settling.outcome.type === 'retry') lookAfter(settling.outcome.afterMs)
      return answer
    },
    suspend: (key) => suspended(key, () => suspend(key, accepting(key))),
    resume: (key) => store.write(() => resume(key), key.workspaceId),
    ask: (key, question) => suspended(key, () => ask(key, question, accepting(key))),
    sendDirective(workerId, directive) {
      const queue = workerQueues.get(workerId)
      if (directive.type !== 'lease') return queue?.put(directive)
      // Two that were admitted at once may both have counted on the last place.
      if (queue?.accepts() !== true) return workerInbox.releaseLease(directive.lease)
      held.add(leaseId(directive.lease))
      queue.capacity?.holding.add(leaseId(directive.lease))
      queue.put(directive)
    },
    releaseLease(key) {
      const failed = (error: unknown) => {
        letGo(key)
        context.log.warn({ err: toMoleculeError(error), messageId: key.messageId }, 'a lease could not be given back')
      }
      // Another worker may have room for it.
      workerInbox.settle(key, { type: 'released', interrupted: false }).then(() => lookAfter(0), failed)
    },
  }
  return workerInbox
}

interface Seat {
  readonly workerQueues: InboxContext['workerQueues']
  readonly fill: FillQueue
  readonly releaseLease: (key: LeaseKey) => void
}

async function* takeDirectives(
  worker: Worker,
  { workerQueues, fill, releaseLease }: Seat,
  signal: AbortSignal,
): AsyncIterable<Directive> {
  const queue = workerQueues.open(worker)
  try {
    await fill(queue)
    for (let directive = await queue.take(signal); directive; directive = await queue.take(signal)) yield directive
  } finally {
    workerQueues.close(queue)
    for (const directive of queue.clear()) if (directive.type === 'lease') releaseLease(directive.lease)
  }
}
