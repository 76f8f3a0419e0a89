/**
 * A chat whose input is a pipe or a file: one message a line, in order. Only answers go to stdout. A failed message is
 * reported on stderr and makes the result false; the following lines are still sent.
 */
import { createInterface } from 'node:readline'
import { isFinal } from '../../protocol/a2a.ts'
import { partsText, taskStateText } from '../terminal/task-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
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

async function sendLine(
  conversation: ChatConversation,
  { line, terminal, name }: { line: string; terminal: Terminal; name: string },
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
    const statusText = partsText(task.status.message)
    // A question goes to stdout like an answer, and the next line answers it.
    if (!isFinal(task.status.state)) terminal.out(statusText === '' ? '' : `${statusText}\n`)
    else
      terminal.err(
        `error: the message failed (${taskStateText(task.status.state)}): ${statusText}; "molecule explain ${task.id}" shows more\n`,
      )
    return !isFinal(task.status.state)
  }
  return false
}
