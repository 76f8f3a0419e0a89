/**
 * `agent send` and `workspace delegate`: sends a message and prints the answer. Progress, and where the files of the answer
 * were saved, go to stderr; the answer alone goes to stdout. A task that does not complete is a failure that says how it
 * ended. A restart of the platform interrupts neither the task nor the wait. Ctrl-C ends the wait and not the task. A wait
 * that is more than the agent's work names the task, so that a person can find it later.
 */
import { withRetries } from '../../../client/retry.ts'
import { systemClock } from '../../../clock.ts'
import { formatWait } from '../../../duration.ts'
import { MoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import { withoutControls } from '../../../printable.ts'
import { isFinal, type Message, type Task, taskEndText } from '../../../protocol/a2a.ts'
import { withBudget } from '../../../protocol/delegation.ts'
import type { CommandContext } from '../../command-context.ts'
import { EXIT_INTERRUPTED, ExitError } from '../../exit-codes.ts'
import { attachFiles } from '../../files/attach-files.ts'
import { answerFilesOf, SAVE_FOLDER, saveAnswerFiles } from '../../files/save-files.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import {
  mayHaveArrived,
  type SendThroughOutageOptions,
  sendThroughOutage,
  type WaitForTaskOptions,
  waitForTask,
} from '../../platform/send-and-wait.ts'
import { shellQuoted } from '../../terminal/own-command.ts'
import { type Progress, REASON_AFTER_MS, withProgress } from '../../terminal/progress.ts'
import { firstLine, noticeText, partsText, replyText } from '../../terminal/task-text.ts'

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
  /** How long to wait for the platform each time that it goes away. Default: RECONNECT_MS. */
  readonly reconnectMs?: number | undefined
}

const RECONNECT_MS = 10 * 60_000

export async function send(context: CommandContext, options: AgentSendOptions): Promise<void> {
  const { workspace, wait, reconnectMs = RECONNECT_MS } = options
  const message = await toMessage(context, options)
  const platform = context.platform()
  const workspaceId = await resolveWorkspaceId(platform, workspace)
  const sent: SentMessage = { workspace, message }
  const sendMessage = (signal: AbortSignal) => platform.sendMessage(workspaceId, message, { wait: false, signal })
  if (!wait) {
    const task = await untilInterrupted(context, sent, (signal) =>
      withRetries(() => sendMessage(signal), { clock: systemClock, signal }),
    )
    return await context.show(task, () => `${task.id}\n`)
  }
  const ended = await untilInterrupted(context, sent, (signal) =>
    withProgress(context.terminal, `waiting for ${workspace}`, async (progress) => {
      const { onRefused, onOpen, onOutage } = createWaitReports(context, { sent, progress, reconnectMs })
      const outages = { onOutage, reconnectMs, clock: systemClock, signal }
      const task = await sendThroughOutage(() => sendMessage(signal), { ...outages, onRefused })
      sent.taskId = task.id
      return await waitForTask({ platform, workspaceId, task, onOpen, ...outages })
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
    contextId,
    ...withBudget(maxCostUsd),
  }
}

interface SentMessage {
  readonly workspace: string
  readonly message: Message
  /** Set once the platform has admitted the message. */
  taskId?: string
}

/** On Ctrl-C, or when the platform stays away, the user learns how to find the task, which continues. */
async function untilInterrupted<T>(
  { terminal, command }: CommandContext,
  sent: SentMessage,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController()
  const interrupt = () => stop.abort()
  // Not once: under npm a Ctrl-C arrives twice, and the second one would end this process before it has said anything.
  process.on('SIGINT', interrupt)
  try {
    return await work(stop.signal)
  } catch (thrown) {
    const { taskId, workspace, message } = sent
    const find = `"${command} task show ${taskId ?? message.messageId}"`
    if (!stop.signal.aborted) throw withTask(thrown, { sent, find })
    terminal.err(
      taskId === undefined
        ? `interrupted before ${workspace} had the message for sure; ${find} finds it\n`
        : `no longer waiting; ${workspace} still has the message:\n` +
            `  ${command} task show ${taskId}     shows its state and its answer\n` +
            `  ${command} task cancel ${taskId}   cancels it\n`,
    )
    throw new ExitError(EXIT_INTERRUPTED)
  } finally {
    process.off('SIGINT', interrupt)
  }
}

/**
 * A wait that failed is not a task that failed: the platform has the task and goes on with it when it runs again. A send
 * whose answer is missing may have arrived.
 */
function withTask(thrown: unknown, { sent, find }: { readonly sent: SentMessage; readonly find: string }): unknown {
  if (!(thrown instanceof MoleculeError)) return thrown
  const { workspace, taskId } = sent
  if (taskId === undefined && !mayHaveArrived(thrown)) return thrown
  const advice =
    taskId === undefined
      ? `${workspace} may have the message: ${find} shows it then`
      : `${workspace} still has the message: ${find} shows its state and its answer`
  const { code, message, retryable, details } = thrown
  return new MoleculeError(code, `${message}; ${advice}`, { retryable, details, cause: thrown })
}

interface WaitReportsOptions {
  readonly sent: SentMessage
  readonly progress: Progress
  readonly reconnectMs: number
}

type WaitReports = Pick<WaitForTaskOptions, 'onOpen' | 'onOutage'> & Pick<SendThroughOutageOptions, 'onRefused'>

/** Shows why the task waits, as the platform words it, and outages of the platform. The first such line of a task names it. */
function createWaitReports(
  { command, withOwnCommand }: CommandContext,
  { sent, progress, reconnectMs }: WaitReportsOptions,
): WaitReports {
  const { workspace } = sent
  const startMs = systemClock.monotonicMs()
  let isReported = false
  let isTaskNamed = false
  const report = (text: string) => {
    const { taskId } = sent
    if (!isTaskNamed && taskId !== undefined) {
      progress.print(`the task is ${taskId}; "${command} task show ${taskId}" shows it`)
      isTaskNamed = true
    }
    isReported = true
    progress.update(text)
  }
  return {
    onOpen({ status }) {
      if (systemClock.monotonicMs() - startMs < REASON_AFTER_MS) return
      const reason = partsText(status.message)
      if (status.state === 'TASK_STATE_AUTH_REQUIRED') {
        report(`${workspace} is ${reason}; answer with "${command} pending"`)
      } else if (reason !== '') report(`${workspace}: ${firstLine(reason)}`)
      else if (isReported) progress.update(`${workspace} works`)
    },
    onOutage(error) {
      progress.print(withOwnCommand(error.message))
      const kept = sent.taskId === undefined ? 'then the message is sent again' : `${workspace} keeps the message`
      report(`waiting up to ${formatWait(reconnectMs)} for the platform; ${kept}`)
    },
    onRefused: (error) => progress.update(`retrying: ${withOwnCommand(error.message)}`),
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
  throw new MoleculeError('agent_failed', `${taskEndText(task.status.state, text)}; ${advice}`)
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
