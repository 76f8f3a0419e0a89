/**
 * A chat whose input is a pipe or a file: one message a line, in order; the answers go to stdout and nothing else does.
 * A message that fails is said on stderr, the rest goes on, and the exit code tells.
 */
import { createInterface } from 'node:readline'
import { isFinal } from '../../protocol/a2a.ts'
import type { Terminal } from '../command-line.ts'
import { taskStateText } from '../terminal/task-text.ts'
import type { ChatConversation } from './conversation.ts'
import { createChatScreen } from './screen.ts'

/** True when every message was answered. */
export async function pipedChat(conversation: ChatConversation, terminal: Terminal, name: string): Promise<boolean> {
  const stop = new AbortController()
  const interrupt = () => {
    conversation.stop().catch((error: Error) => terminal.err(`error: ${error.message}\n`))
    stop.abort()
  }
  process.once('SIGINT', interrupt)
  let allAnswered = true
  try {
    for await (const line of createInterface({ input: terminal.input() })) {
      if (stop.signal.aborted) break
      if (line.trim() === '') continue
      const answered = await sendLine(conversation, { line, terminal, name }, stop.signal)
      allAnswered &&= answered
    }
  } finally {
    process.off('SIGINT', interrupt)
  }
  return allAnswered && !stop.signal.aborted
}

interface Exchange {
  readonly line: string
  readonly terminal: Terminal
  readonly name: string
}

async function sendLine(
  conversation: ChatConversation,
  { line, terminal, name }: Exchange,
  signal: AbortSignal,
): Promise<boolean> {
  const screen = createChatScreen({ write: terminal.out, styled: false, name })
  let answer = ''
  for await (const event of conversation.say(line, signal)) {
    if (event.type === 'text') answer += event.delta
    if (event.type === 'again') answer = ''
    if (event.type === 'permission') {
      const { id, tool, subject } = event.pending
      terminal.err(`${name} asks to use ${tool} (${subject}); answer with: molecule pending allow ${id}\n`)
    }
    if (event.type !== 'end') continue
    const { task, unshown } = event
    screen.show({ type: 'text', delta: answer + unshown })
    screen.show({ type: 'end', task: { ...task, status: { state: 'TASK_STATE_COMPLETED' } }, unshown: '' })
    if (task.status.state === 'TASK_STATE_COMPLETED') return true
    const statusText = (task.status.message?.parts ?? []).map(({ text }) => text ?? '').join('')
    // A question is an answer of a kind: the next line is what it asks for.
    if (!isFinal(task.status.state)) terminal.out(statusText === '' ? '' : `${statusText}\n`)
    else
      terminal.err(
        `error: the message failed (${taskStateText(task)}): ${statusText}; "molecule explain ${task.id}" tells more\n`,
      )
    return !isFinal(task.status.state)
  }
  return false
}
