/**
 * One conversation with a workspace as a chat sees it: what was said before, and turns whose events come as they
 * happen. It follows the workspace's log by number, so a platform that restarts in mid-turn costs a pause and no word;
 * what the stream did not show of an answer is taken from the stored task at the end.
 */
import type { ActivityView, PendingAskView, PlatformClient } from '../../client/platform-client.ts'
import { withRetries } from '../../client/retry.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { isFinal, type Message, type Task, type TaskState } from '../../protocol/a2a.ts'
import { followActivity } from '../platform/follow-activity.ts'

export type ChatEvent =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'tool'; readonly name: string; readonly state: string }
  /** Something worth a line: progress, an attempt that failed, why it waits. */
  | { readonly type: 'note'; readonly text: string }
  /** What was shown of the answer is void: it begins anew. */
  | { readonly type: 'again' }
  /** The agent wants to do something and waits for a word. */
  | { readonly type: 'permission'; readonly pending: PendingAskView }
  /** The turn has ended, or waits for words of the person: how the task stands, and what of its answer was not shown. */
  | { readonly type: 'end'; readonly task: Task; readonly unshown: string }

export interface ChatHistoryMessage {
  readonly who: 'you' | 'agent'
  readonly text: string
}

export interface ChatConversation {
  /** The last exchanges, the oldest first; `open` is a task that is not finished yet. */
  history(): Promise<{ readonly messages: readonly ChatHistoryMessage[]; readonly open: Task | undefined }>
  /** Sends the words; they answer the task that asked for them last, if one did. */
  say(text: string, signal: AbortSignal): AsyncIterable<ChatEvent>
  /** Goes on with a task that was sent before. */
  attach(task: Task, signal: AbortSignal): AsyncIterable<ChatEvent>
  /** Stops the turn that runs: its events then come to their end. What was not yet sent is not sent. */
  stop(): Promise<void>
}

export interface ConversationOptions {
  readonly client: PlatformClient
  readonly workspaceId: string
  readonly contextId: string
  readonly clock: Clock
  /** The platform is away; told once each time. */
  readonly onUnreachable: (error: MoleculeError) => void
}

const HISTORY_TASKS_MAX = 10
/** A person waits at the other end: it goes on for as long as they do. */
const TRIES_MAX = 100_000

export function openConversation(options: ConversationOptions): ChatConversation {
  const { client, workspaceId, contextId, clock, onUnreachable } = options
  const state: ChatState = { running: undefined, asks: undefined, giveUp: new AbortController() }
  const retryUntilDone: RetryUntilDone = (work) =>
    withRetries(work, { clock, triesMax: TRIES_MAX, onRetry: onUnreachable, signal: state.giveUp.signal })
  const run = (what: FollowedTask, signal: AbortSignal) =>
    runTurn({ ...options, ...what, state, retryUntilDone }, signal)
  const endOfLog = async () =>
    (await retryUntilDone(() => client.activity(workspaceId, { since: 0, limit: 1, newest: true }))).next
  return {
    async history() {
      const tasks = (await client.listTasks(workspaceId, { contextId, pageSize: HISTORY_TASKS_MAX })).reverse()
      const last = tasks.at(-1)
      const resting = last !== undefined && WAITING_STATES.has(last.status.state)
      // A permission is given by a yes or no, and the turn goes on; anything else that it waits for is said in words.
      if (resting && (await permissionOf(client, last.id)) === undefined) state.asks = last.id
      const open = last === undefined || isFinal(last.status.state) || last.id === state.asks ? undefined : last
      return { messages: tasks.flatMap(messagesOf), open }
    },
    async *say(text, signal) {
      state.giveUp = new AbortController()
      const since = await endOfLog()
      const send = (about: { contextId: string; taskId?: string }) => {
        const message: Message = { messageId: `chat-${ulid()}`, role: 'ROLE_USER', parts: [{ text }], ...about }
        return retryUntilDone(() => client.sendMessage(workspaceId, message, { wait: false }))
      }
      const answers = state.asks
      state.asks = undefined
      const task = await (answers === undefined
        ? send({ contextId })
        : send({ contextId, taskId: answers }).catch((thrown: unknown) => {
            // What asked has ended meanwhile, by its own clock or by somebody else: then the words begin anew.
            if (!(thrown instanceof MoleculeError) || thrown.code !== 'unsupported_operation') throw thrown
            return send({ contextId })
          }))
      const reason = textOf(task.status.message)
      if (task.status.state === 'TASK_STATE_SUBMITTED' && reason !== '') yield { type: 'note', text: reason }
      yield* run({ task, since, whole: true }, signal)
    },
    async *attach(task, signal) {
      const since = await endOfLog()
      const now = await retryUntilDone(() => client.getTask(workspaceId, task.id))
      if (isFinal(now.status.state)) return yield* endEvents(now, '')
      const pending = WAITING_STATES.has(now.status.state) ? await permissionOf(client, task.id) : undefined
      if (pending !== undefined) yield { type: 'permission', pending }
      yield* run({ task, since, whole: false }, signal)
    },
    async stop() {
      if (state.running === undefined) state.giveUp.abort()
      else await client.cancelTask(workspaceId, state.running)
    },
  }
}

