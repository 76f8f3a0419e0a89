/**
 * Sends a message and waits for the end of its task, without a time limit. A blocking call returns an unfinished task
 * after a while; sending the same message id again attaches to that task, so a retry never starts a second one.
 * A turn that waits for a permission continues once an owner answers, so this waits for it too.
 */
import type { PlatformClient } from '../../client/platform-client.ts'
import { type RetryOptions, withRetries } from '../../client/retry.ts'
import { MoleculeError } from '../../errors.ts'
import { isFinal, isInterrupted, type Message, type Task } from '../../protocol/a2a.ts'
import { sleep } from '../../wait.ts'
import { partsText } from '../terminal/task-text.ts'

const POLL_MS = 1000

export interface PlatformSendOptions extends RetryOptions {
  readonly platform: PlatformClient
  readonly workspaceId: string
  readonly message: Message
  /** False: returns the task as soon as it is admitted. */
  readonly wait: boolean
  /** Receives what the turn waits for, as the platform words it. */
  readonly onWaiting?: (statusText: string) => void
  /** Receives why the task has not begun, as the platform words it; empty when it runs. */
  readonly onQueued?: (statusText: string) => void
}

export async function sendAndWait({
  platform,
  workspaceId,
  message,
  wait,
  onWaiting,
  onQueued,
  ...retry
}: PlatformSendOptions): Promise<Task> {
  for (;;) {
    const task = await withRetries(() => platform.sendMessage(workspaceId, message, { wait }), retry)
    const { state } = task.status
    if (!wait || isFinal(state)) return task
    if (!isInterrupted(state)) {
      // Prevents a busy loop: a paused or offline workspace answers a blocking call at once.
      onQueued?.(partsText(task.status.message))
      await sleep(retry.clock, POLL_MS)
      continue
    }
    if (state !== 'TASK_STATE_AUTH_REQUIRED' || !(await isRunning(platform, task.id))) return task
    onWaiting?.(partsText(task.status.message))
    await sleep(retry.clock, POLL_MS)
  }
}

/** True while the task's turn runs and waits for a permission; false when the task waits for its sender. */
async function isRunning(platform: PlatformClient, taskId: string): Promise<boolean> {
  try {
    return (await platform.story(taskId)).steps.at(-1)?.type === 'running'
  } catch (thrown) {
    if (thrown instanceof MoleculeError && (thrown.code === 'not_found' || thrown.retryable)) return false
    throw thrown
  }
}
