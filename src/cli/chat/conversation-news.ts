/**
 * What others say in a conversation while a chat is open: results of delegations, another window, schedules, and messages
 * that the agent sends to people. The events of the log go through the reducer that the page uses too; where they do not
 * tell all, the conversation is read again, and the difference is shown. Invariant: each message and each answer is shown
 * once, and none that this chat has sent or followed itself.
 */
import {
  applyEvents,
  type ChatEntry,
  type ChatHistory,
  type ChatMessageView,
  isOpen,
  isQuestion,
  withNewest,
} from '../../client/live-conversation.ts'
import type { PlatformClient } from '../../client/platform-client.ts'
import type { ActivityView } from '../../client/views.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { printable, printableName } from '../../printable.ts'
import { sleep } from '../../wait.ts'
import { followActivity, RETRY_MS } from '../platform/follow-activity.ts'
import {
  answerTextOf,
  type ChatSpeaker,
  filesOf,
  isOfSchedule,
  type StoredConversation,
} from './stored-conversation.ts'

export type ChatNews =
  | { readonly type: 'message'; readonly from: ChatSpeaker; readonly text: string; readonly files: readonly string[] }
  | { readonly type: 'note'; readonly text: string }

export interface NewsOptions {
  readonly client: Pick<PlatformClient, 'events'>
  readonly workspaceId: string
  readonly clock: Clock
  readonly stored: StoredConversation
  /** The conversation as the chat has shown it. */
  readonly history: ChatHistory
  /** The number of the log from which on the chat shows what happens. */
  readonly since: number
  /** True for a task whose events the chat shows itself, and for a message that it has sent or followed. */
  readonly isFollowed: (taskId: string) => boolean
  readonly isOwn: (message: ChatMessageView) => boolean
  /** The task asks the user something: the next message answers it. */
  readonly onQuestion: (taskId: string) => void
  /** How a command begins that a note names. */
  readonly command: string
}

/** The activity that `send_message_to_user` adds. */
const MESSAGE_TO_USER = 'message_to_user'

/** Ends when the signal aborts. An outage of the platform is a pause: what happened meanwhile is shown after it. */
export async function* followNews(options: NewsOptions, signal: AbortSignal): AsyncIterable<ChatNews> {
  const { client, workspaceId: id, clock, since, isFollowed, stored } = options
  const conversations = createKnownConversations(options.history)
  const onUnreachable = () => undefined
  for await (const events of followActivity({ client, id, since, clock, onUnreachable }, signal)) {
    for (const event of events) if (event.type === MESSAGE_TO_USER) yield messageToUser(event)
    // All events of a row are of one task.
    const { task_id: taskId, conversation_id: conversation } = events[0] ?? {}
    if (taskId === undefined || conversation === undefined || isFollowed(taskId)) continue
    if (!conversations.mustRead(conversation, events)) continue
    const page = await throughOutage(() => stored.readIfShown(conversation), clock, signal)
    if (signal.aborted) return
    if (page === undefined) {
      conversations.ignore(conversation)
      continue
    }
    const before = conversations.get(conversation)
    const now = withNewest(before, page)
    conversations.set(conversation, now)
    yield* difference(before?.entries ?? entriesBefore(now, taskId), now, options)
  }
}

/** Beyond these the oldest are forgotten, and read again when something happens in them. */
const HISTORIES_MAX = 50
const IGNORED_MAX = 1000

/** The histories of the conversations that the chat shows, by id, and the ids of those that it does not show. */
function createKnownConversations(own: ChatHistory) {
  const histories = new Map<string, ChatHistory>()
  const ignored = new Set<string>()
  const set = (id: string, history: ChatHistory) => {
    histories.delete(id)
    histories.set(id, history)
    const [oldest] = histories.keys()
    if (histories.size > HISTORIES_MAX && oldest !== undefined) histories.delete(oldest)
  }
  if (own.id !== undefined) set(own.id, own)
  return {
    get: (id: string) => histories.get(id),
    set,
    ignore(id: string) {
      if (ignored.size >= IGNORED_MAX) ignored.clear()
      ignored.add(id)
    },
    /** Applies the events; true when they do not tell all, and for a conversation that is not known yet. */
    mustRead(id: string, events: readonly ActivityView[]): boolean {
      const history = histories.get(id)
      if (history === undefined) return !ignored.has(id)
      const { entries, isStale } = applyEvents(history, events)
      set(id, { ...history, entries })
      return isStale
    },
  }
}

/** What was there before the task: of a conversation that is seen for the first time, the chat shows the task only. */
function entriesBefore({ entries }: ChatHistory, taskId: string): readonly ChatEntry[] {
  const first = entries.findIndex(({ task_id: task }) => task === taskId)
  return first === -1 ? entries : entries.slice(0, first)
}

/** Repeats a read while the platform is away: the event may be the last one of its task. Undefined on abort. */
async function throughOutage<T>(read: () => Promise<T>, clock: Clock, signal: AbortSignal): Promise<T | undefined> {
  while (!signal.aborted) {
    try {
      return await read()
    } catch (thrown) {
      if (!(thrown instanceof MoleculeError) || !thrown.retryable) throw thrown
      await sleep(clock, RETRY_MS, signal)
    }
  }
  return undefined
}

const messageToUser = ({ text = '' }: ActivityView): ChatNews => ({ type: 'message', from: 'agent', text, files: [] })

/** New messages, and what has changed in those that were open. */
async function* difference(
  before: readonly ChatEntry[],
  now: ChatHistory,
  options: NewsOptions,
): AsyncIterable<ChatNews> {
  const known = new Map(before.map((entry) => [entry.id, entry]))
  const last = before.at(-1)?.n ?? 0
  for (const entry of now.entries) {
    const earlier = known.get(entry.id)
    const isOlder = earlier === undefined && entry.n <= last
    if (isOlder || options.isOwn(entry) || (earlier !== undefined && hasEnded(earlier))) continue
    yield* changeOf(entry, earlier, options)
    if (isQuestion(entry) && !isOfSchedule(now)) options.onQuestion(entry.task_id)
  }
}

const hasEnded = (message: ChatMessageView): boolean => !isOpen(message) || isQuestion(message)

async function* changeOf(
  entry: ChatEntry,
  earlier: ChatEntry | undefined,
  { stored, command }: NewsOptions,
): AsyncIterable<ChatNews> {
  const { state, reason, ask } = entry
  const { attached, answered } = filesOf(entry)
  if (earlier === undefined)
    yield { type: 'message', from: await stored.speakerOf(entry), text: entry.text, files: attached }
  if (ask !== undefined && ask.id !== earlier?.ask?.id) {
    const use = `${printableName(ask.tool)}: ${printable(ask.subject)}`
    yield { type: 'note', text: `the agent asks to use ${use}; allow it with "${command} pending allow ${ask.id}"` }
  }
  if (!hasEnded(entry)) return
  const text = answerTextOf(entry, command)
  if (text !== '' || answered.length > 0) yield { type: 'message', from: 'agent', text, files: answered }
  if (reason !== undefined)
    yield { type: 'note', text: state === 'answered' ? reason : `${STATE_TEXTS[state]}: ${reason}` }
}

const STATE_TEXTS: Readonly<Partial<Record<ChatMessageView['state'], string>>> = {
  waiting_for_you: 'waiting for your answer',
  failed: 'failed',
  stopped: 'stopped',
}
