/**
 * `agent send` and `workspace delegate`: sends a message and prints the answer. Progress, and where the files of the answer
 * were saved, go to stderr; the answer alone goes to stdout. A task that does not complete is a failure that says how it
 * ended. Ctrl-C ends the wait and not the task.
 */

import { withRetries } from '../../client/retry.ts'
import { systemClock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { withoutControls } from '../../printable.ts'
import { isFinal, type Message, type Task } from '../../protocol/a2a.ts'
import { withBudget } from '../../protocol/delegation.ts'
import type { CommandContext } from '../command-context.ts'
import { attachFiles } from '../files/attach-files.ts'
import { answerFilesOf, SAVE_FOLDER, saveAnswerFiles } from '../files/save-files.ts'
import { resolveWorkspaceId } from '../platform/platform-access.ts'
import { waitForTask } from '../platform/send-and-wait.ts'
import { EXIT_INTERRUPTED, ExitError } from '../run-program.ts'
import { shellQuoted } from '../terminal/own-command.ts'
import { type Progress, withProgress } from '../terminal/progress.ts'
import { noticeText, partsText, replyText, taskStateText } from '../terminal/task-text.ts'

export interface AgentSendOptions {
  /** Id or name. */
  readonly workspace: string
  /** The text, or `-` for stdin. */
  readonly text: string
  readonly wait: boolean
  /** The conversation to continue. */
  readonly contextId?: string | undefined
  /** What the message and all it leads to may cost. */
  readonly maxCostUsd?: number | undefined
  /** Paths of files to attach. */
  readonly files?: readonly string[] | undefined
  /** Where the files of the answer go; false = nowhere. Default: SAVE_FOLDER, when the answer is shown to a person. */
  readonly save?: string | false | undefined
}

export async function send(context: CommandContext, options: AgentSendOptions): Promise<void> {
  const { workspace, wait } = options
  const message = await toMessage(context, options)
  const platform = context.platform()
  const workspaceId = await resolveWorkspaceId(platform, workspace)
  const sendMessage = (progress?: Progress, signal?: AbortSignal) =>
    withRetries(() => platform.sendMessage(workspaceId, message, { wait: false, ...(signal && { signal }) }), {
      clock: systemClock,
      ...(signal && { signal }),
      onRetry: (error) => progress?.update(`retrying: ${error.message}`),
    })
  if (!wait) {
    const task = await sendMessage()
    return await context.show(task, () => `${task.id}\n`)
  }
  const sent: { taskId?: string } = {}
  const ended = await untilInterrupted(context, { workspace, message, sent }, (signal) =>
    withProgress(context.terminal, `waiting for ${workspace}`, async (progress) => {
      const task = await sendMessage(progress, signal)
      sent.taskId = task.id
      const onOpen = createWaitReport(context, workspace, progress)
      const onRetry = (error: Error) => progress.update(`retrying: ${error.message}`)
      return await waitForTask({ platform, workspaceId, task, onOpen, onRetry, clock: systemClock, signal })
    }),
  )
  // The reads of the wait leave the history out, which has the attached files again.
  const shown = context.output === 'table' ? ended : await platform.getTask(workspaceId, ended.id)
  await showEnd(context, shown, options)
}

async function toMessage({ terminal }: CommandContext, options: AgentSendOptions): Promise<Message> {
  const { text, files = [], contextId, maxCostUsd } = options
  const sent = text === '-' ? await terminal.readInput() : text
  if (sent.trim() === '' && files.length === 0) {
    throw new MoleculeError('invalid_request', 'there is nothing to send; give a text or a --file')
  }
  return {
    messageId: `cli-${ulid()}`,
    role: 'ROLE_USER',
    parts: [...(sent.trim() === '' ? [] : [{ text: sent }]), ...(await attachFiles(files))],
    ...(contextId !== undefined && { contextId }),
    ...withBudget(maxCostUsd),
  }
}

interface SentMessage {
  readonly workspace: string
  readonly message: Message
  /** Has the task once the platform has admitted the message. */
  readonly sent: { readonly taskId?: string }
}

/** On Ctrl-C the work is aborted, and the user learns how to find the task, which continues. */
async function untilInterrupted<T>(
  { terminal, command }: CommandContext,
  { workspace, message, sent }: SentMessage,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController()
  const interrupt = () => stop.abort()
  process.once('SIGINT', interrupt)
  try {
    return await work(stop.signal)
  } catch (thrown) {
    if (!stop.signal.aborted) throw thrown
    const { taskId } = sent
    terminal.err(
      taskId === undefined
        ? `interrupted before ${workspace} had the message for sure; "${command} task show ${message.messageId}" finds it\n`
        : `no longer waiting; ${workspace} still has the message:\n` +
            `  ${command} task show ${taskId}     shows its state and its answer\n` +
            `  ${command} task cancel ${taskId}   cancels it\n`,
    )
    throw new ExitError(EXIT_INTERRUPTED)
  } finally {
    process.off('SIGINT', interrupt)
  }
}

/** A task that begins at once has a reason to wait for a moment, which says nothing. */
const REASON_AFTER_MS = 500

/** Shows why the task waits, as the platform words it. */
function createWaitReport({ command }: CommandContext, workspace: string, progress: Progress): (task: Task) => void {
  const startMs = systemClock.monotonicMs()
  let isReported = false
  return ({ status }) => {
    if (systemClock.monotonicMs() - startMs < REASON_AFTER_MS) return
    const reason = partsText(status.message)
    if (status.state === 'TASK_STATE_AUTH_REQUIRED') {
      progress.update(`${workspace} is ${reason}; answer with "${command} pending"`)
    } else if (reason !== '') progress.update(`${workspace}: ${reason}`)
    else if (isReported) progress.update(`${workspace} works`)
    isReported ||= reason !== ''
  }
}

async function showEnd(context: CommandContext, task: Task, options: AgentSendOptions): Promise<void> {
  const { terminal, output } = context
  const isCompleted = task.status.state === 'TASK_STATE_COMPLETED'
  const text = replyText(task)
  const { files, links } = answerFilesOf(task)
  const notice = noticeText(task)
  if (notice !== undefined) terminal.err(`note: ${withoutControls(notice)}\n`)
  const isAnswerEmpty = text === '' && files.length + links.length > 0
  if (isCompleted) await context.show(task, () => (isAnswerEmpty ? '' : `${text}\n`))
  const { save = SAVE_FOLDER } = options
  if (output === 'table' || options.save !== undefined) await saveAnswer(context, task, save)
  if (isCompleted) return
  const { workspace } = options
  const advice = isFinal(task.status.state)
    ? `"molecule explain ${task.id}" shows more`
    : `answer with "molecule chat ${shellQuoted(workspace)} --context ${shellQuoted(task.contextId)}"`
  throw new MoleculeError('agent_failed', `the task ended ${taskStateText(task.status.state)}: ${text}; ${advice}`)
}

/** Says where each file went, on stderr. */
export async function saveAnswer(
  { terminal, command }: CommandContext,
  task: Task,
  saveFolder: string | false,
): Promise<void> {
  const lines = await saveAnswerFiles(task, { saveFolder, command })
  for (const line of lines) terminal.err(`${withoutControls(line)}\n`)
}
