/**
 * `agent send` and `workspace delegate`: sends a message and prints the answer. Progress goes to stderr, the answer alone
 * to stdout. A task that does not complete is a failure that says how it ended.
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
  /** The conversation to continue. */
  readonly contextId?: string | undefined
}

export async function send(
  context: CommandContext,
  { workspace, text, wait, contextId }: AgentSendOptions,
): Promise<void> {
  const { terminal } = context
  const sent = text === '-' ? await terminal.readInput() : text
  if (sent.trim() === '') throw new MoleculeError('invalid_request', 'there is nothing to send; give a text')
  const platform = context.platform()
  const workspaceId = await resolveWorkspaceId(platform, workspace)
  const message: Message = {
    messageId: `cli-${ulid()}`,
    role: 'ROLE_USER',
    parts: [{ text: sent }],
    ...(contextId !== undefined && { contextId }),
  }
  const sendOptions = { platform, workspaceId, message, wait, clock: systemClock }
  if (!wait) return await showTask(context, await sendAndWait(sendOptions), false)
  const task = await withProgress(terminal, `waiting for ${workspace}`, (progress) =>
    sendAndWait({
      ...sendOptions,
      onRetry: (error) => progress.update(`retrying: ${error.message}`),
      onQueued: (reason) => reason !== '' && progress.update(`${workspace}: ${reason}`),
      onWaiting: (what) => progress.update(`${workspace} is ${what}; answer with "molecule pending"`),
    }),
  )
  await showTask(context, task, true)
}

async function showTask({ show, terminal }: CommandContext, task: Task, ended: boolean): Promise<void> {
  if (ended && task.status.state !== 'TASK_STATE_COMPLETED') {
    const state = taskStateText(task.status.state)
    const advice = `"molecule explain ${task.id}" shows more`
    throw new MoleculeError('agent_failed', `the task ended ${state}: ${replyText(task)}; ${advice}`)
  }
  const shown = (text: string) => (terminal.screen === undefined ? text : withoutControls(text))
  await show(task, () => (ended ? `${shown(replyText(task))}\n` : `${task.id}\n`))
}
