/**
 * The sweep: everything that happens without a caller. It leases ready work to workers, takes over leases that ran out,
 * expires messages, denies asks that timed out, and prunes old rows. Wake-ups make the first fast; the timer makes all
 * certain.
 */
import { toMoleculeError } from '../../errors.ts'
import { denyAsk, findTimedOutAsks } from '../commands/ask.ts'
import { CLAIMS_MAX, type Claim, claimReady, findClaimableWorkspaces } from '../commands/claim.ts'
import { findDirectives } from '../commands/directives.ts'
import { findLapsed, freeLapsed, type LapsedLease, takeLapsed } from '../commands/take-over.ts'
import { LEASE_MS } from '../rows/conversation.ts'
import { expire, findExpired } from '../upkeep/expire.ts'
import { prune, RETENTION } from '../upkeep/retention.ts'
import { markWaitingTime } from '../upkeep/waiting-time.ts'
import type { Directive } from '../worker.ts'
import type { InboxContext } from './context.ts'
import { createLostLeaseCheck, type ReleaseLease } from './lost-leases.ts'
import type { WorkerQueue } from './worker-queues.ts'

/** A missed wake-up delays work by this much at most. */
const SWEEP_MS = 5000
const PRUNE_MS = 3600_000
/** Prevents a store that grows without end on a machine that never runs for an hour. */
const FIRST_PRUNE_MS = 10_000
/** Workspaces filled at a time; the next sweep fills the rest. */
const FILL_WORKSPACES_MAX = 50

export interface Sweep {
  /** Leases ready work to the worker, as far as slots allow. */
  fill(queue: WorkerQueue): Promise<void>
  /** Looks for ready work soon. */
  look(): void
  lookAfter(delayMs: number): void
  start(): void
  stop(): void
}

export type SendDirective = (workerId: string, directive: Directive) => void

export interface SweepOptions {
  readonly sendDirective: SendDirective
  readonly releaseLease: ReleaseLease
  /** Handles delegations whose parent or child has ended. */
  readonly lookAfterChildren: () => Promise<void>
  /** Handles messages that waited for a budget that was answered. */
  readonly lookAfterBudgets: () => Promise<void>
  /** Checks the next stored replies. */
  readonly scrub: () => Promise<void>
}

export function createSweep(context: InboxContext, options: SweepOptions): Sweep {
  const { sendDirective } = options
  const { clock, log, workerQueues } = context
  const stopped = new AbortController()
  const timers = new Set<() => void>()
  let steadySinceMs = clock.monotonicMs()
  let looking = false

  const later = (delayMs: number, work: () => Promise<unknown>) => {
    if (stopped.signal.aborted) return
    const cancel = clock.after(delayMs, () => {
      timers.delete(cancel)
      if (stopped.signal.aborted) return
      work().catch((error) => {
        // An outage must not expire every lease at once: takeovers need one unbroken lease time of connection.
        steadySinceMs = clock.monotonicMs()
        log.warn({ err: toMoleculeError(error) }, 'a sweep of the inbox failed; it will be tried again')
      })
    })
    timers.add(cancel)
  }
  const releaseLostLeases = createLostLeaseCheck(context, options.releaseLease)
  const fill = (queue: WorkerQueue) => fillWorkerQueue(context, sendDirective, queue)
  const fillAll = async () => {
    for (const queue of workerQueues.all()) await fill(queue)
  }
  const sweep = async () => {
    await releaseLostLeases()
    if (clock.monotonicMs() - steadySinceMs >= LEASE_MS) await takeOver(context, sendDirective)
    await expireMessages(context)
    await denyTimedOutAsks(context, sendDirective)
    await options.lookAfterChildren()
    await options.lookAfterBudgets()
    await sendStoredDirectives(context, sendDirective)
    await fillAll()
    await options.scrub()
    await context.store.upkeep?.()
  }
  const every = (delayMs: number, work: () => Promise<unknown>) =>
    later(delayMs, () => {
      every(delayMs, work)
      return work()
    })
  return {
    fill,
    look() {
      // Many wake-ups at one moment need one look.
      if (looking) return
      looking = true
      later(0, () => {
        looking = false
        return fillAll()
      })
    },
    lookAfter: (delayMs) => later(delayMs, fillAll),
    start() {
      every(SWEEP_MS, sweep)
      const pruneOld = () => prune(context.store, RETENTION, stopped.signal)
      later(FIRST_PRUNE_MS, pruneOld)
      every(PRUNE_MS, pruneOld)
    },
    stop() {
      stopped.abort()
      for (const cancel of timers) cancel()
    },
  }
}

