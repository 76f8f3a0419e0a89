/** Dependencies shared by the door side and the worker side of the local inbox. Private to `src/inbox`. */
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { Store } from '../../store/store.ts'
import type { KeepSession } from '../commands/record-outcome.ts'
import type { TaskResult } from '../rows/task.ts'
import type { Checkpoint } from '../worker.ts'
import type { Watchers } from './watchers.ts'
import type { WorkerQueues } from './worker-queues.ts'

export interface InboxContext {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly workerQueues: WorkerQueues
  readonly watchers: Watchers
  /**
   * The leases that workers of this process know of, by `leaseId`. A lease that is stored as theirs and is missing here
   * is a lost lease: it was committed, but the answer of the database was lost.
   */
  readonly held: Set<string>
  /** The leases of turns that wait for a delegation in this process, by `leaseId`: they take none of a bridge's capacity. */
  readonly waitingLeases: Set<string>
  readonly keepSession: KeepSession
  readonly onCheckpoint: (checkpoint: Checkpoint) => void
  /** A delegated message may have ended, or a message with children: handles it soon. */
  lookAfterChildren(): void
  /**
   * A task changed, or without one, the workspace: wakes readers in this process, and hints to the other processes on this
   * store. Call after commit.
   */
  changed(workspaceId: string, taskId?: string, result?: TaskResult): void
  /** A transaction wrote a delivery, or may have: wakes the doors that push. Call after commit. */
  deliveriesWritten(): void
}
