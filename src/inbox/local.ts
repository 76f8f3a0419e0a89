/**
 * The inbox of this process: all faces of the seam over one store. The transactions are in the files beside it.
 * Memory here is only advice: if all of it were lost, the store alone would bring every message to its end.
 */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { createActivity } from './activity.ts'
import type { Activity } from './activity-seam.ts'
import { type Bridges, createBridges, type KeepSessionOn } from './bridges.ts'
import { mendClock } from './clock-back.ts'
import { discard, listDead, replay } from './dead-letters.ts'
import { createDeliveries, voidSending } from './deliveries.ts'
import { createDesks } from './desks.ts'
import type { Checkpoint, DeadLetters, Deliveries, Inbox, LoadReport, Queues, Reception } from './inbox.ts'
import { reportLoad } from './load-report.ts'
import type { Office } from './office.ts'
import type { KeepSession } from './outcome.ts'
import { createPending, type Pending } from './pending.ts'
import { createPushConfigs, type PushConfigs, voidClaims } from './push-configs.ts'
import { createQueues } from './queues.ts'
import { createReception } from './reception.ts'
import { voidLeases } from './recover.ts'
import { createStories, type Stories } from './story.ts'
import { createSweep } from './sweep.ts'
import { createUsageBook, type UsageBook } from './usage.ts'
import { createWatchers } from './watchers.ts'
import { createWorkerFace } from './worker-face.ts'

export interface LocalInboxOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  /** Names this data folder: workers of its processes are called `<host>.<something>`. */
  readonly host: string
  readonly keepSession: KeepSession
  /** The same for a bridge, whose sessions live on its own machine. */
  readonly keepSessionOn?: KeepSessionOn
  readonly passed?: (checkpoint: Checkpoint) => void
}

export interface LocalInbox {
  readonly inbox: Inbox
  /** The worker's face for those who call from elsewhere. */
  readonly bridges: Bridges
  readonly reception: Reception
  readonly deadLetters: DeadLetters
  readonly deliveries: Deliveries
  readonly pending: Pending
  readonly pushConfigs: PushConfigs
  load(): Promise<LoadReport>
  readonly queues: Queues
  readonly activity: Activity
  readonly stories: Stories
  readonly usage: UsageBook
  /**
   * Voids what an earlier process of this host held, before any worker comes; the host's lock must be held. Returns how
   * many turns were lost.
   */
  recover(): Promise<number>
  /** Stops looking for work. Leases that are held are not touched: their workers settle or release them. */
  close(): void
}

export function createLocalInbox(options: LocalInboxOptions): LocalInbox {
  const { store } = options
  const desks = createDesks()
  const watchers = createWatchers()
  const office: Office = {
    passed: () => undefined,
    ...options,
    desks,
    watchers,
    held: new Set(),
    changed(workspaceId, taskId, rest) {
      watchers.changed(taskId, rest)
      watchers.changed(workspaceId)
      store.notify([workspaceId])
    },
  }
  const sweep = createSweep(
    office,
    () => inbox.handOut,
    (key) => inbox.giveBack(key),
  )
  const inbox = createWorkerFace({ office, fill: sweep.fill, lookAfter: sweep.lookAfter })
  const { keepSessionOn = () => options.keepSession } = options
  const bridges = createBridges({ office, face: inbox, fill: sweep.fill, keepSessionOn })
  const reception = createReception(office, { handOut: inbox.handOut, look: sweep.look })
  sweep.start()
  const stopListening = store.listen(() => {
    watchers.changedElsewhere()
    sweep.look()
  })
  return {
    inbox,
    bridges,
    reception,
    deadLetters: createDeadLetters(office, sweep.look),
    deliveries: createDeliveries(store, options.host),
    pending: createPending(office, inbox.handOut),
    pushConfigs: createPushConfigs(store, options.host),
    load: () => store.read(reportLoad),
    queues: createQueues(office, sweep.look),
    activity: createActivity(office),
    stories: createStories(store),
    usage: createUsageBook(store),
    async recover() {
      const backMs = store.engine === 'sqlite' ? await store.write(mendClock) : 0
      if (backMs > 0) options.log.warn({ backMs }, 'the clock was set back; what waits was moved back with it')
      await store.write(() => voidSending(options.host))
      await store.write(() => voidClaims(options.host))
      return await store.write(() => voidLeases(options.host))
    },
    close() {
      stopListening()
      sweep.stop()
    },
  }
}

function createDeadLetters({ store, changed }: Office, look: () => void): DeadLetters {
  return {
    list: (workspaceId) => store.read(() => listDead(workspaceId)),
    async replay(workspaceId, messageId) {
      const taskId = await store.write(() => replay(workspaceId, messageId), workspaceId)
      changed(workspaceId, taskId)
      look()
      return taskId
    },
    discard: (workspaceId, messageId) => store.write(() => discard(workspaceId, messageId), workspaceId),
  }
}
