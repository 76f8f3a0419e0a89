/**
 * `a2a delegate` and `a2a status`: gives another workspace a task, prints its answer, shows the state of a task.
 * All retries of one delegation carry the same message id, so a repeated call attaches to its own task and starts no
 * second one. The text of a failure says that it is no answer, so that an agent does not pass it on as one.
 */
import { withRetries } from '../../../client/retry.ts'
import { type Clock, systemClock } from '../../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import type { Message } from '../../../protocol/a2a.ts'
import { platformClientFor, resolveWorkspaceId } from '../../platform/platform-access.ts'
import { sendAndWait } from '../../platform/send-and-wait.ts'
import { replyText, taskStateText } from '../../terminal/task-text.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export interface DelegateOptions {
  /** Id or name. */
  readonly workspace: string
  /** The text, or `-` for stdin. */
  readonly task: string
  readonly wait: boolean
}

export async function delegate(
  { workspace, task: given, wait }: DelegateOptions,
  terminal: Terminal,
  clock: Clock = systemClock,
): Promise<void> {
  const text = given === '-' ? await terminal.readInput() : given
  if (text.trim() === '') throw new MoleculeError('invalid_request', 'the task is empty; say what to do')
  const platform = platformClientFor(terminal.env)
  const message: Message = { messageId: `a2a-${ulid()}`, role: 'ROLE_USER', parts: [{ text }] }
  const send = async () => {
    const workspaceId = await withRetries(() => resolveWorkspaceId(platform, workspace), { clock })
    return sendAndWait({ platform, workspaceId, message, wait, clock })
  }
  const task = await send().catch((thrown: unknown) => {
    throw delegationFailure(workspace, toMoleculeError(thrown).message, thrown)
  })
  if (!wait) return terminal.out(`${task.id}\n`)
  const { state } = task.status
  if (state !== 'TASK_STATE_COMPLETED') {
    throw delegationFailure(workspace, `the task ended ${taskStateText(state)}: ${replyText(task)}`)
  }
  terminal.out(`${replyText(task)}\n`)
}

function delegationFailure(workspace: string, reason: string, cause?: unknown): MoleculeError {
  const message = [
    `DELEGATION FAILED: ${workspace} gave no answer (${reason}).`,
    'Do one of these: ask another peer (a2a peers); do the work yourself; or tell the user which peer is unavailable',
    'and give your own best answer. Do not pass this text on as an answer.',
  ].join('\n')
  return new MoleculeError('exit', message, { cause })
}

export async function status(taskId: string, { env, out }: Terminal, clock: Clock = systemClock): Promise<void> {
  const task = await withRetries(() => platformClientFor(env).findTask(taskId), { clock })
  const text = replyText(task)
  out(`${taskStateText(task.status.state)}\n${text === '' ? '' : `${text}\n`}`)
}
