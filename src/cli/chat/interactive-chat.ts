/**
 * A chat with a person at the keyboard. A line is a message; what is typed while a turn runs is sent after it. Ctrl-C
 * stops the turn and never the chat, Ctrl-D leaves; a task that is left running goes on and is found again next time.
 */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { systemClock } from '../../clock.ts'
import { toMoleculeError } from '../../errors.ts'
import type { Task } from '../../protocol/a2a.ts'
import { sleep } from '../../wait.ts'
import type { Terminal } from '../command-line.ts'
import { withoutControls } from '../terminal/output.ts'
import type { ChatConversation, ChatEvent } from './conversation.ts'
import { type ChatKeyboard, createChatKeyboard } from './keyboard.ts'
import { type ChatScreen, createChatScreen } from './screen.ts'

/** A person's word on what agents want to do. */
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

/** Resolves when the person leaves. */
export async function interactiveChat(options: InteractiveChatOptions): Promise<void> {
  const { conversation, terminal, stdin, name } = options
  const screen = createChatScreen({ write: terminal.out, styled: !terminal.env['NO_COLOR'], name })
  const { messages, open } = await conversation.history()
  const typed = messages.filter(({ who }) => who === 'you').map(({ text }) => text)
  // Before a word is shown: a Ctrl-D that comes while the terminal still reads whole lines is heard by nobody.
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

interface Talk {
  readonly conversation: ChatConversation
  readonly keyboard: ChatKeyboard
  readonly screen: ChatScreen
  readonly open: Task | undefined
}

async function runChat(turns: TurnRunner, { conversation, keyboard, screen, open }: Talk): Promise<void> {
  const { leaving } = keyboard
  const left = leaving.aborted ? Promise.resolve() : once(leaving, 'abort')
  if (open !== undefined) {
    screen.note('the last message is still being worked on')
    await Promise.race([turns.run(conversation.attach(open, leaving)), left])
  }
  for (;;) {
    const line = await keyboard.next('you › ')
    if (line === undefined) return
    if (line.trim() === '') continue
    // Whoever leaves does not wait for a platform that is away.
    await Promise.race([turns.run(conversation.say(line, leaving)), left])
  }
}

interface TurnRunner {
  /** Shows a turn to its end. One that fails is told and does not end the chat. */
  run(events: AsyncIterable<ChatEvent>): Promise<void>
  /** Stops the turn that runs; false when none does. */
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
      // Whoever is asked for a permission need not answer it any more.
      stopped.abort()
      conversation.stop().then(
        () => screen.note('stopping'),
        (error: Error) => screen.note(`it could not be stopped: ${error.message}`),
      )
      return true
    },
  }
}

type Asked = (ChatEvent & { type: 'permission' })['pending']

async function askPermission({ id, tool, subject }: Asked, parts: TurnRunnerContext, stop: AbortSignal): Promise<void> {
  const { screen, keyboard, permissions } = parts
  screen.note(`${tool}: ${withoutControls(subject)}`)
  const gone = new AbortController()
  const ends = AbortSignal.any([stop, gone.signal, keyboard.leaving])
  void watchUntilAnswered(id, permissions, ends).then(() => gone.abort())
  const answer = await keyboard.nextFresh('allow it? (y/n) ', ends)
  gone.abort()
  if (answer === undefined) {
    process.stdout.write('\n')
    return stop.aborted ? undefined : screen.note('it was answered elsewhere')
  }
  const decision = /^y(es)?$/i.test(answer.trim()) ? 'allow' : 'deny'
  try {
    await permissions.answerAsk(id, decision)
    screen.note(decision === 'allow' ? 'allowed' : 'denied')
  } catch (thrown) {
    // Answered elsewhere or too late: the turn goes on either way, and so does the chat.
    screen.note(toMoleculeError(thrown).message)
  }
}

const POLL_MS = 2000

/** Resolves when the question is no longer open, or with the signal. A look that fails says nothing: it stays open. */
async function watchUntilAnswered(id: string, permissions: ChatPermissions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(systemClock, POLL_MS, signal)
    const open = await permissions.listPendingAsks().catch(() => [{ id }])
    if (!open.some((one) => one.id === id)) return
  }
}
