/**
 * The inbox of this process: joins every part of the seam over one store. Its memory (queues, watchers) is only advice:
 * if all of it were lost, the store alone would bring every message to its end.
 */
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { ReadStore, Store } from '../../store/store.ts'
import type { Activity } from '../activity.ts'
import type { Bridges } from '../bridges.ts'
import type { KeepSession, KeepSessionOn } from '../commands/record-outcome.ts'
import { recoverLeases } from '../commands/recover.ts'
import { createDeliveries, markSendingUnknown } from '../deliver/deliveries.ts'
import { createDeliveryHints } from '../deliver/delivery-hints.ts'
import { createPushConfigs, releasePushClaims } from '../deliver/push-configs.ts'
import type { Deliveries, PushConfigs } from '../delivery.ts'
import type { DamagedReplies, DeadLetters, PendingAsks, Rules } from '../owners.ts'
import type { WorkspaceQueues } from '../queues.ts'
import type { Reception } from '../reception.ts'
import { createRules } from '../rules/rules.ts'
import { correctClock } from '../upkeep/clock-correction.ts'
import { createScrub } from '../upkeep/scrub.ts'
import type { Checkpoint, Inbox } from '../worker.ts'
import { createActivity } from './activity.ts'
import { createBridges } from './bridges.ts'
import { createBudgets, type LocalBudgets } from './budgets.ts'
import { type Children, createChildren } from './children.ts'
import type { InboxContext } from './context.ts'
import { createDeadLetters } from './dead-letters.ts'
import { createDelegations } from './delegations.ts'
import { createPendingAsks } from './pending-asks.ts'
import { createReception } from './reception.ts'
import { createSweep } from './sweep.ts'
import { createWatchers } from './watchers.ts'
import { createWorkerInbox } from './worker-inbox.ts'
import { createWorkerQueues } from './worker-queues.ts'
import { createWorkspaceQueues } from './workspace-queues.ts'

export interface LocalInboxOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  /** The id of this data folder: the worker ids of its processes start with `<host>.`. */
  readonly host: string
  /** The original of a copied data folder: in a store of our own its leases are void too. */
  readonly formerHost?: string | undefined
  readonly keepSession: KeepSession
  /** For bridges, whose sessions live on their own machines. */
  readonly keepSessionOn?: KeepSessionOn
  readonly onCheckpoint?: (checkpoint: Checkpoint) => void
}

export interface LocalInbox {
  /** The store for views: a damaged reply that a view meets is noted. */
  readonly store: ReadStore
  readonly inbox: Inbox
  /** The worker side for bridges. */
  readonly bridges: Bridges
  readonly reception: Reception
  readonly deadLetters: DeadLetters
  readonly deliveries: Deliveries
  readonly pendingAsks: PendingAsks
  readonly rules: Rules
  readonly budgets: LocalBudgets
  readonly damagedReplies: DamagedReplies
  readonly pushConfigs: PushConfigs
  readonly queues: WorkspaceQueues
  readonly activity: Activity
  /** Handles delegations whose parent or child has ended; the sweep does the same. */
  readonly children: Children
  /**
   * Voids the leases of an earlier process of this host. Call it before any worker joins; the lock on the data folder
   * must be held. Returns how many turns were lost.
   */
  recover(): Promise<number>
  /** Stops the sweep. Held leases stay as they are: their workers settle or release them. */
  close(): void
}

export function createLocalInbox(options: LocalInboxOptions): LocalInbox {
  const scrub = createScrub({ ...options, changed: (workspaceId) => context.changed(workspaceId) })
  const { store } = scrub
  const [watchers, hints] = [createWatchers(), createDeliveryHints(store)]
  const context: InboxContext = {
    onCheckpoint: () => undefined,
    ...options,
    store,
    workerQueues: createWorkerQueues(),
    watchers,
    held: new Set(),
    waitingLeases: new Set(),
    lookAfterChildren: () => children.lookAfterSoon(),
    changed(workspaceId, taskId, result) {
      if (taskId !== undefined) watchers.changed(taskId, result)
      watchers.changed(workspaceId)
      store.notify([workspaceId])
    },
    deliveriesWritten: hints.written,
  }
  const sweep = createSweep(context, {
    sendDirective: (workerId, directive) => inbox.sendDirective(workerId, directive),
    releaseLease: (key) => inbox.releaseLease(key),
    lookAfterChildren: () => children.lookAfter(),
    lookAfterBudgets: () => budgets.lookAfter(),
    scrub: scrub.slice,
  })
  const inbox = createWorkerInbox({ context, fill: sweep.fill, lookAfter: sweep.lookAfter })
  const { keepSessionOn = () => options.keepSession } = options
  const bridges = createBridges({ context, workerInbox: inbox, fill: sweep.fill, keepSessionOn })
  const children = createChildren(context, {
    report: (letter, ancestry) => reception.admitInTree(letter, ancestry),
    look: sweep.look,
  })
  const budgets = createBudgets(context, sweep.look)
  const delegations = createDelegations(context, inbox)
  const { sendDirective } = inbox
  const reception = createReception(context, { sendDirective, look: sweep.look, delegations, children })
  const pendingAsks = createPendingAsks(context, sendDirective)
  sweep.start()
  const stopListening = store.listen(() => {
    watchers.changedElsewhere()
    sweep.look()
  })
  return {
    store,
    inbox,
    bridges,
    reception,
    deadLetters: createDeadLetters(context, sweep.look),
    deliveries: createDeliveries({ store, changed: context.changed, host: options.host, hints }),
    pendingAsks,
    rules: createRules(context),
    budgets,
    damagedReplies: scrub,
    pushConfigs: createPushConfigs(store, options.host),
    queues: createWorkspaceQueues(context, sweep.look),
    activity: createActivity(context),
    children,
    recover: () => recover(options),
    close() {
      stopListening()
      hints.stop()
      sweep.stop()
    },
  }
}

async function recover({ store, host, formerHost, log }: LocalInboxOptions): Promise<number> {
  const backMs = store.engine === 'sqlite' ? await store.write(correctClock) : 0
  if (backMs > 0) log.warn({ backMs }, 'the clock was set back; the times of waiting messages were moved back with it')
  let lost = 0
  // On a shared database the original of a copy may be alive.
  for (const each of formerHost === undefined || store.engine !== 'sqlite' ? [host] : [host, formerHost]) {
    await store.write(() => markSendingUnknown(each))
    await store.write(() => releasePushClaims(each))
    lost += await store.write(() => recoverLeases(each))
  }
  return lost
}
