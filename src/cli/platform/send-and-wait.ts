/**
 * Giving a workspace something to do and waiting for the end of it, however long that takes: the platform answers a
 * blocking call after a while in any case, and the same message sent again attaches to its task. One key an invocation,
 * so a retry never is a second task. A turn that waits for somebody's permission goes on by itself later: it is waited for.
 */
import type { PlatformClient } from '../../client/platform-client.ts'
import { type RetryOptions, withRetries } from '../../client/retry.ts'
import { MoleculeError } from '../../errors.ts'
import { isFinal, isInterrupted, type Message, type Task } from '../../protocol/a2a.ts'
import { sleep } from '../../wait.ts'

const POLL_MS = 1000

export interface PlatformSendOptions extends RetryOptions {
  readonly platform: PlatformClient
  readonly workspaceId: string
  readonly message: Message
  /** False: the task as it was admitted. */
  readonly wait: boolean
  /** Told what the turn waits for. */
  readonly onWaiting?: (statusText: string) => void
}

export async function sendAndWait({
  platform,
  workspaceId,
  message,
  wait,
  onWaiting,
  ...retry
}: PlatformSendOptions): Promise<Task> {
  for (;;) {
    const task = await withRetries(() => platform.sendMessage(workspaceId, message, { wait }), retry)
    const { state } = task.status
    if (!wait || isFinal(state)) return task
    if (!isInterrupted(state)) continue
    if (state !== 'TASK_STATE_AUTH_REQUIRED' || !(await isRunning(platform, task.id))) return task
    onWaiting?.((task.status.message?.parts ?? []).map(({ text }) => text ?? '').join(''))
    await sleep(retry.clock, POLL_MS)
  }
}

/** Whether its turn is only waiting; otherwise the task rests until its sender says something. */
async function isRunning(platform: PlatformClient, taskId: string): Promise<boolean> {
  try {
    return (await platform.story(taskId)).steps.at(-1)?.type === 'running'
  } catch (thrown) {
    if (thrown instanceof MoleculeError && (thrown.code === 'not_found' || thrown.retryable)) return false
    throw thrown
  }
}
