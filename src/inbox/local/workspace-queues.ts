/** The queues of workspaces as their owners see them: `commands/workspace-queue.ts`, and who hears of it after the commit. */
import {
  cancelRunning,
  endQueue,
  FAILED_OFTEN,
  HELD,
  pauseQueue,
  type RunningTurn,
  setPaused,
  wakeMessages,
} from '../commands/workspace-queue.ts'
import type { WorkspaceQueues } from '../queues.ts'
import { delegationEnded, type InboxContext } from './context.ts'
import { lookForWork } from './directives.ts'

export function createWorkspaceQueues(context: InboxContext): WorkspaceQueues {
  const { store, workerQueues, watchers } = context
  const stop = (running: readonly RunningTurn[]) => {
    for (const turn of running) workerQueues.stop(turn)
  }
  const wake = async (workspaceId: string, condition: string) => {
    await store.write(() => wakeMessages(workspaceId, condition), workspaceId)
    store.notify([workspaceId])
    lookForWork(context)
  }
  return {
    async pause(workspaceId, { now }) {
      const running = await store.write(() => pauseQueue(workspaceId, now), workspaceId)
      // A turn that stops without a cancel goes back into the queue, which leases nothing.
      stop(running)
      watchers.changedElsewhere()
      store.notify([workspaceId])
    },
    async stop(workspaceId) {
      const canceled = await store.write(() => cancelRunning(workspaceId), workspaceId)
      stop(canceled.flatMap(({ running }) => running ?? []))
      for (const { taskId } of canceled) context.changed(workspaceId, taskId)
      watchers.changedElsewhere()
      store.notify([workspaceId])
      delegationEnded(context)
      return canceled.map(({ taskId }) => taskId)
    },
    async resume(workspaceId) {
      await store.write(() => setPaused(workspaceId, 0), workspaceId)
      store.notify([workspaceId])
      lookForWork(context)
    },
    limitsChanged: (workspaceId) => wake(workspaceId, HELD),
    retryFailed: (workspaceId) => wake(workspaceId, FAILED_OFTEN),
    async end(workspaceId, failure) {
      const ended = await store.write(() => endQueue(workspaceId, failure), workspaceId)
      stop(ended.running)
      for (const taskId of ended.taskIds) context.changed(workspaceId, taskId)
      watchers.changed(workspaceId)
      context.deliveryHints.written()
      delegationEnded(context)
      return ended.taskIds.length
    },
  }
}
