/**
 * How work reaches the workers of this process: directives go into their queues, a free worker gets the next ready lease, and
 * a lease that no worker takes is released. Invariant: a lease is committed before a worker receives it.
 */
import { toMoleculeError } from '../../errors.ts'
import { CLAIMS_MAX, type Claim, claimReady, findClaimableWorkspaces, type NextClaim } from '../commands/claim.ts'
import { maskSettle } from '../commands/mask-turn.ts'
import type { SettleInput } from '../commands/record-outcome.ts'
import { type SettleOutput, settle } from '../commands/settle.ts'
import type { WorkerDirective } from '../commands/stored-directives.ts'
import { type Inbox, type LeaseKey, leaseId } from '../worker.ts'
import { delegationEnded, type InboxContext } from './context.ts'
import type { WorkerQueue } from './worker-queues.ts'

/** Workspaces filled at a time; the next sweep fills the rest. */
const FILL_WORKSPACES_MAX = 50

export function sendDirective(context: InboxContext, { worker, directive }: WorkerDirective): void {
  const queue = context.workerQueues.get(worker)
  if (directive.type !== 'lease') {
    queue?.put(directive)
    return
  }
  // Two admissions at the same moment may both have counted on the last free place.
  if (queue?.accepts() !== true) {
    releaseLease(context, directive.lease)
    return
  }
  context.held.add(leaseId(directive.lease))
  queue.capacity?.holding.add(leaseId(directive.lease))
  queue.put(directive)
}

/** A committed claim goes to its worker. */
export function sendClaim(context: InboxContext, worker: string, { lease }: Claim): void {
  context.changed(lease.workspaceId, lease.taskId)
  sendDirective(context, { worker, directive: { type: 'lease', lease } })
}

/** The claim that got the slot of a turn that ended or waits, if any. */
export function sendNext(context: InboxContext, next: NextClaim | undefined): void {
  if (next !== undefined) sendClaim(context, next.worker, next.claim)
}

/** Its worker has no more to do with the lease. */
export function letGo({ held, workerQueues }: InboxContext, key: LeaseKey): void {
  held.delete(leaseId(key))
  workerQueues.forget(leaseId(key))
}

/** Whether a worker takes more work once this lease has ended. */
export const accepting =
  ({ workerQueues }: InboxContext, key: LeaseKey) =>
  (workerId: string): boolean =>
    workerQueues.get(workerId)?.accepts(leaseId(key)) === true

/** A settle whose session token may be valid on another host. */
export async function settleTurn(
  context: InboxContext,
  key: LeaseKey,
  input: Omit<SettleInput, 'key' | 'accepts'>,
): ReturnType<Inbox['settle']> {
  const settlement = { key, ...maskSettle(input), accepts: accepting(context, key) }
  const settled = await context.store.write(() => settle(settlement), key.workspaceId)
  letGo(context, key)
  tellSettled(context, key, settled)
  sendNext(context, settled.next)
  if (input.outcome.type === 'retry') lookForWork(context, input.outcome.afterMs)
  return settled.answer
}

/** After the commit of a settle: readers, doors that push, and the relatives of a delegation hear of it. */
function tellSettled(
  context: InboxContext,
  { workspaceId, taskId }: LeaseKey,
  { result, delivers, endsDelegation }: SettleOutput,
): void {
  context.onCheckpoint('settled')
  context.changed(workspaceId, taskId, result)
  if (delivers === true) context.deliveryHints.written()
  if (endsDelegation === true) delegationEnded(context)
}

/** Gives back a lease that no worker began or knows of; it costs the message nothing. */
export function releaseLease(context: InboxContext, key: LeaseKey): void {
  const { keepSession, log } = context
  const outcome = { type: 'released', interrupted: false } as const
  settleTurn(context, key, { outcome, unsent: undefined, keepSession }).then(
    // Another worker may have a free place for it.
    () => lookForWork(context, 0),
    (error: unknown) => {
      letGo(context, key)
      log.warn({ err: toMoleculeError(error), messageId: key.messageId }, 'a lease could not be released')
    },
  )
}

/** Looks for ready work at once, or after this time. Wake-ups at one moment need one look. */
export function lookForWork(context: InboxContext, delayMs?: number): void {
  const { timers } = context
  if (delayMs === undefined) timers.soon(() => fillAll(context))
  else timers.later(delayMs, () => fillAll(context))
}

export async function fillAll(context: InboxContext): Promise<void> {
  for (const queue of context.workerQueues.all()) await fillQueue(context, queue)
}

/** Leases ready work to the worker, as far as slots allow. */
export async function fillQueue(context: InboxContext, queue: WorkerQueue): Promise<void> {
  const { store, workerQueues } = context
  const { worker } = queue
  const hosted = worker.workspaces === 'hosted'
  const open = hosted ? await store.read(() => findClaimableWorkspaces(FILL_WORKSPACES_MAX)) : worker.workspaces
  for (const workspaceId of open) {
    // An endless loop: a worker that left releases its leases, and they would be claimed for it again.
    for (let wanted = claimLimit(queue); wanted > 0 && workerQueues.get(worker.id) === queue; ) {
      const claimsMax = wanted
      const claims = await store.write(() => claimReady(workspaceId, worker.id, claimsMax), workspaceId)
      for (const claim of claims) sendClaim(context, worker.id, claim)
      wanted = claims.length < claimsMax ? 0 : claimLimit(queue)
    }
  }
}

const claimLimit = (queue: WorkerQueue): number => Math.min(queue.free(), CLAIMS_MAX)
