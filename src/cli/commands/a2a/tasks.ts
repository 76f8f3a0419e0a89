/**
 * `a2a delegate` and `a2a status`: gives another workspace a task, prints its answer, shows the state of a task.
 * All retries of one delegation carry the same message id, so a repeated call attaches to its own task and starts no
 * second one. A wait has no time limit, and it survives a lost connection. The text of a failure says that it is no
 * answer, so that an agent does not pass it on as one.
 */
import { withRetries } from '../../../client/retry.ts'
import { type Clock, systemClock } from '../../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import { type Message, taskEndText, taskStateText } from '../../../protocol/a2a.ts'
import { withBudget } from '../../../protocol/delegation.ts'
import { delegationFailureSentence, type FailedDelegation } from '../../../protocol/delegation-failure.ts'
import { traceFromVariables } from '../../../protocol/trace-context.ts'
import { platformClientFor, resolveWorkspaceId } from '../../platform/platform-access.ts'
import { sendAndWait } from '../../platform/send-and-wait.ts'
import { replyText } from '../../terminal/task-text.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export interface DelegateOptions {
  /** Id or name. */
  readonly workspace: string
  /** The text, or `-` for stdin. */
  readonly task: string
  readonly wait: boolean
  /** What the task may cost. */
  readonly maxCostUsd?: number | undefined
}

export async function delegate(
  { workspace, task: given, wait, maxCostUsd }: DelegateOptions,
  terminal: Terminal,
  clock: Clock = systemClock,
): Promise<void> {
  const text = given === '-' ? await terminal.readInput() : given
  if (text.trim() === '') throw new MoleculeError('invalid_request', 'the task is empty; say what to do')
  const platform = platformClientFor(terminal.env)
  const message: Message = {
    messageId: `a2a-${ulid()}`,
    role: 'ROLE_USER',
    parts: [{ text }],
    ...withBudget(maxCostUsd),
  }
  const send = async () => {
    const workspaceId = await withRetries(() => resolveWorkspaceId(platform, workspace), { clock })
    const trace = traceFromVariables(terminal.env)
    return sendAndWait({ platform, workspaceId, message, trace, wait, clock })
  }
  const task = await send().catch((thrown: unknown) => {
    throw delegationFailure({ workspace, reason: toMoleculeError(thrown).message }, thrown)
  })
  if (!wait) return terminal.out(`${task.id}\n`)
  const { state } = task.status
  if (state !== 'TASK_STATE_COMPLETED') {
    throw delegationFailure({ workspace, reason: taskEndText(state, replyText(task)), taskId: task.id })
  }
  terminal.out(`${replyText(task)}\n`)
}

/** The program adds the prefix of all its errors, `[A2A_ERROR]`. */
function delegationFailure(failed: Omit<FailedDelegation, 'listPeers'>, cause?: unknown): MoleculeError {
  return new MoleculeError('exit', delegationFailureSentence({ ...failed, listPeers: 'a2a peers' }), { cause })
}

export async function status(taskId: string, { env, out }: Terminal, clock: Clock = systemClock): Promise<void> {
  const task = await withRetries(() => platformClientFor(env).call('GET /tasks/{id}', { id: taskId }), { clock })
  const text = replyText(task)
  out(`${taskStateText(task.status.state)}\n${text === '' ? '' : `${text}\n`}`)
}
