/** `a2a status`: how a task stands; the answer follows once there is one. */
import type { Terminal } from '../../command-line.ts'
import { platformFor, resolveWorkspace } from '../../platform-access.ts'
import { replyText, stateWord } from './words.ts'

export async function status(asked: { workspace: string; task: string }, { env, out }: Terminal): Promise<void> {
  const platform = platformFor(env)
  const task = await platform.getTask(await resolveWorkspace(platform, asked.workspace), asked.task)
  const text = replyText(task)
  out(`${stateWord(task)}\n${text === '' ? '' : `${text}\n`}`)
}
