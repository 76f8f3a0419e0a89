/**
 * One conversation with a workspace, as a chat uses it: the history, and turns whose events arrive as they happen.
 * It follows the event log by number, so a restart of the platform in mid-turn costs a pause and no text. At the end of a
 * turn, the part of the answer that was not streamed comes from the stored task.
 */
import type { PendingAskView } from '../../client/needs.ts'
import type { PlatformClient } from '../../client/platform-client.ts'
import { withRetries } from '../../client/retry.ts'
import type { ActivityView } from '../../client/views.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { isFinal, type Message, type Part, type Task, type TaskState } from '../../protocol/a2a.ts'
import { sleep } from '../../wait.ts'
import { followActivity } from '../platform/follow-activity.ts'
import { partsText } from '../terminal/task-text.ts'
import {
  type ChatNews,
  createToldMessages,
  followNews,
  type NewsOptions,
  type ToldMessages,
} from './conversation-news.ts'
import {
  answerTextOf,
  type ChatSpeaker,
  filesOf,
  isOpen,
  isQuestion,
  openStoredConversation,
  type StoredConversation,
  type StoredMessage,
} from './stored-conversation.ts'

export type ChatEvent =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'tool'; readonly name: string; readonly subject: string; readonly state: string }
  /** A line of its own: progress, a failed attempt. */
  | { readonly type: 'note'; readonly text: string }
  /** The answer starts again; the text shown so far is void. */
  | { readonly type: 'again' }
  /** The agent asks for a permission and waits for the answer. */
  | { readonly type: 'permission'; readonly pending: PendingAskView }
  /** The turn has ended, or waits for a message of the user. `unshown` is the part of the answer that was not streamed. */
  | { readonly type: 'end'; readonly task: Task; readonly unshown: string }

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

