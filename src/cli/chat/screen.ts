/** What a chat looks like: the events of a turn as lines and streaming text, in colour where a person looks. */
import { isFinal, type Task } from '../../protocol/a2a.ts'
import { withoutControls } from '../terminal/output.ts'
import { replyText, taskStateText } from '../terminal/task-text.ts'
import type { ChatEvent, ChatHistoryMessage } from './conversation.ts'
import { createMarkdownWriter, createPlainWriter, type MarkdownWriter } from './markdown.ts'

export interface ChatScreen {
  show(event: Exclude<ChatEvent, { type: 'permission' }>): void
  history(messages: readonly ChatHistoryMessage[]): void
  /** A line of the chat itself, apart from what was said. */
  note(text: string): void
}

export interface ChatScreenOptions {
  readonly write: (text: string) => void
  readonly styled: boolean
  /** What the agent is called. */
  readonly name: string
}

export function createChatScreen({ write, styled, name }: ChatScreenOptions): ChatScreen {
  const dim = (text: string) => (styled ? `\u001b[2m${text}\u001b[0m` : text)
  const fresh = () => (styled ? createMarkdownWriter(write) : createPlainWriter(write))
  let answer: MarkdownWriter | undefined
  const closeAnswer = () => {
    answer?.end()
    if (answer?.atLineStart() === false) write('\n')
    answer = undefined
  }
  const note = (text: string) => {
    closeAnswer()
    write(`${dim(`· ${withoutControls(text).replaceAll(/\s+/g, ' ')}`)}\n`)
  }
  const speak = (text: string) => {
    if (text === '') return
    answer ??= fresh()
    answer.push(text)
  }
  return {
    note,
    show(event) {
      if (event.type === 'text') return speak(event.delta)
      if (event.type === 'tool') return event.state === 'finished' ? undefined : note(toolText(event))
      if (event.type === 'note') return note(event.text)
      if (event.type === 'again') return note('it begins anew')
      speak(event.unshown)
      closeAnswer()
      const ending = endText(event.task)
      if (ending !== undefined) note(ending)
    },
    history(messages) {
      for (const { who, text } of messages) {
        if (who === 'you') write(`${dim(`you › ${withoutControls(text)}`)}\n`)
        else {
          write(dim(`${withoutControls(name)} › `))
          speak(text)
          closeAnswer()
        }
      }
    },
  }
}

const toolText = ({ name, state }: { name: string; state: string }): string =>
  state === 'failed' ? `${name} failed` : name

/** Nothing for a task that went well: its answer stands there. */
function endText(task: Task): string | undefined {
  const { state } = task.status
  if (state === 'TASK_STATE_COMPLETED') return undefined
  const statusText = task.status.message === undefined ? '' : `: ${replyText({ ...task, artifacts: [] })}`
  if (!isFinal(state)) return `it waits for your word${statusText}`
  return `${taskStateText(task)}${statusText}`
}
