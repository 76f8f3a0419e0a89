/**
 * The sweep: everything that must happen though nobody asks. Ready work is handed out, leases that ran out are taken
 * over, messages expire, questions are denied, old rows go. Wake-ups make the first quick; the timer makes all sure.
 */
import { toMoleculeError } from '../../errors.ts'
import { denyAsk, findTimedOutAsks } from '../ask/ask.ts'
import type { InboxContext } from '../context.ts'
import type { Directive } from '../inbox.ts'
import { CLAIMS_MAX, type Claim, claimReady, findClaimableWorkspaces, LEASE_MS } from '../lease/claim.ts'
import { findDirectives } from '../lease/directives.ts'
import { createLostLeaseCheck, type ReleaseLease } from '../lease/lost-leases.ts'
import { findLapsed, freeLapsed, type LapsedLease, takeLapsed } from '../lease/takeover.ts'
import type { WorkerQueue } from '../lease/worker-queues.ts'
import { expire, findExpired } from './expire.ts'
import { prune, RETENTION } from './retention.ts'

/** How late a missed wake-up can be. */
const SWEEP_MS = 5000
const PRUNE_MS = 3600_000
/** Workspaces served by one look for ready work; the next look serves the rest. */
const FILL_WORKSPACES_MAX = 50

export interface Sweep {
  /** Leases all that is ready to the worker, as far as slots allow. */
  fill(queue: WorkerQueue): Promise<void>
  /** Looks for ready work soon. */
  look(): void
  lookAfter(delayMs: number): void
  start(): void
  stop(): void
}

export type SendDirective = (workerId: string, directive: Directive) => void

export function createSweep(
  context: InboxContext,
  sendDirective: () => SendDirective,
  releaseLease: ReleaseLease,
): Sweep {
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
        // Others' leases are taken over only after one unbroken lease time: an outage must not expire everything.
        steadySinceMs = clock.monotonicMs()
        log.warn({ err: toMoleculeError(error) }, 'looking after the inbox failed; trying again')
      })
    })
    timers.add(cancel)
  }
  const releaseLostLeases = createLostLeaseCheck(context, releaseLease)
  const fill = (queue: WorkerQueue) => fillWorkerQueue(context, sendDirective(), queue)
  const fillAll = async () => {
    for (const queue of workerQueues.all()) await fill(queue)
  }
  const sweep = async () => {
    await releaseLostLeases()
    if (clock.monotonicMs() - steadySinceMs >= LEASE_MS) await takeOver(context, sendDirective())
    await tidy(context, sendDirective())
    await fillAll()
  }
  const every = (delayMs: number, work: () => Promise<unknown>) =>
    later(delayMs, () => {
      every(delayMs, work)
      return work()
    })
  return {
    fill,
    look() {
      // Many wake-ups in one moment are one look.
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
      every(PRUNE_MS, () => prune(context.store, RETENTION, stopped.signal))
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
    // A worker that left meanwhile gives back what it is handed, and would be handed it again without end.
    for (let wanted = claimLimit(queue); wanted > 0 && workerQueues.get(worker.id) === queue; ) {
      const most = wanted
      const claims = await store.write(() => claimReady(workspaceId, worker.id, most), workspaceId)
      for (const claim of claims) announce(context, sendDirective, { claim, worker: worker.id })
      wanted = claims.length < most ? 0 : claimLimit(queue)
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
    // A worker of this process is alive, however late its renewal: nobody takes over from himself.
    if (workerQueues.get(lapsed.worker) !== undefined) continue
    const worker = workerFor(context, lapsed)
    if (lapsed.stopping) await store.write(() => freeLapsed(lapsed), lapsed.workspaceId)
    else if (worker !== undefined) {
      const claim = await store.write(() => takeLapsed(lapsed, worker), lapsed.workspaceId)
      log.warn({ worker: lapsed.worker, conversationId: lapsed.conversationId }, 'a silent worker lost its lease')
      if (claim !== undefined) announce(context, sendDirective, { claim, worker })
    }
  }
}

function workerFor({ workerQueues }: InboxContext, { workspaceId, hosted }: LapsedLease): string | undefined {
  const ready = workerQueues.ready(workspaceId)
  return hosted ? ready.hosted : ready.named
}

/** Expired messages, unanswered questions, and what was said to turns of this process in another one. */
async function tidy(context: InboxContext, sendDirective: SendDirective): Promise<void> {
  const { store, workerQueues } = context
  for (const expired of await store.read(findExpired)) {
    const gone = await store.write(() => expire(expired), expired.workspaceId)
    if (gone) context.changed(expired.workspaceId, expired.taskId)
  }
  for (const asked of await store.read(findTimedOutAsks)) {
    const denied = await store.write(() => denyAsk(asked), asked.key.workspaceId)
    if (!denied) continue
    context.changed(asked.key.workspaceId, asked.key.taskId)
    sendDirective(asked.worker, { type: 'answer', key: asked.key, askId: asked.id, parts: undefined })
  }
  for (const { worker, directive } of await store.read(findDirectives)) {
    if (workerQueues.get(worker) !== undefined) sendDirective(worker, directive)
  }
}
