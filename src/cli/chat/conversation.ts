/**
 * One conversation with a workspace, as a chat uses it: the history, turns whose events arrive as they happen, and what
 * others say. It follows the event log by number, so a restart of the platform in mid-turn costs a pause and no text.
 */
import {
  type ChatHistory,
  type ChatMessageView,
  EMPTY_HISTORY,
  isOpen,
  isQuestion,
  withNewest,
} from '../../client/live-conversation.ts'
import type { PlatformClient } from '../../client/platform-client.ts'
import { withRetries } from '../../client/retry.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { isFinal, type Message, type Part, type Task } from '../../protocol/a2a.ts'
import { partsText } from '../terminal/task-text.ts'
import { type ChatNews, followNews } from './conversation-news.ts'
import {
  answerTextOf,
  type ChatSpeaker,
  filesOf,
  openStoredConversation,
  type StoredConversation,
} from './stored-conversation.ts'
import {
  type ChatEvent,
  endEvents,
  isWaiting,
  permissionOf,
  type TurnEventsOptions,
  turnEvents,
} from './turn-events.ts'

export interface ChatHistoryMessage {
  readonly from: ChatSpeaker
  readonly text: string
  /** Names of the files that came with it. */
  readonly files: readonly string[]
}

/** What a user sends: a text, files, or both. */
export interface OutgoingMessage {
  readonly text: string
  readonly files: readonly Part[]
}

export interface ChatConversation {
  /** The last exchanges, the oldest first; `open` is an unfinished task that is being worked on. */
  history(): Promise<{ readonly messages: readonly ChatHistoryMessage[]; readonly open: Task | undefined }>
  /** The last tasks with their artifacts, the oldest first. */
  tasks(): Promise<readonly Task[]>
  /** Sends the message; it answers the task that waits for input, if one does. */
  say(message: OutgoingMessage, signal: AbortSignal): AsyncIterable<ChatEvent>
  /** Follows a task that was sent earlier. */
  attach(task: Task, signal: AbortSignal): AsyncIterable<ChatEvent>
  /** What others say in the conversation from now on; after `history`, what came after it. */
  news(signal: AbortSignal): AsyncIterable<ChatNews>
  /** Cancels the running turn, whose events then end. A message that is not sent yet is not sent. */
  stop(): Promise<void>
}

export interface ConversationOptions {
  readonly client: PlatformClient
  readonly workspaceId: string
  readonly contextId: string
  readonly clock: Clock
  /** How a printed command begins. */
  readonly command: string
  /** The platform cannot be reached; called once per outage. */
  readonly onUnreachable: (error: MoleculeError) => void
  /** Why the followed task does not run now, as the platform words it; empty when it runs. */
  readonly onReason: (text: string) => void
}

const HISTORY_MESSAGES_MAX = 10
/** For the list of files. */
const TASKS_MAX = 10
/** The user's own messages, with their files, are not needed again. */
const WITHOUT_HISTORY = { historyLength: 0 } as const
/** Practically endless: the user decides how long to wait for the platform. */
const TRIES_MAX = 100_000

export function openConversation(options: ConversationOptions): ChatConversation {
  const { client, workspaceId, contextId } = options
  const outages = reportOutagesOnce(options.onUnreachable)
  const state: ChatState = {
    running: undefined,
    waitingTask: undefined,
    history: EMPTY_HISTORY,
    giveUp: new AbortController(),
    own: new Set(),
  }
  const retryUntilDone = createRetry(options.clock, outages, () => state.giveUp.signal)
  const context = { options, outages, state, retryUntilDone, stored: openStoredConversation(options) }
  return {
    async tasks() {
      const page = { contextId, limit: TASKS_MAX, onePage: true, includeArtifacts: true }
      return (await client.listTasks(workspaceId, page)).reverse()
    },
    history: () => readHistory(context),
    news: (signal) => newsSince(context, signal),
    say: (message, signal) => say(context, message, signal),
    attach: (task, signal) => attach(context, task, signal),
    async stop() {
      if (state.running === undefined) state.giveUp.abort()
      else await client.cancelTask(workspaceId, state.running)
    },
  }
}

interface ConversationContext {
  readonly options: ConversationOptions
  readonly outages: OutageReports
  readonly state: ChatState
  readonly retryUntilDone: RetryUntilDone
  readonly stored: StoredConversation
}

interface ChatState {
  /** The task that is followed. */
  running: string | undefined
  /** The task that waits for a message of the user. */
  waitingTask: string | undefined
  /** As it was when the chat began. */
  history: ChatHistory
  /** The senders' ids of the messages that this chat has sent or follows. */
  readonly own: Set<string>
  /** Ends the retries. */
  giveUp: AbortController
}

async function readHistory({ options, state, stored }: ConversationContext): ReturnType<ChatConversation['history']> {
  const { client, workspaceId, command } = options
  const page = await stored.read(HISTORY_MESSAGES_MAX)
  if (page !== undefined) state.history = withNewest(undefined, page)
  const messages: ChatHistoryMessage[] = []
  for (const message of page?.messages ?? [])
    messages.push(...historyOf(message, await stored.speakerOf(message), command))
  // An answer to a running turn is no turn of its own.
  const last = page?.messages.findLast(({ answers }) => answers === undefined)
  if (last !== undefined && isQuestion(last)) state.waitingTask = last.task_id
  if (last === undefined || !isOpen(last) || isQuestion(last)) return { messages, open: undefined }
  // The chat follows it. The answer of an earlier one that is still open comes as news.
  state.own.add(last.sender_message_id)
  return { messages, open: await client.getTask(workspaceId, last.task_id, WITHOUT_HISTORY) }
}

