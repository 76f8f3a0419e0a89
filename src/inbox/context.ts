/** What both faces of the local inbox share: the store, who waits for work, who waits for news. */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import type { Checkpoint } from './inbox.ts'
import type { WorkerQueues } from './lease/worker-queues.ts'
import type { Watchers } from './read/watchers.ts'
import type { KeepSession } from './settle/record-outcome.ts'
import type { TaskResult } from './settle/task-result.ts'

export interface InboxContext {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly workerQueues: WorkerQueues
  readonly watchers: Watchers
  /**
   * Leases that workers of this process really have, by `leaseId`. One that is stored as theirs and is not among
   * them belongs to nobody: it was committed, and the answer that would have told us was lost.
   */
  readonly held: Set<string>
  readonly keepSession: KeepSession
  readonly onCheckpoint: (checkpoint: Checkpoint) => void
  /** A task changed: readers here look at once, other processes on this store get a hint. Call after the commit. */
  changed(workspaceId: string, taskId: string, result?: TaskResult): void
}
