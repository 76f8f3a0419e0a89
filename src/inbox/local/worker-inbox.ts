/**
 * The worker side of the local inbox: `Inbox` for workers of this process, and what bridges and the sweep need besides.
 * Invariant: a lease is committed before a worker receives it, and a lease that its worker never takes is released.
 */
import { toMoleculeError } from '../../errors.ts'
import type { Transaction } from '../../store/store.ts'
import { append, begin, extend } from '../commands/append.ts'
import { type AskOutput, ask } from '../commands/ask.ts'
import type { NextClaim } from '../commands/claim.ts'
import { maskAsk, maskEvents, maskSettle } from '../commands/mask-turn.ts'
import type { SettleInput } from '../commands/record-outcome.ts'
import { type SettleOutput, settle } from '../commands/settle.ts'
import { resume, suspend } from '../commands/suspend.ts'
import {
  type Directive,
  type Inbox,
  type LeaseKey,
  type LeaseStanding,
  leaseId,
  type RenewedStanding,
  type Worker,
} from '../worker.ts'
import type { InboxContext } from './context.ts'
import type { WorkerQueue } from './worker-queues.ts'

export interface WorkerInbox extends Inbox {
  /** A settle whose session token may be valid on another host. */
  settleFor(key: LeaseKey, input: Omit<SettleInput, 'key' | 'accepts'>): ReturnType<Inbox['settle']>
  sendDirective(workerId: string, directive: Directive): void
  /** Gives back a lease that no worker began or knows of; it costs the message nothing. */
  releaseLease(key: LeaseKey): void
}

/** Claims ready work for a worker that has just connected. */
export type FillQueue = (queue: WorkerQueue) => Promise<void>

export interface WorkerInboxOptions {
  readonly context: InboxContext
  readonly fill: FillQueue
  /** Looks for ready work after this time. */
  readonly lookAfter: (delayMs: number) => void
}

export function createWorkerInbox({ context, fill, lookAfter }: WorkerInboxOptions): WorkerInbox {
  const { store, workerQueues, held, keepSession } = context
  const accepting = (key: LeaseKey) => (workerId: string) => workerQueues.get(workerId)?.accepts(leaseId(key)) === true
  const letGo = (key: LeaseKey) => {
    held.delete(leaseId(key))
    workerQueues.forget(leaseId(key))
  }
  /** A stale lease is no longer held here, and its worker may never settle it. */
  const letGoIfStale = <S extends RenewedStanding>(key: LeaseKey, standing: S): S => {
    if (standing === 'stale') letGo(key)
    return standing
  }
  const report = async (key: LeaseKey, transaction: () => Transaction<LeaseStanding>) => {
    const standing = letGoIfStale(key, await store.write(transaction, key.workspaceId))
    context.changed(key.workspaceId, key.taskId)
    return standing
  }
  const sendNext = ({ worker, claim: { lease } }: NextClaim) => {
    context.changed(lease.workspaceId, lease.taskId)
    workerInbox.sendDirective(worker, { type: 'lease', lease })
  }
  const suspendTurn = async (key: LeaseKey, transaction: () => Transaction<AskOutput>) => {
    const { answer, next, answered } = await store.write(transaction, key.workspaceId)
    // A waiting turn takes none of its worker's capacity; the lease that got its slot does.
    if (answer === 'held' && answered === undefined) workerQueues.forget(leaseId(key))
    context.changed(key.workspaceId, key.taskId)
    if (next !== undefined) sendNext(next)
    if (answered !== undefined) workerInbox.sendDirective(answered.worker, answered.directive)
    return answer
  }
  const workerInbox: WorkerInbox = {
    leases: (worker, signal) =>
      takeDirectives(worker, { workerQueues, fill, releaseLease: (key) => workerInbox.releaseLease(key) }, signal),
    begin: (key, text) => report(key, () => begin(key, text)),
    extend: (keys) =>
      Promise.all(keys.map(async (key) => letGoIfStale(key, await store.write(() => extend(key), key.workspaceId)))),
    append: (key, events) => report(key, () => append(key, maskEvents(events))),
    settle: (key, outcome, unsent) => workerInbox.settleFor(key, { outcome, unsent, keepSession }),
    async settleFor(key, input) {
      const settlement = { key, ...maskSettle(input), accepts: accepting(key) }
      const settled = await store.write(() => settle(settlement), key.workspaceId)
      letGo(key)
      tellSettled(context, key, settled)
      if (settled.next !== undefined) sendNext(settled.next)
      if (input.outcome.type === 'retry') lookAfter(input.outcome.afterMs)
      return settled.answer
    },
    suspend: (key) => suspendTurn(key, () => suspend(key, accepting(key))),
    resume: (key) => store.write(() => resume(key), key.workspaceId),
    ask: (key, question) => suspendTurn(key, () => ask(key, maskAsk(question), accepting(key))),
    sendDirective(workerId, directive) {
      const queue = workerQueues.get(workerId)
      if (directive.type !== 'lease') return queue?.put(directive)
      // Two admissions at the same moment may both have counted on the last free place.
      if (queue?.accepts() !== true) return workerInbox.releaseLease(directive.lease)
      held.add(leaseId(directive.lease))
      queue.capacity?.holding.add(leaseId(directive.lease))
      queue.put(directive)
    },
    releaseLease(key) {
      const failed = (error: unknown) => {
        letGo(key)
        context.log.warn({ err: toMoleculeError(error), messageId: key.messageId }, 'a lease could not be released')
      }
      // Another worker may have a free place for it.
      workerInbox.settle(key, { type: 'released', interrupted: false }).then(() => lookAfter(0), failed)
    },
  }
  return workerInbox
}

/** After the commit of a settle: readers, doors that push, and the relatives of a delegation hear of it. */
function tellSettled(
  context: InboxContext,
  { workspaceId, taskId }: LeaseKey,
  { result, delivers, endsDelegation }: SettleOutput,
): void {
  context.onCheckpoint('settled')
  context.changed(workspaceId, taskId, result)
  if (delivers === true) context.deliveriesWritten()
  if (endsDelegation === true) context.lookAfterChildren()
}

async function* takeDirectives(
  worker: Worker,
  options: Pick<InboxContext, 'workerQueues'> & Pick<WorkerInbox, 'releaseLease'> & { readonly fill: FillQueue },
  signal: AbortSignal,
): AsyncIterable<Directive> {
  const { workerQueues, fill, releaseLease } = options
  const queue = workerQueues.open(worker)
  try {
    await fill(queue)
    for (let directive = await queue.take(signal); directive; directive = await queue.take(signal)) yield directive
  } finally {
    workerQueues.close(queue)
    for (const directive of queue.clear()) if (directive.type === 'lease') releaseLease(directive.lease)
  }
}