async function* newsSince(context: ConversationContext, signal: AbortSignal): AsyncIterable<ChatNews> {
  const { options, state, stored } = context
  const news = {
    client: options.client,
    workspaceId: options.workspaceId,
    clock: options.clock,
    command: options.command,
    stored,
    history: state.history,
    since: state.history.seq ?? (await endOfLog(context)),
    isFollowed: (taskId: string) => taskId === state.running,
    isOwn: ({ sender_message_id: id }: ChatMessageView) => state.own.has(id),
    onQuestion: (taskId: string) => {
      state.waitingTask = taskId
    },
  }
  yield* followNews(news, signal)
}

async function* say(
  context: ConversationContext,
  { text, files }: OutgoingMessage,
  signal: AbortSignal,
): AsyncIterable<ChatEvent> {
  const { state } = context
  state.giveUp = new AbortController()
  const since = await endOfLog(context)
  const parts = text.trim() === '' ? files : [{ text }, ...files]
  const taskId = state.waitingTask
  state.waitingTask = undefined
  const task = await send(context, parts, taskId).catch((thrown: unknown) => {
    // The task that asked has ended meanwhile, by a timeout or a cancel: the text becomes a new task.
    const isOver = thrown instanceof MoleculeError && thrown.code === 'unsupported_operation'
    if (taskId === undefined || !isOver) throw thrown
    return send(context, parts, undefined)
  })
  yield* follow(context, { task, since, isWhole: true }, signal)
}

function send(context: ConversationContext, parts: readonly Part[], taskId: string | undefined): Promise<Task> {
  const { client, workspaceId, contextId } = context.options
  const message: Message = { messageId: `chat-${ulid()}`, role: 'ROLE_USER', parts, contextId, taskId }
  context.state.own.add(message.messageId)
  return context.retryUntilDone(() => client.sendMessage(workspaceId, message, { wait: false }))
}

async function* attach(context: ConversationContext, task: Task, signal: AbortSignal): AsyncIterable<ChatEvent> {
  const since = await endOfLog(context)
  const now = await readTask(context, task.id)
  if (isFinal(now.status.state)) return yield* endEvents(now, '')
  const pending = isWaiting(now) ? await permissionOf(context.options.client, task.id) : undefined
  if (pending !== undefined) yield { type: 'permission', pending }
  const reason = partsText(now.status.message)
  if (pending === undefined && reason !== '') yield { type: 'note', text: reason }
  yield* follow(context, { task, since, isWhole: false }, signal)
}

type FollowedTask = Pick<TurnEventsOptions, 'task' | 'since' | 'isWhole'>

async function* follow(
  context: ConversationContext,
  { task, since, isWhole }: FollowedTask,
  signal: AbortSignal,
): AsyncIterable<ChatEvent> {
  const { options, outages, state } = context
  const turn = {
    client: options.client,
    workspaceId: options.workspaceId,
    clock: options.clock,
    task,
    since,
    isWhole,
    onUnreachable: outages.report,
    onReachable: outages.end,
    onReason: options.onReason,
    readTask: () => readTask(context, task.id),
  }
  state.running = task.id
  try {
    for await (const event of turnEvents(turn, signal)) {
      if (event.type === 'end') state.waitingTask = isWaiting(event.task) ? task.id : undefined
      yield event
    }
  } finally {
    state.running = undefined
  }
}

const readTask = ({ options: { client, workspaceId }, retryUntilDone }: ConversationContext, id: string) =>
  retryUntilDone(() => client.getTask(workspaceId, id, WITHOUT_HISTORY))

/** The number after which the log goes on. */
async function endOfLog({ options: { client, workspaceId: id }, retryUntilDone }: ConversationContext) {
  const query = { id, limit: 1, newest: true }
  return (await retryUntilDone(() => client.call('GET /workspaces/{id}/activity', query))).next
}

interface OutageReports {
  report(error: MoleculeError): void
  end(): void
}

/** Prevents the same note at each retry of an outage. It ends with the first call that succeeds. */
function reportOutagesOnce(onUnreachable: ConversationOptions['onUnreachable']): OutageReports {
  let isReported = false
  return {
    report(error: MoleculeError) {
      if (!isReported) onUnreachable(error)
      isReported = true
    },
    end() {
      isReported = false
    },
  }
}

function createRetry(clock: Clock, { report, end }: OutageReports, giveUp: () => AbortSignal): RetryUntilDone {
  return async (work) => {
    const done = await withRetries(work, { clock, triesMax: TRIES_MAX, onRetry: report, signal: giveUp() })
    end()
    return done
  }
}

type RetryUntilDone = <T>(work: () => Promise<T>) => Promise<T>

/** The message and its answer; an open one has no answer yet, and its reason is shown with its turn. */
function historyOf(message: ChatMessageView, from: ChatSpeaker, command: string): ChatHistoryMessage[] {
  const { attached, answered } = filesOf(message)
  const asked = { from, text: message.text, files: attached }
  if (isOpen(message) && !isQuestion(message)) return [asked]
  const text = answerTextOf(message, command) || message.reason || ''
  return text === '' && answered.length === 0 ? [asked] : [asked, { from: 'agent', text, files: answered }]
}
