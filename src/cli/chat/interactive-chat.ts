/**
 * A chat at a terminal. A line is a message or a command; a line typed while a turn runs is sent after it. Ctrl-C stops the
 * turn and never the chat, Ctrl-D leaves. A task that still runs then continues, and the next chat shows it.
 */
import { toMoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import type { Part, Task } from '../../protocol/a2a.ts'
import { abortableOr } from '../../wait.ts'
import { attachFiles, partBytes } from '../files/attach-files.ts'
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
import type { ExpandedLine } from './pasted-input.ts'
import type { PermissionPromptOptions } from './permission-prompt.ts'
import { type ChatScreen, createChatScreen } from './screen.ts'
import { createTurnRunner, type TurnRunner } from './turn-runner.ts'
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
  readonly client: ChatPlace['client'] & PermissionPromptOptions['client']
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
  const screen = createChatScreen({ write, styled, name, command: options.command })
  const typed = () => ({ draft: keyboard.draft(), linesWaiting: keyboard.linesWaiting() })
  const status = createTurnStatus({ live, name, dim: screen.dim, columns, typed })
  const reports = {
    onReason: status.setReason,
    onUnreachable: (error: Error) => screen.note(`${error.message}; waiting for the platform`),
  }
  const first = options.open(options.contextId, reports)
  const { messages, open } = await first.history()
  keyboard = openChatKeyboard({
    stdin,
    stdout,
    isDumb,
    history: linesToRecall(messages),
    takeDuringTurn: (line) => takeDuringTurn(chat, line),
    onInterrupt: () => interrupt(chat),
    onKey: status.redraw,
    onPasteTooLong: (max) =>
      screen.note(`the paste is longer than ${max} characters and was left out; attach it as a file`),
  })
  const current: CurrentConversation = { conversation: first, contextId: options.contextId, files: [] }
  const turns = createTurnRunner({ ...options, conversation: () => current.conversation, screen, status, keyboard })
  chat = { ...options, screen, keyboard, turns, current, reports }
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
  readonly current: CurrentConversation
  readonly reports: Pick<ConversationOptions, 'onReason' | 'onUnreachable'>
}

interface CurrentConversation {
  /** `/new` replaces both. */
  conversation: ChatConversation
  contextId: string
  /** Attached files that wait for the next message. */
  files: readonly Part[]
  /** Ends the news of a conversation that `/new` left. */
  newsEnd?: AbortController
}

/** The newest first. The line editor cannot recall several lines as one. */
const linesToRecall = (messages: readonly ChatHistoryMessage[]): string[] =>
  messages
    .filter(({ from, text }) => from === 'you' && text !== '' && !text.includes('\n'))
    .map(({ text }) => text)
    .reverse()

async function runChat(chat: Chat, open: Task | undefined): Promise<void> {
  const { keyboard, screen, turns, current } = chat
  const { leaving } = keyboard
  void showNews(chat)
  if (open !== undefined) {
    screen.note('the last message is still running')
    await abortableOr(turns.run(current.conversation.attach(open, leaving)), leaving, undefined)
  }
  for (;;) {
    const typed = await keyboard.next('you › ')
    if (typed === undefined) return
    if (!typed.isShown) screen.typed(typed.line)
    const meaning = readLine(typed.line, keyboard.expand)
    // Ctrl-D must not wait for a platform that cannot be reached.
    await abortableOr(takeLine(chat, meaning), leaving, undefined)
  }
}

async function takeLine(chat: Chat, meaning: LineMeaning): Promise<void> {
  if (meaning.type === 'files') return await holdFiles(chat, meaning.files)
  // Enter alone sends the files that wait.
  if (meaning.type === 'nothing' && chat.current.files.length > 0)
    return await sendMessage(chat, { text: '', files: [] })
  return meaning.type === 'message' ? await sendMessage(chat, meaning) : await handleLine(chat, meaning)
}

/** What others say, until the conversation is left. It must not end the chat. */
async function showNews(chat: Chat): Promise<void> {
  const { current, screen, keyboard } = chat
  current.newsEnd?.abort()
  const end = new AbortController()
  current.newsEnd = end
  try {
    const signal = AbortSignal.any([end.signal, keyboard.leaving])
    for await (const news of current.conversation.news(signal)) if (!signal.aborted) screen.news(news)
  } catch (thrown) {
    screen.note(`what others write here is not shown any more: ${toMoleculeError(thrown).message}`)
  }
}

/** Files without a text are rarely a whole message: the question comes next. */
async function holdFiles({ screen, current }: Chat, paths: readonly string[]): Promise<void> {
  try {
    current.files = [...current.files, ...(await readFiles(screen, paths, current.files))]
    screen.note('type your question; Enter alone sends the file without one, Ctrl-C drops it')
  } catch (thrown) {
    screen.note(`${toMoleculeError(thrown).message}; nothing was attached`)
  }
}

async function readFiles(
  screen: ChatScreen,
  paths: readonly string[],
  attached: readonly Part[],
): Promise<readonly Part[]> {
  const files = await attachFiles(paths, attached)
  for (const file of files) screen.note(`attached ${file.filename} (${formatBytes(partBytes(file))})`)
  return files
}

async function sendMessage(
  { screen, turns, current, keyboard }: Chat,
  { text, files: paths }: Pick<ExpandedLine, 'text' | 'files'>,
): Promise<void> {
  try {
    const files = [...current.files, ...(await readFiles(screen, paths, current.files))]
    current.files = []
    await turns.run(current.conversation.say({ text, files }, keyboard.leaving))
  } catch (thrown) {
    screen.note(`${toMoleculeError(thrown).message}; nothing was sent`)
  }
}

/** A command acts at once, also during a turn; only `/new` waits for its end, as messages do. */
function takeDuringTurn(chat: Chat, line: string): boolean {
  const meaning = readLine(line, chat.keyboard.expand)
  if (meaning.type === 'message' || meaning.type === 'files' || (meaning.type === 'command' && meaning.name === 'new'))
    return false
  void handleLine(chat, meaning)
  return true
}

/** A line that the chat itself handles. */
type OwnLine = Exclude<LineMeaning, { type: 'message' | 'files' }>

/** Runs a command. A failure becomes a note and does not end the chat. */
async function handleLine(chat: Chat, meaning: OwnLine): Promise<void> {
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
  const { turns, keyboard, current } = chat
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
      return await describePlace(chat, current.contextId)
    case 'files':
      return await listFiles(current.conversation, chat)
    case 'quit':
      keyboard.leave()
      return []
  }
}

function startConversation(chat: Chat): string[] {
  const { current, open, reports, command, name } = chat
  const before = current.contextId
  current.contextId = `terminal-${ulid()}`
  current.conversation = open(current.contextId, reports)
  void showNews(chat)
  return [
    `new conversation ${current.contextId}`,
    `"${command} chat ${shellQuoted(name)} --context ${shellQuoted(before)}" continues the one before`,
  ]
}

function interrupt({ turns, keyboard, screen, current }: Chat): void {
  if (turns.interrupt() || keyboard.dropDraft()) return
  screen.note(current.files.length === 0 ? 'Ctrl-D leaves' : 'the attached files are dropped')
  current.files = []
}
