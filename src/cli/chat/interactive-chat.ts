/**
 * A chat at a terminal. A line is a message or a command; a line typed while a turn runs is sent after it. Ctrl-C stops the
 * turn and never the chat, Ctrl-D leaves. A task that still runs then continues, and the next chat shows it.
 */
import { toMoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import type { Task } from '../../protocol/a2a.ts'
import { abortableOr } from '../../wait.ts'
import { attachFiles } from '../files/attach-files.ts'
import { formatBytes } from '../terminal/output.ts'
import { shellQuoted } from '../terminal/own-command.ts'
import type { Terminal } from '../terminal/terminal.ts'
import {
  type ChatPlace,
  describePlace,
  HELP,
  type LineMeaning,
  listFiles,
  readLine,
  runModelCommand,
} from './chat-commands.ts'
import type { ChatConversation, ChatHistoryMessage, ConversationOptions } from './conversation.ts'
import { type ChatKeyboard, openChatKeyboard } from './keyboard.ts'
import { createLiveArea } from './live-area.ts'
import { type ChatScreen, createChatScreen } from './screen.ts'
import { type ChatPermissions, createTurnRunner, type TurnRunner } from './turn-runner.ts'
import { createTurnStatus } from './turn-status.ts'

export interface InteractiveChatOptions extends ChatPlace {
  readonly open: (
    contextId: string,
    reports: Pick<ConversationOptions, 'onReason' | 'onUnreachable'>,
  ) => ChatConversation
  /** The conversation to begin with. */
  readonly contextId: string
  readonly terminal: Terminal
  readonly stdin: NodeJS.ReadStream
  /** Name of the agent. */
  readonly name: string
  readonly permissions: ChatPermissions
}

/** Resolves when the user leaves. */
export async function interactiveChat(options: InteractiveChatOptions): Promise<void> {
  const { terminal, stdin, name } = options
  const { stdout } = process
  const isDumb = terminal.env['TERM'] === 'dumb'
  const styled = !terminal.env['NO_COLOR'] && !isDumb
  // Assigned before any of the callbacks below can run.
  let keyboard: ChatKeyboard
  let chat: Chat
  const columns = () => stdout.columns
  const { drawing: draw = terminal.out } = terminal
  const live = isDumb ? { write: draw, set: () => undefined } : createLiveArea({ write: draw, columns })
  const write = (text: string) => (keyboard?.writeAbovePrompt(text) ? undefined : live.write(text))
  const screen = createChatScreen({ write, styled, name })
  const typed = () => ({ draft: keyboard.draft(), linesWaiting: keyboard.linesWaiting() })
  const status = createTurnStatus({ live, name, dim: screen.dim, columns, typed })
  const reports = {
    onReason: status.setReason,
    onUnreachable: (error: Error) => screen.note(`${error.message}; waiting for the platform`),
  }
  const first = options.open(options.contextId, reports)
  const { messages, open } = await first.history()
  keyboard = openChatKeyboard({
    ...{ stdin, stdout, isDumb, history: linesToRecall(messages) },
    takeDuringTurn: (line) => takeDuringTurn(chat, line),
    onInterrupt: () => interrupt(chat),
    onKey: status.redraw,
    onPasteTooLong: (max) =>
      screen.note(`the paste is longer than ${max} characters and was left out; attach it as a file`),
  })
  const session = { conversation: first, contextId: options.contextId }
  const turns = createTurnRunner({ ...options, conversation: () => session.conversation, screen, status, keyboard })
  chat = { ...options, screen, keyboard, turns, session, reports }
  screen.history(messages)
  screen.note(`you talk to ${name}; Ctrl-C stops a turn, Ctrl-D leaves, /help shows the commands`)
  await runChat(chat, open)
  status.end()
  keyboard.leave()
  stdout.write('\n')
}

interface Chat extends InteractiveChatOptions {
  readonly screen: ChatScreen
  readonly keyboard: ChatKeyboard
  readonly turns: TurnRunner
  /** `/new` replaces both. */
  readonly session: { conversation: ChatConversation; contextId: string }
  readonly reports: Pick<ConversationOptions, 'onReason' | 'onUnreachable'>
}

/** The newest first. The line editor cannot recall several lines as one. */
const linesToRecall = (messages: readonly ChatHistoryMessage[]): string[] =>
  messages
    .filter(({ who, text }) => who === 'you' && text !== '' && !text.includes('\n'))
    .map(({ text }) => text)
    .reverse()

async function runChat(chat: Chat, open: Task | undefined): Promise<void> {
  const { keyboard, screen, turns, session } = chat
  const { leaving } = keyboard
  if (open !== undefined) {
    screen.note('the last message is still running')
    await abortableOr(turns.run(session.conversation.attach(open, leaving)), leaving, undefined)
  }
  for (;;) {
    const typed = await keyboard.next('you › ')
    if (typed === undefined) return
    if (!typed.isShown) screen.typed(typed.line)
    const meaning = readLine(typed.line, keyboard.expand)
    // Ctrl-D must not wait for a platform that cannot be reached.
    if (meaning.type === 'message') await abortableOr(sendMessage(chat, meaning), leaving, undefined)
    else await abortableOr(handleLine(chat, meaning), leaving, undefined)
  }
}

async function sendMessage(chat: Chat, meaning: Extract<LineMeaning, { type: 'message' }>): Promise<void> {
  const { screen, turns, session, keyboard } = chat
  try {
    const files = await attachFiles(meaning.files)
    for (const { filename, raw = '' } of files) {
      screen.note(`attached ${filename} (${formatBytes(Buffer.byteLength(raw, 'base64'))})`)
    }
    await turns.run(session.conversation.say({ text: meaning.text, files }, keyboard.leaving))
  } catch (thrown) {
    screen.note(`${toMoleculeError(thrown).message}; nothing was sent`)
  }
}

/** A command acts at once, also during a turn; only `/new` waits for its end, as messages do. */
function takeDuringTurn(chat: Chat, line: string): boolean {
  const meaning = readLine(line, chat.keyboard.expand)
  if (meaning.type === 'message' || (meaning.type === 'command' && meaning.name === 'new')) return false
  void handleLine(chat, meaning)
  return true
}

/** Runs a command. A failure becomes a note and does not end the chat. */
async function handleLine(chat: Chat, meaning: Exclude<LineMeaning, { type: 'message' }>): Promise<void> {
  const { screen } = chat
  if (meaning.type === 'nothing') return
  if (meaning.type === 'unknown') {
    return screen.note(
      `there is no command /${meaning.name}; /help lists them, //${meaning.name} sends it to the agent`,
    )
  }
  try {
    for (const line of await runCommand(chat, meaning)) screen.note(line)
  } catch (thrown) {
    screen.note(toMoleculeError(thrown).message)
  }
}

/** The lines to show. */
async function runCommand(
  chat: Chat,
  { name, argument }: Extract<LineMeaning, { type: 'command' }>,
): Promise<readonly string[]> {
  const { turns, keyboard, session } = chat
  switch (name) {
    case 'help':
      return HELP
    case 'new':
      return startConversation(chat)
    case 'stop':
      return turns.interrupt() ? [] : ['nothing runs']
    case 'model':
      return [await runModelCommand(chat, argument)]
    case 'where':
      return await describePlace(chat, session.contextId)
    case 'files':
      return await listFiles(session.conversation, chat)
    case 'quit':
      keyboard.leave()
      return []
  }
}

function startConversation({ session, open, reports, command, name }: Chat): string[] {
  const before = session.contextId
  session.contextId = `terminal-${ulid()}`
  session.conversation = open(session.contextId, reports)
  return [
    `new conversation ${session.contextId}`,
    `"${command} chat ${shellQuoted(name)} --context ${shellQuoted(before)}" continues the one before`,
  ]
}

function interrupt({ turns, keyboard, screen }: Chat): void {
  if (turns.interrupt()) return
  if (!keyboard.dropDraft()) screen.note('Ctrl-D leaves')
}
