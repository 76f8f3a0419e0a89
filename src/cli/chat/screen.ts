/** What a chat looks like: the events of a turn as lines and streaming text, in colour where a person looks. */
import { isFinal, type Task } from '../../protocol/a2a.ts'
import { replyText, stateWord } from '../commands/a2a/words.ts'
import { withoutControls } from '../output.ts'
import type { ChatEvent, Said } from './conversation.ts'
import { createMarkdown, type Markdown, plainMarkdown } from './markdown.ts'

export interface Screen {
  show(event: Exclude<ChatEvent, { type: 'permission' }>): void
  history(said: readonly Said[]): void
  /** A line of the chat itself, apart from what was said. */
  note(text: string): void
}

export interface ScreenOptions {
  readonly write: (text: string) => void
  readonly styled: boolean
  /** What the agent is called. */
  readonly name: string
}

export function createScreen({ write, styled, name }: ScreenOptions): Screen {
  const dim = (text: string) => (styled ? `\u001b[2m${text}\u001b[0m` : text)
  const fresh = () => (styled ? createMarkdown(write) : plainMarkdown(write))
  let answer: Markdown | undefined
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
      if (event.type === 'tool') return event.state === 'finished' ? undefined : note(toolWords(event))
      if (event.type === 'note') return note(event.text)
      if (event.type === 'again') return note('it begins anew')
      speak(event.unsaid)
      closeAnswer()
      const ending = endWords(event.task)
      if (ending !== undefined) note(ending)
    },
    history(said) {
      for (const { who, text } of said) {
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

const toolWords = ({ name, state }: { name: string; state: string }): string =>
  state === 'failed' ? `${name} failed` : name

/** Nothing for a task that went well: its answer stands there. */
function endWords(task: Task): string | undefined {
  const { state } = task.status
  if (state === 'TASK_STATE_COMPLETED') return undefined
  const words = task.status.message === undefined ? '' : `: ${replyText({ ...task, artifacts: [] })}`
  if (!isFinal(state)) return `it waits for your word${words}`
  return `${stateWord(task)}${words}`
}
