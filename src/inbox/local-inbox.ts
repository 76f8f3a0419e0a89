/**
 * The inbox of this process: joins every part of the seam over one store. Its memory (queues, watchers) is only advice:
 * if all of it were lost, the store alone would bring every message to its end.
 */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { createPendingAsks } from './ask/pending-asks.ts'
import type { InboxContext, KeepSession, KeepSessionOn } from './context.ts'
import { createDeliveries, markSendingUnknown } from './deliver/deliveries.ts'
import { createPushConfigs, releasePushClaims } from './deliver/push-configs.ts'
import type { Deliveries, PushConfigs } from './delivery.ts'
import type { Bridges, Checkpoint, Inbox, Reception, WorkspaceQueues } from './inbox.ts'
import { createBridges } from './lease/bridges.ts'
import { recoverLeases } from './lease/recover.ts'
import { createWorkerInbox } from './lease/worker-inbox.ts'
import { createWorkerQueues } from './lease/worker-queues.ts'
import { createWorkspaceQueues } from './lease/workspace-queues.ts'
import type { DeadLetters, PendingAsks } from './owners.ts'
import { createActivity } from './read/activity.ts'
import { reportLoad } from './read/load-report.ts'
import { createReception } from './read/reception.ts'
import { createStories } from './read/story.ts'
import { createUsageReader } from './read/usage.ts'
import { createWatchers } from './read/watchers.ts'
import type { Activity, LoadReport, Stories, UsageReader } from './readers.ts'
import { createDeadLetters } from './settle/dead-letters.ts'
import { correctClock } from './upkeep/clock-correction.ts'
import { createSweep } from './upkeep/sweep.ts'

export interface LocalInboxOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  /** The id of this data folder: the worker ids of its processes start with `<host>.`. */
  readonly host: string
  readonly keepSession: KeepSession
  /** For bridges, whose sessions live on their own machines. */
  readonly keepSessionOn?: KeepSessionOn
  readonly onCheckpoint?: (checkpoint: Checkpoint) => void
}

export interface LocalInbox {
  readonly inbox: Inbox
  /** The worker side for bridges. */
  readonly bridges: Bridges
  readonly reception: Reception
  readonly deadLetters: DeadLetters
  readonly deliveries: Deliveries
  readonly pendingAsks: PendingAsks
  readonly pushConfigs: PushConfigs
  load(): Promise<LoadReport>
  readonly queues: WorkspaceQueues
  readonly activity: Activity
  readonly stories: Stories
  readonly usage: UsageReader
  /**
   * Voids the leases of an earlier process of this host. Call it before any worker joins; the lock on the data folder
   * must be held. Returns how many turns were lost.
   */
  recover(): Promise<number>
  /** Stops the sweep. Held leases stay as they are: their workers settle or release them. */
  close(): void
}

export function createLocalInbox(options: LocalInboxOptions): LocalInbox {
  const { store } = options
  const workerQueues = createWorkerQueues()
  const watchers = createWatchers()
  const context: InboxContext = {
    onCheckpoint: () => undefined,
    ...options,
    workerQueues,
    watchers,
    held: new Set(),
    changed(workspaceId, taskId, result) {
      watchers.changed(taskId, result)
      watchers.changed(workspaceId)
      store.notify([workspaceId])
    },
  }
  const sweep = createSweep(
    context,
    () => inbox.sendDirective,
    (key) => inbox.releaseLease(key),
  )
  const inbox = createWorkerInbox({ context, fill: sweep.fill, lookAfter: sweep.lookAfter })
  const { keepSessionOn = () => options.keepSession } = options
  const bridges = createBridges({ context, workerInbox: inbox, fill: sweep.fill, keepSessionOn })
  const reception = createReception(context, { sendDirective: inbox.sendDirective, look: sweep.look })
  sweep.start()
  const stopListening = store.listen(() => {
    watchers.changedElsewhere()
    sweep.look()
  })
  return {
    inbox,
    bridges,
    reception,
    deadLetters: createDeadLetters(context, sweep.look),
    deliveries: createDeliveries(store, options.host),
    pendingAsks: createPendingAsks(context, inbox.sendDirective),
    pushConfigs: createPushConfigs(store, options.host),
    load: () => store.read(reportLoad),
    queues: createWorkspaceQueues(context, sweep.look),
    activity: createActivity(context),
    stories: createStories(store),
    usage: createUsageReader(store),
    async recover() {
      const backMs = store.engine === 'sqlite' ? await store.write(correctClock) : 0
      if (backMs > 0)
        options.log.warn({ backMs }, 'the clock was set back; the times of waiting messages were moved back with it')
      await store.write(() => markSendingUnknown(options.host))
      await store.write(() => releasePushClaims(options.host))
      return await store.write(() => recoverLeases(options.host))
    },
    close() {
      stopListening()
      sweep.stop()
    },
  }
}