interface ChatState {
  /** The task whose turn is followed. */
  running: string | undefined
  /** The task that waits for words. */
  asks: string | undefined
  /** Ends trying again. */
  giveUp: AbortController
}

type RetryUntilDone = <T>(work: () => Promise<T>) => Promise<T>

interface FollowedTask {
  readonly task: Task
  readonly since: number
  /** It is seen from its beginning, so its text can be shown as it comes. */
  readonly whole: boolean
}

interface RunTurnOptions extends ConversationOptions, FollowedTask {
  readonly state: ChatState
  readonly retryUntilDone: RetryUntilDone
}

/** Every event of the turn, and at its end what the stored task says beyond them. */
async function* runTurn(running: RunTurnOptions, signal: AbortSignal): AsyncIterable<ChatEvent> {
  const { client, workspaceId, task, whole, state, retryUntilDone } = running
  state.running = task.id
  let shown = ''
  try {
    for await (const event of watchTask({ ...running, taskId: task.id }, signal)) {
      if (event.type === 'again') shown = ''
      if (event.type === 'text') shown += event.delta
      if (event.type !== 'text' || whole) yield event
    }
    if (signal.aborted) return
    const ended = await retryUntilDone(() => client.getTask(workspaceId, task.id))
    state.asks = isFinal(ended.status.state) ? undefined : ended.id
    yield* endEvents(ended, whole ? shown : '')
  } finally {
    state.running = undefined
  }
}

/** A task in one of these waits for its person. */
const WAITING_STATES: ReadonlySet<TaskState> = new Set<TaskState>([
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
])

interface WatchTaskOptions extends ConversationOptions {
  readonly taskId: string
  readonly since: number
}

/** The events of one task, until it rests. */
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
    // What came while the platform was away is no longer kept: the stored task has the answer all the same.
    if (!(thrown instanceof MoleculeError) || thrown.code !== 'pruned') throw thrown
  } finally {
    done.abort()
  }
}

/** It may have been answered elsewhere before we looked. */
async function stillWaits({ client, workspaceId, taskId }: WatchTaskOptions): Promise<boolean> {
  return WAITING_STATES.has((await client.getTask(workspaceId, taskId)).status.state)
}

function* toChatEvents(entry: ActivityView): Iterable<ChatEvent> {
  const { type, text = '', name = '', state = '' } = entry
  if (type === 'text') yield { type: 'text', delta: text }
  else if (type === 'tool') yield { type: 'tool', name, state }
  else if (type === 'retry') yield { type: 'again' }
  else if (type === 'progress') yield { type: 'note', text }
  else if (type === 'artifact') yield { type: 'note', text: `made ${name}` }
  else if (type === 'status' && text !== '') yield { type: 'note', text: `${text} It will be tried again.` }
}

/** The permission that the task waits for, if that is what it waits for. */
async function permissionOf(client: PlatformClient, taskId: string): Promise<PendingAskView | undefined> {
  try {
    return (await client.listPendingAsks()).find(({ task_id: id }) => id === taskId)
  } catch (thrown) {
    // A platform without permissions has no such route: then it is a question in words.
    if (thrown instanceof MoleculeError && thrown.code === 'not_found') return undefined
    throw thrown
  }
}

/** The stored answer counts: where what was shown is not its beginning, it is shown whole. */
function* endEvents(task: Task, shown: string): Iterable<ChatEvent> {
  const reply = answerOf(task)
  if (reply.startsWith(shown)) return yield { type: 'end', task, unshown: reply.slice(shown.length) }
  if (reply !== '') yield { type: 'again' }
  yield { type: 'end', task, unshown: reply }
}

function messagesOf(task: Task): ChatHistoryMessage[] {
  const asked = (task.history ?? []).map((message): ChatHistoryMessage => ({ who: 'you', text: textOf(message) }))
  const answer = answerOf(task) || textOf(task.status.message)
  return answer === '' ? asked : [...asked, { who: 'agent', text: answer }]
}

const answerOf = (task: Task): string => (task.artifacts?.at(-1)?.parts ?? []).map(({ text }) => text ?? '').join('')

const textOf = (message: Message | undefined): string => (message?.parts ?? []).map(({ text }) => text ?? '').join('')
