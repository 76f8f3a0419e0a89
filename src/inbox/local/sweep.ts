/**
 * The sweep: everything that happens without a caller. It leases ready work to workers, takes over leases that ran out,
 * expires messages, denies asks that timed out, and prunes old rows. Wake-ups make the first fast; the timer makes all
 * certain.
 */
import { denyAsk, findTimedOutAsks } from '../commands/ask.ts'
import { findDirectives } from '../commands/stored-directives.ts'
import { findLapsed, freeLapsed, type LapsedLease, takeLapsed } from '../commands/take-over.ts'
import { LEASE_MS } from '../rows/conversation.ts'
import { expire, findExpired } from '../upkeep/expire.ts'
import { prune, RETENTION } from '../upkeep/retention.ts'
import type { Scrub } from '../upkeep/scrub.ts'
import { markWaitingTime } from '../upkeep/waiting-time.ts'
import type { LocalBudgets } from './budgets.ts'
import type { Children } from './children.ts'
import type { InboxContext } from './context.ts'
import { fillAll, sendClaim, sendDirective } from './directives.ts'
import { createLostLeaseCheck } from './lost-leases.ts'

/** A missed wake-up delays work by this much at most. */
const SWEEP_MS = 5000
const PRUNE_MS = 3600_000
/** Prevents a store that grows without end on a machine that never runs for an hour. */
const FIRST_PRUNE_MS = 10_000

export interface SweepOptions {
  /** Handles delegations whose parent or child has ended. */
  readonly children: Pick<Children, 'lookAfter'>
  /** Handles messages that waited for a budget that was answered. */
  readonly budgets: Pick<LocalBudgets, 'lookAfter'>
  /** Checks the next stored replies. */
  readonly scrub: Pick<Scrub, 'slice'>
}

/** Sweeps from now on, until the timers of the context stop. */
export function startSweep(context: InboxContext, { children, budgets, scrub }: SweepOptions): void {
  const { store, timers } = context
  const releaseLostLeases = createLostLeaseCheck(context)
  const pruneOld = () => prune(store, RETENTION, timers.signal)
  timers.every(SWEEP_MS, async () => {
    await releaseLostLeases()
    if (timers.steadyMs() >= LEASE_MS) await takeOver(context)
    await expireMessages(context)
    await denyTimedOutAsks(context)
    await children.lookAfter()
    await budgets.lookAfter()
    await sendStoredDirectives(context)
    await fillAll(context)
    await scrub.slice()
    await store.upkeep?.()
  })
  timers.later(FIRST_PRUNE_MS, pruneOld)
  timers.every(PRUNE_MS, pruneOld)
}

async function takeOver(context: InboxContext): Promise<void> {
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
      if (claim !== undefined) sendClaim(context, worker, claim)
      else context.deliveryHints.written()
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
    context.deliveryHints.written()
  }
}

async function denyTimedOutAsks(context: InboxContext): Promise<void> {
  const { store } = context
  for (const ask of await store.read(findTimedOutAsks)) {
    const { id, key, worker } = ask
    const denied = await store.write(() => denyAsk(ask), key.workspaceId)
    if (!denied) continue
    context.changed(key.workspaceId, key.taskId)
    sendDirective(context, { worker, directive: { type: 'answer', key, askId: id, parts: undefined } })
  }
}

/** Directives for turns of this process that another process stored. */
async function sendStoredDirectives(context: InboxContext): Promise<void> {
  for (const stored of await context.store.read(findDirectives)) {
    if (context.workerQueues.get(stored.worker) !== undefined) sendDirective(context, stored)
  }
}
