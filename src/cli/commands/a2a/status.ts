/** `a2a status`: how a task stands; the answer follows once there is one. */
import { withRetries } from '../../../client/retry.ts'
import { type Clock, systemClock } from '../../../clock.ts'
import type { Terminal } from '../../command-line.ts'
import { platformClientFor } from '../../platform/platform-access.ts'
import { replyText, taskStateText } from '../../terminal/task-text.ts'

export async function status(taskId: string, { env, out }: Terminal, clock: Clock = systemClock): Promise<void> {
  const task = await withRetries(() => platformClientFor(env).findTask(taskId), { clock })
  const text = replyText(task)
  out(`${taskStateText(task)}\n${text === '' ? '' : `${text}\n`}`)
}
