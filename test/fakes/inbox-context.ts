/** The dependencies of the readers of the inbox, over the rows of a test; it counts reads and keeps the hints. */
import type { InboxContext } from '../../src/inbox/context.ts'
import { createWorkerQueues } from '../../src/inbox/lease/worker-queues.ts'
import { createWatchers } from '../../src/inbox/read/watchers.ts'
import { silentLog } from '../../src/log.ts'
import { statement } from '../../src/store/store.ts'
import type { TestRows } from './stored-rows.ts'

/** A reader that reads again at once instead of waiting would never let the test go on. */
const READS_MAX = 200

export interface CountingContext extends InboxContext {
  reads(): number
  /** The workspaces of each hint to other processes. */
  readonly hints: (readonly string[])[]
  /** How many callbacks watch one task or workspace. */
  watching(): number
}

export function countingContext({ store, clock }: TestRows): CountingContext {
  const watchers = createWatchers()
  const hints: (readonly string[])[] = []
  let reads = 0
  let watching = 0
  return {
    store: {
      ...store,
      async read(transaction) {
        reads += 1
        if (reads > READS_MAX) throw new Error('it reads without end')
        return await store.read(transaction)
      },
      notify: (workspaceIds) => void hints.push(workspaceIds),
    },
    clock,
    log: silentLog,
    workerQueues: createWorkerQueues(),
    watchers: {
      ...watchers,
      watch(id, callback) {
        watching += 1
        const stop = watchers.watch(id, callback)
        return () => {
          watching -= 1
          stop()
        }
      },
    },
    held: new Set(),
    waitingLeases: new Set(),
    keepSession: () => statement('select 1'),
    onCheckpoint: () => undefined,
    lookAfterChildren: () => undefined,
    changed(workspaceId, taskId, result) {
      if (taskId !== undefined) watchers.changed(taskId, result)
      watchers.changed(workspaceId)
    },
    reads: () => reads,
    hints,
    watching: () => watching,
  }
}
