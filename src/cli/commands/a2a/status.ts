/** `a2a status`: how a task stands; the answer follows once there is one. */
import { withRetries } from '../../../client/retry.ts'
import { type Clock, systemClock } from '../../../clock.ts'
import type { Terminal } from '../../command-line.ts'
import { platformFor } from '../../platform-access.ts'
import { replyText, stateWord } from './words.ts'

export async function status(taskId: string, { env, out }: Terminal, clock: Clock = systemClock): Promise<void> {
  const task = await withRetries(() => platformFor(env).findTask(taskId), { clock })
  const text = replyText(task)
  out(`${stateWord(task)}\n${text === '' ? '' : `${text}\n`}`)
}
