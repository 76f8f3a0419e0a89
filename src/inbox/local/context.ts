/** What every part of the local inbox shares: the store, and what this process keeps in memory. Private to `src/inbox/local`. */
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { Store } from '../../store/store.ts'
import type { KeepSession } from '../commands/record-outcome.ts'
import { createDeliveryHints, type DeliveryHints } from '../deliver/delivery-hints.ts'
import type { TaskResult } from '../rows/task.ts'
import type { Checkpoint } from '../worker.ts'
import { createTimers, type Timers } from './timers.ts'
import { createWatchers, type Watchers } from './watchers.ts'
import { createWorkerQueues, type WorkerQueues } from './worker-queues.ts'

export interface ContextOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly keepSession: KeepSession
  readonly onCheckpoint?: (checkpoint: Checkpoint) => void
}

export interface InboxContext extends Required<ContextOptions> {
  readonly workerQueues: WorkerQueues
  readonly watchers: Watchers
  readonly deliveryHints: DeliveryHints
  readonly timers: Timers
  /**
   * The leases that workers of this process know of, by `leaseId`. A lease that is stored as theirs and is missing here
   * is a lost lease: it was committed, but the answer of the database was lost.
   */
  readonly held: Set<string>
  /** The leases of turns that wait for a delegation in this process, by `leaseId`: they take none of a bridge's capacity. */
  readonly waitingLeases: Set<string>
  /** Called back when a delegated message may have ended, or a message with children. */
  readonly onDelegationEnd: Set<() => void>
  /**
   * A task changed, or without one, the workspace: wakes readers in this process, and hints to the other processes on this
   * store. Call after commit.
   */
  changed(workspaceId: string, taskId?: string, result?: TaskResult): void
}

export function createContext(options: ContextOptions): InboxContext {
  const { store } = options
  const watchers = createWatchers()
  return {
    onCheckpoint: () => undefined,
    ...options,
    workerQueues: createWorkerQueues(),
    watchers,
    deliveryHints: createDeliveryHints(store),
    timers: createTimers(options),
    held: new Set(),
    waitingLeases: new Set(),
    onDelegationEnd: new Set(),
    changed(workspaceId, taskId, result) {
      if (taskId !== undefined) watchers.changed(taskId, result)
      watchers.changed(workspaceId)
      store.notify([workspaceId])
    },
  }
}

/** A delegated message may have ended, or a message with children: its relatives are looked after soon. */
export function delegationEnded({ onDelegationEnd }: InboxContext): void {
  for (const callback of onDelegationEnd) callback()
}
