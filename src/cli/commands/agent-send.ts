/**
 * Sending a workspace words and printing its answer: `agent send` and `workspace delegate`. On a terminal it shows that
 * it waits; the answer alone goes to stdout. A task that does not complete is a failure that says how it ended.
 */
import { systemClock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import type { Message, Task } from '../../protocol/a2a.ts'
import type { CommandContext } from '../command-context.ts'
import { resolveWorkspaceId } from '../platform/platform-access.ts'
import { sendAndWait } from '../platform/send-and-wait.ts'
import { withoutControls } from '../terminal/output.ts'
import { withProgress } from '../terminal/progress.ts'
import { replyText, taskStateText } from '../terminal/task-text.ts'

export interface AgentSendOptions {
  /** Id or name. */
  readonly workspace: string
  /** The text, or `-` for stdin. */
  readonly text: string
  readonly wait: boolean
  /** Goes on with that conversation. */
  readonly contextId?: string | undefined
}

export async function send(
  context: CommandContext,
  { workspace, text, wait, contextId }: AgentSendOptions,
): Promise<void> {
  const { terminal } = context
  const words = text === '-' ? await terminal.readInput() : text
  if (words.trim() === '') throw new MoleculeError('invalid_request', 'there is nothing to send; give it a text')
  const platform = context.platform()
  const workspaceId = await resolveWorkspaceId(platform, workspace)
  const message: Message = {
    messageId: `cli-${ulid()}`,
    role: 'ROLE_USER',
    parts: [{ text: words }],
    ...(contextId !== undefined && { contextId }),
  }
  const sendOptions = { platform, workspaceId, message, wait, clock: systemClock }
  if (!wait) return await showTask(context, await sendAndWait(sendOptions), false)
  const task = await withProgress(terminal, `waiting for ${workspace}`, (progress) =>
    sendAndWait({
      ...sendOptions,
      onRetry: (error) => progress.update(`trying again: ${error.message}`),
      onWaiting: (what) => progress.update(`${workspace} is ${what}; "molecule pending" answers it`),
    }),
  )
  await showTask(context, task, true)
}

async function showTask({ show, terminal }: CommandContext, task: Task, ended: boolean): Promise<void> {
  if (ended && task.status.state !== 'TASK_STATE_COMPLETED') {
    const advice = `"molecule explain ${task.id}" tells more`
    throw new MoleculeError('agent_failed', `the task ended ${taskStateText(task)}: ${replyText(task)}; ${advice}`)
  }
  const shown = (text: string) => (terminal.screen === undefined ? text : withoutControls(text))
  await show(task, () => (ended ? `${shown(replyText(task))}\n` : `${task.id}\n`))
}