export function openConversation(given: ConversationOptions): ChatConversation {
  const outages = reportOutagesOnce(given.onUnreachable)
  const options = { ...given, onUnreachable: outages.report }
  const { client, workspaceId, contextId } = options
  const state: ChatState = {
    running: undefined,
    waitingTask: undefined,
    since: undefined,
    giveUp: new AbortController(),
    sent: new Set(),
    told: createToldMessages(),
  }
  const stored = openStoredConversation(options)
  const retryUntilDone = createRetry(options.clock, outages, () => state.giveUp.signal)
  const run = (followed: FollowedTask, signal: AbortSignal) =>
    runTurn({ ...options, ...followed, state, retryUntilDone, onReachable: outages.end }, signal)
  const endOfLog = async () => (await retryUntilDone(() => readLastEntry(client, workspaceId))).next
  return {
    async tasks() {
      const page = { contextId, limit: TASKS_MAX, onePage: true, includeArtifacts: true }
      return (await client.listTasks(workspaceId, page)).reverse()
    },
    async history() {
      const { messages, last } = await readHistory(stored, state, options.command)
      if (last !== undefined && isQuestion(last)) state.waitingTask = last.task_id
      const isRunning = last !== undefined && isOpen(last) && !isQuestion(last)
      const open = isRunning ? await client.getTask(workspaceId, last.task_id, WITHOUT_HISTORY) : undefined
      return { messages, open }
    },
    async *news(signal) {
      const since = state.since ?? (await endOfLog())
      yield* followNews({ ...options, ...newsState(state), stored, since }, signal)
    },
    async *say({ text, files }, signal) {
      state.giveUp = new AbortController()
      const since = await endOfLog()
      const send = (about: { contextId: string; taskId?: string }) => {
        const parts = [...(text.trim() === '' ? [] : [{ text }]), ...files]
        const message: Message = { messageId: `chat-${ulid()}`, role: 'ROLE_USER', parts, ...about }
        state.sent.add(message.messageId)
        return retryUntilDone(() => client.sendMessage(workspaceId, message, { wait: false }))
      }
      const taskId = state.waitingTask
      state.waitingTask = undefined
      const task = await (taskId === undefined
        ? send({ contextId })
        : send({ contextId, taskId }).catch((thrown: unknown) => {
            // The task that asked has ended meanwhile, by a timeout or a cancel: the text becomes a new task.
            if (!(thrown instanceof MoleculeError) || thrown.code !== 'unsupported_operation') throw thrown
            return send({ contextId })
          }))
      yield* run({ task, since, whole: true }, signal)
    },
    async *attach(task, signal) {
      const since = await endOfLog()
      const now = await retryUntilDone(() => client.getTask(workspaceId, task.id, WITHOUT_HISTORY))
      if (isFinal(now.status.state)) return yield* endEvents(now, '')
      const pending = WAITING_STATES.has(now.status.state) ? await permissionOf(client, task.id) : undefined
      if (pending !== undefined) yield { type: 'permission', pending }
      const reason = partsText(now.status.message)
      if (pending === undefined && reason !== '') yield { type: 'note', text: reason }
      yield* run({ task, since, whole: false }, signal)
    },
    async stop() {
      if (state.running === undefined) state.giveUp.abort()
      else await client.cancelTask(workspaceId, state.running)
    },
  }
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
/** With the number after which the log goes on. */
const readLastEntry = (client: PlatformClient, id: string) =>
  client.call('GET /workspaces/{id}/activity', { id, limit: 1, newest: true })

interface ChatState {
  /** The task that is followed. */
  running: string | undefined
  /** The task that waits for a message of the user. */
  waitingTask: string | undefined
  /** The number of the log at which the history was read. */
  since: number | undefined
  /** Ids of the messages that this chat has sent. */
  readonly sent: Set<string>
  readonly told: ToldMessages
  /** Ends the retries. */
  giveUp: AbortController
}

/** What a chat knows when others say something. */
const newsState = (state: ChatState): Pick<NewsOptions, 'told' | 'isFollowed' | 'isOwn' | 'onQuestion'> => ({
  told: state.told,
  isFollowed: (taskId) => taskId === state.running,
  isOwn: ({ sender_message_id: id }) => state.sent.has(id),
  onQuestion(taskId) {
    state.waitingTask = taskId
  },
})

async function readHistory(stored: StoredConversation, state: ChatState, command: string) {
  const page = await stored.read(HISTORY_MESSAGES_MAX)
  state.since = page?.seq
  const messages: ChatHistoryMessage[] = []
  const last = page?.messages.at(-1)
  for (const message of page?.messages ?? []) {
    // The chat follows the last one. The answer of an earlier one that is still open comes as news.
    state.told.set(message.id, { hasEnded: message === last || !isOpen(message) || isQuestion(message) })
    messages.push(...historyOf(message, await stored.speakerOf(message), command))
  }
  return { messages, last }
}

type RetryUntilDone = <T>(work: () => Promise<T>) => Promise<T>

interface FollowedTask {
  readonly task: Task
  readonly since: number
  /** Followed from its beginning, so its text can be shown as it arrives. */
  readonly whole: boolean
}

interface RunTurnOptions extends ConversationOptions, FollowedTask {
  readonly state: ChatState
  readonly retryUntilDone: RetryUntilDone
  /** Called with each event of the turn. */
  readonly onReachable: () => void
}

/** Every event of the turn, then the rest of the answer from the stored task. */
async function* runTurn(running: RunTurnOptions, signal: AbortSignal): AsyncIterable<ChatEvent> {
  const { client, workspaceId, task, whole, state, retryUntilDone, onReachable } = running
  state.running = task.id
  let shown = ''
  const reasons = watchReasons(running)
  try {
    for await (const event of watchTask({ ...running, taskId: task.id }, signal)) {
      onReachable()
      reasons.sawEvent(event)
      if (event.type === 'again') shown = ''
      if (event.type === 'text') shown += event.delta
      if (event.type !== 'text' || whole) yield event
    }
    if (signal.aborted) return
    const ended = await retryUntilDone(() => client.getTask(workspaceId, task.id, WITHOUT_HISTORY))
    state.waitingTask = WAITING_STATES.has(ended.status.state) ? ended.id : undefined
    yield* endEvents(ended, whole ? shown : '')
  } finally {
    reasons.stop()
    state.running = undefined
  }
}

const REASON_POLL_MS = 1000

/** Reports why the task does not run, from its beginning and after each failed attempt until the agent does something. */
function watchReasons({ client, workspaceId, task, clock, onReason }: RunTurnOptions) {
  const stop = new AbortController()
  let isWorking = false
  const report = ({ status }: Task) => {
    const mayWait = status.state === 'TASK_STATE_SUBMITTED' || status.state === 'TASK_STATE_WORKING'
    if (mayWait && !isWorking && !stop.signal.aborted) onReason(partsText(status.message))
  }
  const poll = async () => {
    for (;;) {
      await sleep(clock, REASON_POLL_MS, stop.signal)
      if (stop.signal.aborted) return
      // A poll that fails says nothing: the followed log reports an outage.
      if (!isWorking) await client.getTask(workspaceId, task.id, WITHOUT_HISTORY).then(report, () => undefined)
    }
  }
  report(task)
  void poll()
  return {
    sawEvent({ type }: ChatEvent) {
      isWorking = type === 'text' || type === 'tool' || type === 'permission'
      if (isWorking) onReason('')
    },
    stop: () => stop.abort(),
  }
}

/** A task in one of these states waits for the user. */
const WAITING_STATES: ReadonlySet<TaskState> = new Set<TaskState>([
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
])

interface WatchTaskOptions extends ConversationOptions {
  readonly taskId: string
  readonly since: number
}

/** The events of one task, until it is final or waits for a message. */
async function* watchTask(options: WatchTaskOptions, signal: AbortSignal): AsyncIterable<ChatEvent> {
  const { client, workspaceId: id, clock, onUnreachable, taskId, since } = options
  const done = new AbortController()
  const ends = AbortSignal.any([signal, done.signal])
  try {
    for await (const entry of followActivity({ client, id, since, clock, onUnreachable }, ends)) {
      if (entry.task_id !== taskId) continue
      if (entry.type === 'status' && WAITING_STATES.has(entry.state as TaskState)) {
        const pending = await permissionOf(client, taskId)
        if (pending !== undefined) yield { type: 'permission', pending }
        else if (await stillWaits(options)) return
      } else if (entry.type === 'status' && isFinal(entry.state as TaskState)) return
      else yield* toChatEvents(entry)
    }
  } catch (thrown) {
    // The log no longer has the events of an outage; the stored task still has the answer.
    if (!(thrown instanceof MoleculeError) || thrown.code !== 'pruned') throw thrown
  } finally {
    done.abort()
  }
}

/** The question may have been answered elsewhere meanwhile. */
async function stillWaits({ client, workspaceId, taskId }: WatchTaskOptions): Promise<boolean> {
  return WAITING_STATES.has((await client.getTask(workspaceId, taskId, WITHOUT_HISTORY)).status.state)
}

function* toChatEvents(entry: ActivityView): Iterable<ChatEvent> {
  const { type, text = '', name = '', subject = '', state = '' } = entry
  if (type === 'text') yield { type: 'text', delta: text }
  else if (type === 'tool') yield { type: 'tool', name, subject, state }
  else if (type === 'retry') yield { type: 'again' }
  else if (type === 'progress') yield { type: 'note', text }
  else if (type === 'status' && text !== '') yield { type: 'note', text }
}

/** The permission that the task waits for; undefined when it waits for something else. */
async function permissionOf(client: PlatformClient, taskId: string): Promise<PendingAskView | undefined> {
  try {
    return (await client.all('GET /pending', 'pending')).find(({ task_id: id }) => id === taskId)
  } catch (thrown) {
    // An older platform has no such route: then the task waits for a message.
    if (thrown instanceof MoleculeError && thrown.code === 'not_found') return undefined
    throw thrown
  }
}

/** The stored answer is the truth: when the streamed text is not its beginning, the whole answer is shown again. */
function* endEvents(task: Task, shown: string): Iterable<ChatEvent> {
  const reply = answerOf(task)
  if (reply.startsWith(shown)) return yield { type: 'end', task, unshown: reply.slice(shown.length) }
  if (reply !== '') yield { type: 'again' }
  yield { type: 'end', task, unshown: reply }
}

/** The message and its answer; an open one has no answer yet, and its reason is shown with its turn. */
function historyOf(message: StoredMessage, from: ChatSpeaker, command: string): ChatHistoryMessage[] {
  const { attached, answered } = filesOf(message)
  const asked = { from, text: message.text, files: attached }
  if (isOpen(message) && !isQuestion(message)) return [asked]
  const text = answerTextOf(message, command) || message.reason || ''
  return text === '' && answered.length === 0 ? [asked] : [asked, { from: 'agent', text, files: answered }]
}

const answerOf = (task: Task): string => partsText(task.artifacts?.at(-1))
