/**
 * A chat at a terminal. A line is a message; a line typed while a turn runs is sent after it. Ctrl-C stops the turn and
 * never the chat, Ctrl-D leaves. A task that still runs then continues, and the next chat shows it.
 */
import type { Interface } from 'node:readline'
import { createInterface } from 'node:readline'
import type { PendingAskView } from '../../client/platform-client.ts'
import { systemClock } from '../../clock.ts'
import { toMoleculeError } from '../../errors.ts'
import type { Task } from '../../protocol/a2a.ts'
import { abortableOr, createWakeUp, sleep } from '../../wait.ts'
import { withoutControls } from '../terminal/output.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { ChatConversation, ChatEvent } from './conversation.ts'
import { type ChatScreen, createChatScreen } from './screen.ts'

/** The permission requests of agents. */
export interface ChatPermissions {
  answerAsk(id: string, decision: 'allow' | 'deny'): Promise<void>
  listPendingAsks(): Promise<readonly { readonly id: string }[]>
}

export interface InteractiveChatOptions {
  readonly conversation: ChatConversation
  readonly terminal: Terminal
  readonly stdin: NodeJS.ReadStream
  readonly name: string
  readonly permissions: ChatPermissions
}

/** Resolves when the user leaves. */
export async function interactiveChat(options: InteractiveChatOptions): Promise<void> {
  const { conversation, terminal, stdin, name } = options
  const screen = createChatScreen({ write: terminal.out, styled: !terminal.env['NO_COLOR'], name })
  const { messages, open } = await conversation.history()
  const typed = messages.filter(({ who }) => who === 'you').map(({ text }) => text)
  // Before any output: a Ctrl-D typed while the terminal is still in line mode would be lost.
  const lines = createInterface({ input: stdin, output: process.stdout, history: typed.reverse() })
  screen.history(messages)
  screen.note(`you talk to ${name}; Ctrl-C stops a turn, Ctrl-D leaves`)
  const keyboard = createChatKeyboard(lines)
  const turns = createTurnRunner({ ...options, screen, keyboard })
  lines.on('SIGINT', () => {
    if (turns.interrupt()) return
    process.stdout.write('\n')
    screen.note('Ctrl-D leaves')
    lines.prompt()
  })
  await runChat(turns, { conversation, keyboard, screen, open })
  process.stdout.write('\n')
}

async function runChat(
  turns: TurnRunner,
  {
    conversation,
    keyboard,
    screen,
    open,
  }: { conversation: ChatConversation; keyboard: ChatKeyboard; screen: ChatScreen; open: Task | undefined },
): Promise<void> {
  const { leaving } = keyboard
  if (open !== undefined) {
    screen.note('the last message is still running')
    await abortableOr(turns.run(conversation.attach(open, leaving)), leaving, undefined)
  }
  for (;;) {
    const line = await keyboard.next('you › ')
    if (line === undefined) return
    if (line.trim() === '') continue
    // Ctrl-D must not wait for a platform that cannot be reached.
    await abortableOr(turns.run(conversation.say(line, leaving)), leaving, undefined)
  }
}

interface TurnRunner {
  /** Shows a turn until its end. A failure becomes a note and does not end the chat. */
  run(events: AsyncIterable<ChatEvent>): Promise<void>
  /** Stops the running turn; false when none runs. */
  interrupt(): boolean
}

type TurnRunnerContext = InteractiveChatOptions & { readonly screen: ChatScreen; readonly keyboard: ChatKeyboard }

function createTurnRunner(parts: TurnRunnerContext): TurnRunner {
  const { conversation, screen } = parts
  let stopped: AbortController | undefined
  return {
    async run(events) {
      const stop = new AbortController()
      stopped = stop
      try {
        for await (const event of events) {
          if (event.type === 'permission') await askPermission(event.pending, parts, stop.signal)
          else screen.show(event)
        }
      } catch (thrown) {
        screen.note(toMoleculeError(thrown).message)
      } finally {
        stopped = undefined
      }
    },
    interrupt() {
      if (stopped === undefined) return false
      // Also withdraws an open permission prompt.
      stopped.abort()
      conversation.stop().then(
        () => screen.note('stopping'),
        (error: Error) => screen.note(`the turn could not be stopped: ${error.message}`),
      )
      return true
    },
  }
}

async function askPermission(
  { id, tool, subject }: PendingAskView,
  parts: TurnRunnerContext,
  stop: AbortSignal,
): Promise<void> {
  const { screen, keyboard, permissions } = parts
  screen.note(`${tool}: ${withoutControls(subject)}`)
  const answered = new AbortController()
  const ends = AbortSignal.any([stop, answered.signal, keyboard.leaving])
  void watchUntilAnswered(id, permissions, ends).then(() => answered.abort())
  const answer = await keyboard.nextFresh('allow it? (y/n) ', ends)
  answered.abort()
  if (answer === undefined) {
    process.stdout.write('\n')
    return stop.aborted ? undefined : screen.note('answered elsewhere')
  }
  const decision = /^y(es)?$/i.test(answer.trim()) ? 'allow' : 'deny'
  try {
    await permissions.answerAsk(id, decision)
    screen.note(decision === 'allow' ? 'allowed' : 'denied')
  } catch (thrown) {
    // Answered elsewhere, or too late: the turn and the chat continue.
    screen.note(toMoleculeError(thrown).message)
  }
}

const POLL_MS = 2000

/** Resolves when the request is answered elsewhere, or when the signal aborts. A poll that fails counts as still open. */
async function watchUntilAnswered(id: string, permissions: ChatPermissions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(systemClock, POLL_MS, signal)
    const open = await permissions.listPendingAsks().catch(() => [{ id }])
    if (!open.some((one) => one.id === id)) return
  }
}

interface ChatKeyboard {
  /** The next line; undefined when the signal aborts first, or when input has ended. */
  next(prompt: string, signal?: AbortSignal): Promise<string | undefined>
  /** Like `next`, but ignores earlier lines: an answer must not have been typed before its question was shown. */
  nextFresh(prompt: string, signal?: AbortSignal): Promise<string | undefined>
  /** Aborts when the user leaves. */
  readonly leaving: AbortSignal
}

/** The lines that a user types in a chat, in order, one per call. */
function createChatKeyboard(lines: Interface): ChatKeyboard {
  const leaving = new AbortController()
  const typed: string[] = []
  const changed = createWakeUp()
  lines.on('line', (line) => {
    typed.push(line)
    changed.wake()
  })
  lines.on('close', () => {
    leaving.abort()
    changed.wake()
  })
  const next: ChatKeyboard['next'] = async (prompt, signal) => {
    const isEmpty = () => typed.length === 0 && !leaving.signal.aborted && signal?.aborted !== true
    lines.setPrompt(prompt)
    if (isEmpty()) lines.prompt()
    while (isEmpty()) await changed.wait(signal)
    return signal?.aborted === true ? undefined : typed.shift()
  }
  return {
    next,
    async nextFresh(prompt, signal) {
      const before = typed.splice(0)
      try {
        return await next(prompt, signal)
      } finally {
        typed.unshift(...before)
      }
    },
    leaving: leaving.signal,
  }
}
