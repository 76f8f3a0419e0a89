/**
 * The inbox of this process: joins every part of the seam over one store. Its memory (queues, watchers) is only advice:
 * if all of it were lost, the store alone would bring every message to its end.
 */
import type { ReadStore } from '../../store/store.ts'
import type { Activity } from '../activity.ts'
import type { Bridges } from '../bridges.ts'
import type { KeepSessionOn } from '../commands/record-outcome.ts'
import { recoverLeases } from '../commands/recover.ts'
import { createDeliveries, markSendingUnknown } from '../deliver/deliveries.ts'
import { createPushConfigs, releasePushClaims } from '../deliver/push-configs.ts'
import type { Deliveries, PushConfigs } from '../delivery.ts'
import type { DamagedReplies, DeadLetters, PendingAsks, Rules } from '../owners.ts'
import type { WorkspaceQueues } from '../queues.ts'
import type { Reception } from '../reception.ts'
import { createRules } from '../rules/rules.ts'
import { correctClock } from '../upkeep/clock-correction.ts'
import { createScrub, noteDamage } from '../upkeep/scrub.ts'
import type { Inbox } from '../worker.ts'
import { createActivity } from './activity.ts'
import { createBridges } from './bridges.ts'
import { createBudgets, type LocalBudgets } from './budgets.ts'
import { type Children, createChildren } from './children.ts'
import { type ContextOptions, createContext } from './context.ts'
import { createDeadLetters } from './dead-letters.ts'
import { createDelegations } from './delegations.ts'
import { lookForWork } from './directives.ts'
import { createPendingAsks } from './pending-asks.ts'
import { createReception } from './reception.ts'
import { startSweep } from './sweep.ts'
import { createWorkerInbox } from './worker-inbox.ts'
import { createWorkspaceQueues } from './workspace-queues.ts'

export interface LocalInboxOptions extends ContextOptions {
  /** The id of this data folder: the worker ids of its processes start with `<host>.`. */
  readonly host: string
  /** The original of a copied data folder: in a store of our own its leases are void too. */
  readonly formerHost?: string | undefined
  /** For bridges, whose sessions live on their own machines. */
  readonly keepSessionOn?: KeepSessionOn
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
  const { host, keepSession, keepSessionOn = () => keepSession } = options
  const { store, damaged } = noteDamage(options.store)
  const context = createContext({ ...options, store })
  const { clock, log, changed, watchers, timers, deliveryHints: hints } = context
  const inbox = createWorkerInbox(context)
  const children = createChildren(context)
  const delegations = createDelegations(context, inbox)
  const pendingAsks = createPendingAsks(context)
  const budgets = createBudgets(context)
  const scrub = createScrub({ store, damaged, clock, log, changed })
  startSweep(context, { children, budgets, scrub })
  const stopListening = store.listen(() => {
    watchers.changedElsewhere()
    lookForWork(context)
  })
  return {
    store,
    inbox,
    bridges: createBridges(context, { inbox, keepSessionOn }),
    reception: createReception(context, { delegations, children }),
    deadLetters: createDeadLetters(context),
    deliveries: createDeliveries({ store, changed, host, hints }),
    pendingAsks,
    rules: createRules(context),
    budgets,
    damagedReplies: scrub,
    pushConfigs: createPushConfigs(store, host),
    queues: createWorkspaceQueues(context),
    activity: createActivity(context),
    children,
    recover: () => recover(options),
    close() {
      stopListening()
      hints.stop()
      timers.stop()
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
