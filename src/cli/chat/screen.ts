/** The output of a chat: events of a turn as streaming text and note lines, with styles on a terminal. */

import { printable, printableName, withoutControls } from '../../printable.ts'
import { isFinal, isInterrupted, type Task, taskStateText } from '../../protocol/a2a.ts'
import { shorten } from '../../truncate.ts'
import { withOwnCommand } from '../terminal/own-command.ts'
import { noticeText, replyText } from '../terminal/task-text.ts'
import type { ChatHistoryMessage } from './conversation.ts'
import type { ChatNews } from './conversation-news.ts'
import { createMarkdownWriter, createPlainWriter, type MarkdownWriter } from './markdown.ts'
import type { ChatEvent } from './turn-events.ts'

export interface ChatScreen {
  show(event: Exclude<ChatEvent, { type: 'permission' }>): void
  history(messages: readonly ChatHistoryMessage[]): void
  /** What somebody says now, outside of the turn that is shown. */
  news(news: ChatNews): void
  /** A line that the user typed while no prompt was shown. */
  typed(line: string): void
  /** A line of the chat itself, apart from the messages. */
  note(text: string): void
  /** The text as it looks in a note. */
  dim(text: string): string
}

export interface ChatScreenOptions {
  readonly write: (text: string) => void
  readonly styled: boolean
  /** Name of the agent. */
  readonly name: string
  /** How a command begins that a note names. */
  readonly command: string
}

export function createChatScreen({ write, styled, name, command }: ChatScreenOptions): ChatScreen {
  const dim = (text: string) => (styled ? `\u001b[2m${text}\u001b[0m` : text)
  const createWriter = (to = write) => (styled ? createMarkdownWriter(to) : createPlainWriter(to))
  let answer: MarkdownWriter | undefined
  const closeAnswer = () => {
    answer?.end()
    if (answer?.atLineStart() === false) write('\n')
    answer = undefined
  }
  const note = (text: string) => {
    closeAnswer()
    write(`${dim(`· ${withoutControls(withOwnCommand(text, command)).replaceAll(/\s+/g, ' ')}`)}\n`)
  }
  const writeAnswer = (text: string) => {
    if (text === '') return
    answer ??= createWriter()
    answer.push(text)
  }
  const showMessage = ({ from, text, files }: ChatHistoryMessage) => {
    // In one piece: at the prompt each piece is written above it.
    let piece = ''
    const collect = (more: string) => {
      piece += more
    }
    if (from === 'agent') {
      collect(dim(`${withoutControls(name)} › `))
      const writer = createWriter(collect)
      writer.push(withoutControls(text))
      writer.end()
      if (text === '' || !writer.atLineStart()) collect('\n')
    } else collect(`${dim(`${from === 'you' ? 'you' : from.name} › ${withoutControls(text)}`)}\n`)
    write(piece)
    for (const file of files) note(`file ${file}`)
  }
  return {
    note,
    dim,
    typed: (line) => write(`you › ${withoutControls(line)}\n`),
    show(event) {
      if (event.type === 'text') return writeAnswer(event.delta)
      if (event.type === 'tool') return event.state === 'finished' ? undefined : note(toolText(event))
      if (event.type === 'note') return note(event.text)
      if (event.type === 'again') return note('the answer starts again')
      writeAnswer(event.unshown)
      closeAnswer()
      const ending = endText(event.task)
      if (ending !== undefined) note(ending)
    },
    history: (messages) => messages.forEach(showMessage),
    news(news) {
      if (news.type === 'note') return note(news.text)
      closeAnswer()
      showMessage(news)
    },
  }
}

/** Of a tool's subject. The log has more of it. */
const SUBJECT_CHARACTERS_MAX = 120

function toolText({ name, subject, state }: { name: string; subject: string; state: string }): string {
  const tool = printableName(name)
  if (state === 'failed') return `${tool} failed`
  const cut = shorten(subject, SUBJECT_CHARACTERS_MAX)
  return cut === '' ? tool : `${tool}: ${printable(cut)}`
}

/** Undefined for a completed task without a notice: its answer is shown. */
function endText(task: Task): string | undefined {
  const { state } = task.status
  if (state === 'TASK_STATE_COMPLETED') return noticeText(task)
  const statusText = task.status.message === undefined ? '' : `: ${replyText({ ...task, artifacts: [] })}`
  if (isInterrupted(state)) return `waiting for your answer${statusText}`
  if (!isFinal(state)) return 'answered elsewhere'
  return `${taskStateText(state)}${statusText}`
}
