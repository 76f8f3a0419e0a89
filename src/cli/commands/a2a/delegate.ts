/**
 * `a2a delegate`: one task for another workspace, and its answer. The message id is made once and kept over all
 * retries, so a repeated call meets its own task and asks nobody twice; work that takes longer than one call may block
 * is waited for by calling again. A failure is a text that no agent can take for an answer.
 */

import type { PlatformClient } from '../../../client/platform-client.ts'
import { withRetries } from '../../../client/retry.ts'
import { type Clock, systemClock } from '../../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import type { Message, Task } from '../../../protocol/a2a.ts'
import type { Terminal } from '../../command-line.ts'
import { platformClientFor, resolveWorkspaceId } from '../../platform/platform-access.ts'
import { sendAndWait } from '../../platform/send-and-wait.ts'
import { replyText, taskStateText } from '../../terminal/task-text.ts'

export interface DelegateOptions {
  /** Id or name. */
  readonly workspace: string
  /** The text, or `-` for stdin. */
  readonly task: string
  readonly wait: boolean
}

export async function delegate(
  options: DelegateOptions,
  terminal: Terminal,
  clock: Clock = systemClock,
): Promise<void> {
  const text = options.task === '-' ? await terminal.readInput() : options.task
  if (text.trim() === '') throw new MoleculeError('invalid_request', 'the task is empty; say in words what to do')
  const platform = platformClientFor(terminal.env)
  const task = await sendTask({ platform, clock, options, text }).catch((thrown: unknown) => {
    throw delegationFailure(options.workspace, toMoleculeError(thrown).message, thrown)
  })
  if (!options.wait) return terminal.out(`${task.id}\n`)
  if (task.status.state !== 'TASK_STATE_COMPLETED') {
    throw delegationFailure(options.workspace, `the task ended ${taskStateText(task)}: ${replyText(task)}`)
  }
  terminal.out(`${replyText(task)}\n`)
}

interface Asking {
  readonly platform: PlatformClient
  readonly clock: Clock
  readonly options: DelegateOptions
  readonly text: string
}

async function sendTask({ platform, clock, options, text }: Asking): Promise<Task> {
  const message: Message = { messageId: `a2a-${ulid()}`, role: 'ROLE_USER', parts: [{ text }] }
  const workspaceId = await withRetries(() => resolveWorkspaceId(platform, options.workspace), { clock })
  return sendAndWait({ platform, workspaceId, message, wait: options.wait, clock })
}

function delegationFailure(workspace: string, reason: string, cause?: unknown): MoleculeError {
  const message = [
    `DELEGATION FAILED: ${workspace} gave no answer (${reason}).`,
    'Do one of these: ask another peer (a2a peers); do the work yourself; or tell the user which peer is unavailable',
    'and give your own best answer. Do not pass this text on as an answer.',
  ].join('\n')
  return new MoleculeError('exit', message, { cause })
}
