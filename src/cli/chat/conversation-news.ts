/**
 * What others say in a conversation while a chat is open: results of delegations, another window, schedules, and messages
 * that the agent sends to people. The log tells that a task has changed; the stored conversation tells what is in it now.
 * Invariant: each message and each answer is told once, and none that this chat has sent or followed itself.
 */
import type { PlatformClient } from '../../client/platform-client.ts'
import type { ActivityView } from '../../client/views.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { printable, printableName } from '../../printable.ts'
import { sleep } from '../../wait.ts'
import { followActivity } from '../platform/follow-activity.ts'
import {
  answerTextOf,
  type ChatSpeaker,
  filesOf,
  isOpen,
  isQuestion,
  type StoredConversation,
  type StoredMessage,
} from './stored-conversation.ts'

export type ChatNews =
  | { readonly type: 'said'; readonly from: ChatSpeaker; readonly text: string; readonly files: readonly string[] }
  | { readonly type: 'note'; readonly text: string }

export interface NewsOptions {
  readonly client: PlatformClient
  readonly workspaceId: string
  readonly clock: Clock
  readonly stored: StoredConversation
  /** The number of the log from which on the chat tells what happens. */
  readonly since: number
  readonly told: ToldMessages
  /** True for a task whose events the chat shows itself, and for a message that it has sent. */
  readonly isFollowed: (taskId: string) => boolean
  readonly isOwn: (message: StoredMessage) => boolean
  /** The task asks the user something: the next message answers it. */
  readonly onQuestion: (taskId: string) => void
  /** How a command begins that a note names. */
  readonly command: string
}

/** What was told of each message. */
export interface ToldMessages {
  get(id: string): ToldMessage | undefined
  set(id: string, told: ToldMessage): void
}

interface ToldMessage {
  readonly askId?: string | undefined
  readonly hasEnded: boolean
}

/** Beyond it the oldest are forgotten: no event comes for them any more. */
const TOLD_MAX = 1000

export function createToldMessages(): ToldMessages {
  const told = new Map<string, ToldMessage>()
  return {
    get: (id) => told.get(id),
    set(id, message) {
      told.delete(id)
      told.set(id, message)
      const [oldest] = told.keys()
      if (told.size > TOLD_MAX && oldest !== undefined) told.delete(oldest)
    },
  }
}

/** The activity that `send_message_to_user` adds. */
const MESSAGE_TO_USER = 'message_to_user'

/** Ends when the signal aborts. An outage of the platform is a pause: what happened meanwhile is told after it. */
export async function* followNews(options: NewsOptions, signal: AbortSignal): AsyncIterable<ChatNews> {
  const { client, workspaceId: id, clock, since, isFollowed } = options
  /** Tasks of other conversations. */
  const foreign = new Set<string>()
  const onUnreachable = () => undefined
  for await (const entry of followActivity({ client, id, since, clock, onUnreachable }, signal)) {
    const { type, task_id: taskId } = entry
    if (type === MESSAGE_TO_USER) yield saidToUser(entry)
    if (type !== 'status' || taskId === undefined || isFollowed(taskId) || foreign.has(taskId)) continue
    const found = await throughOutage(() => options.stored.ofTask(taskId), clock, signal)
    if (found === undefined) return
    if (found.messages.length === 0) foreign.add(taskId)
    if (foreign.size > TOLD_MAX) foreign.clear()
    for (const message of found.messages) yield* newsOf(message, { ...options, ...found })
  }
}

const RETRY_MS = 500

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

const saidToUser = ({ text = '' }: ActivityView): ChatNews => ({ type: 'said', from: 'agent', text, files: [] })

async function* newsOf(
  message: StoredMessage,
  { told, isOwn, stored, onQuestion, command, isSchedule = false }: NewsOptions & { readonly isSchedule?: boolean },
): AsyncIterable<ChatNews> {
  const { id, state, reason, ask } = message
  const before = told.get(id)
  if (isOwn(message) || before?.hasEnded === true) return
  const { attached, answered } = filesOf(message)
  if (before === undefined)
    yield { type: 'said', from: await stored.speakerOf(message), text: message.text, files: attached }
  if (ask !== undefined && ask.id !== before?.askId) {
    const use = `${printableName(ask.tool)}: ${printable(ask.subject)}`
    yield { type: 'note', text: `the agent asks to use ${use}; allow it with "${command} pending allow ${ask.id}"` }
  }
  const hasEnded = !isOpen(message) || isQuestion(message)
  told.set(id, { askId: ask?.id ?? before?.askId, hasEnded })
  if (!hasEnded) return
  const text = answerTextOf(message, command)
  if (text !== '' || answered.length > 0) yield { type: 'said', from: 'agent', text, files: answered }
  if (isQuestion(message) && !isSchedule) onQuestion(message.task_id)
  if (reason !== undefined)
    yield { type: 'note', text: state === 'answered' ? reason : `${STATE_TEXTS[state]}: ${reason}` }
}

const STATE_TEXTS: Readonly<Partial<Record<StoredMessage['state'], string>>> = {
  waiting_for_you: 'waiting for your answer',
  failed: 'failed',
  stopped: 'stopped',
}