async function fillWorkerQueue(context: InboxContext, sendDirective: SendDirective, queue: WorkerQueue): Promise<void> {
  const { store, workerQueues } = context
  const { worker } = queue
  const hosted = worker.workspaces === 'hosted'
  const open = hosted ? await store.read(() => findClaimableWorkspaces(FILL_WORKSPACES_MAX)) : worker.workspaces
  for (const workspaceId of open) {
    // An endless loop: a worker that left releases its leases, and they would be claimed for it again.
    for (let wanted = claimLimit(queue); wanted > 0 && workerQueues.get(worker.id) === queue; ) {
      const claimsMax = wanted
      const claims = await store.write(() => claimReady(workspaceId, worker.id, claimsMax), workspaceId)
      for (const claim of claims) announce(context, sendDirective, { claim, worker: worker.id })
      wanted = claims.length < claimsMax ? 0 : claimLimit(queue)
    }
  }
}

const claimLimit = (queue: WorkerQueue): number => Math.min(queue.free(), CLAIMS_MAX)

function announce(
  context: InboxContext,
  sendDirective: SendDirective,
  { claim, worker }: { claim: Claim; worker: string },
): void {
  const { lease } = claim
  context.changed(lease.workspaceId, lease.taskId)
  sendDirective(worker, { type: 'lease', lease })
}

async function takeOver(context: InboxContext, sendDirective: SendDirective): Promise<void> {
  const { store, workerQueues, log } = context
  const named = [...workerQueues.all()].flatMap(({ worker }) =>
    worker.workspaces === 'hosted' ? [] : worker.workspaces,
  )
  for (const lapsed of await store.read(() => findLapsed(named))) {
    // A worker of this process is alive, however late its renewal is.
    if (workerQueues.get(lapsed.worker) !== undefined) continue
    const worker = workerFor(context, lapsed)
    if (lapsed.stopping) await store.write(() => freeLapsed(lapsed), lapsed.workspaceId)
    else if (worker !== undefined) {
      const claim = await store.write(() => takeLapsed(lapsed, worker), lapsed.workspaceId)
      log.warn({ worker: lapsed.worker, conversationId: lapsed.conversationId }, 'a silent worker lost its lease')
      if (claim !== undefined) announce(context, sendDirective, { claim, worker })
      else context.deliveriesWritten()
    }
  }
}

function workerFor({ workerQueues }: InboxContext, { workspaceId, hosted }: LapsedLease): string | undefined {
  const ready = workerQueues.ready(workspaceId)
  return hosted ? ready.hosted : ready.named
}

async function expireMessages(context: InboxContext): Promise<void> {
  const { store } = context
  if (!(await markWaitingTime(store))) return
  for (const message of await store.read(findExpired)) {
    const expired = await store.write(() => expire(message), message.workspaceId)
    if (!expired) continue
    context.changed(message.workspaceId, message.taskId)
    context.deliveriesWritten()
  }
}

async function denyTimedOutAsks(context: InboxContext, sendDirective: SendDirective): Promise<void> {
  const { store } = context
  for (const ask of await store.read(findTimedOutAsks)) {
    const { id, key, worker } = ask
    const denied = await store.write(() => denyAsk(ask), key.workspaceId)
    if (!denied) continue
    context.changed(key.workspaceId, key.taskId)
    sendDirective(worker, { type: 'answer', key, askId: id, parts: undefined })
  }
}

/** Directives for turns of this process that another process stored. */
async function sendStoredDirectives(
  { store, workerQueues }: InboxContext,
  sendDirective: SendDirective,
): Promise<void> {
  for (const { worker, directive } of await store.read(findDirectives)) {
    if (workerQueues.get(worker) !== undefined) sendDirective(worker, directive)
  }
}
