/**
 * A chat whose input is a pipe or a file: one message a line, in order. Only answers go to stdout; why a message waits, how
 * long it takes and where files were saved are plain lines on stderr. A failed message is reported there too and makes the
 * result false; the following lines are still sent.
 */
import { createInterface } from 'node:readline'
import { printable, printableName, withoutControls } from '../../printable.ts'
import { isFinal, type Task, taskStateText } from '../../protocol/a2a.ts'
import { type SaveOptions, saveAnswerFiles } from '../files/save-files.ts'
import { formatSeconds } from '../terminal/human-time.ts'
import { withOwnCommand } from '../terminal/own-command.ts'
import { REASON_AFTER_MS, withoutNumbers } from '../terminal/progress.ts'
import { noticeText, partsText } from '../terminal/task-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { ChatConversation, ConversationOptions } from './conversation.ts'
import { createChatScreen } from './screen.ts'

export interface PipedChatOptions extends SaveOptions {
  readonly open: (reports: Pick<ConversationOptions, 'onReason' | 'onUnreachable'>) => ChatConversation
  readonly terminal: Terminal
  /** Name of the agent. */
  readonly name: string
}

/** True when every message was answered. */
export async function pipedChat(options: PipedChatOptions): Promise<boolean> {
  const { terminal } = options
  const waits = createWaitLines(options)
  const conversation = options.open({
    onReason: waits.setReason,
    onUnreachable: (error) =>
      terminal.err(`· ${withoutControls(withOwnCommand(error.message, options.command))}; waiting for the platform\n`),
  })
  const stop = new AbortController()
  const interrupt = () => {
    conversation.stop().catch((error: Error) => terminal.err(`error: ${error.message}\n`))
    stop.abort()
  }
  process.once('SIGINT', interrupt)
  let allAnswered = true
  try {
    await conversation.history()
    for await (const line of createInterface({ input: terminal.input() })) {
      if (stop.signal.aborted) break
      if (line.trim() === '') continue
      waits.begin()
      const answered = await sendLine(conversation, { ...options, line }, stop.signal).finally(waits.end)
      allAnswered &&= answered
    }
  } finally {
    process.off('SIGINT', interrupt)
  }
  return allAnswered && !stop.signal.aborted
}

async function sendLine(
  conversation: ChatConversation,
  options: PipedChatOptions & { readonly line: string },
  signal: AbortSignal,
): Promise<boolean> {
  const { line, terminal, name, command } = options
  const screen = createChatScreen({ write: terminal.out, styled: false, name, command })
  let answer = ''
  for await (const event of conversation.say({ text: line, files: [] }, signal)) {
    if (event.type === 'text') answer += event.delta
    if (event.type === 'again') answer = ''
    if (event.type === 'permission') {
      const { id, tool, subject } = event.pending
      const use = `${printableName(tool)} (${printable(subject)})`
      terminal.err(`${printableName(name)} asks to use ${use}; answer with: ${command} pending allow ${id}\n`)
    }
    if (event.type !== 'end') continue
    const { task, unshown } = event
    screen.show({ type: 'text', delta: answer + unshown })
    screen.show({ type: 'end', task: { ...task, status: { state: 'TASK_STATE_COMPLETED' } }, unshown: '' })
    const notice = noticeText(task)
    if (notice !== undefined) terminal.err(`note: ${withoutControls(notice)}\n`)
    const isSaved = await showFiles(task, options)
    return showEnd(task, options) && isSaved
  }
  return false
}

/** False when a file could not be saved. */
async function showFiles(task: Task, options: PipedChatOptions): Promise<boolean> {
  const { terminal } = options
  try {
    for (const text of await saveAnswerFiles(task, options)) terminal.err(`${withoutControls(text)}\n`)
    return true
  } catch (thrown) {
    terminal.err(`error: ${(thrown as Error).message}\n`)
    return false
  }
}

/** True when the message was answered, if only with a question. */
function showEnd({ id, status }: Task, { terminal, command }: PipedChatOptions): boolean {
  if (status.state === 'TASK_STATE_COMPLETED') return true
  const text = partsText(status.message)
  if (!isFinal(status.state)) {
    // A question goes to stdout like an answer, and the next line answers it.
    terminal.out(text === '' ? '' : `${text}\n`)
    return true
  }
  const state = taskStateText(status.state)
  terminal.err(
    `error: the message failed (${state}): ${withoutControls(text)}; "${command} explain ${id}" shows more\n`,
  )
  return false
}

const LINE_MS = 30_000

/** Lines about a wait: each new reason once, and how long it has lasted every 30 s. */
function createWaitLines({ terminal, name }: PipedChatOptions) {
  let startMs = 0
  let reason = ''
  let timer: NodeJS.Timeout | undefined
  const text = () => withoutControls(reason === '' ? `${name} works` : `${name}: ${reason}`)
  return {
    begin() {
      startMs = performance.now()
      reason = ''
      const elapsed = () => formatSeconds((performance.now() - startMs) / 1000)
      timer = setInterval(() => terminal.err(`${text()} (${elapsed()})\n`), LINE_MS)
    },
    setReason(next: string) {
      if (performance.now() - startMs < REASON_AFTER_MS) return
      const isNew = withoutNumbers(next) !== withoutNumbers(reason)
      reason = next
      if (isNew && next !== '') terminal.err(`${text()}\n`)
    },
    end: () => clearInterval(timer),
  }
}
