/**
 * The events of one turn of a chat, from its message to its end: text, tools, permissions, and why it does not run now. They
 * are the changes that the shared reducer finds in the log. At the end, the part of the answer that was not streamed comes
 * from the stored task, which is the truth.
 */
import { applyEvents, type LiveChange, type LiveEntry } from '../../client/live-conversation.ts'
import type { PendingAskView } from '../../client/needs.ts'
import type { PlatformClient } from '../../client/platform-client.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { isFinal, type Task, type TaskState } from '../../protocol/a2a.ts'
import { sleep } from '../../wait.ts'
import { followActivity } from '../platform/follow-activity.ts'
import { partsText } from '../terminal/task-text.ts'

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

export interface TurnEventsOptions {
  readonly client: PlatformClient
  readonly workspaceId: string
  readonly clock: Clock
  readonly task: Task
  /** The number of the log after which its events are. */
  readonly since: number
  /** Followed from its beginning, so its text can be shown as it arrives. */
  readonly isWhole: boolean
  readonly onUnreachable: (error: MoleculeError) => void
  /** Called with each event of the turn. */
  readonly onReachable: () => void
  /** Why the task does not run now; empty when it runs. */
  readonly onReason: (text: string) => void
  /** Reads the task as it is stored, through outages. */
  readonly readTask: () => Promise<Task>
}

/** A task in one of these states waits for the user. */
const WAITING_STATES: ReadonlySet<TaskState> = new Set<TaskState>([
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
])

export const isWaiting = ({ status }: Task): boolean => WAITING_STATES.has(status.state)

/** Every event of the turn, then its end. */
export async function* turnEvents(options: TurnEventsOptions, signal: AbortSignal): AsyncIterable<ChatEvent> {
  const { task, isWhole, since, onReachable, readTask } = options
  const turn: FollowedTurn = { entry: { task_id: task.id, state: 'queued', tools: [], seq: since } }
  const reasons = watchReasons(options)
  try {
    for await (const event of watchTurn(turn, options, signal)) {
      onReachable()
      reasons.sawEvent(event)
      if (event.type !== 'text' || isWhole) yield event
    }
    if (!signal.aborted) yield* endEvents(await readTask(), isWhole ? (turn.entry.reply?.text ?? '') : '')
  } finally {
    reasons.stop()
  }
}

const REASON_POLL_MS = 1000

/** Reports why the task does not run, from its beginning and after each failed attempt until the agent does something. */
function watchReasons({ client, workspaceId, task, clock, onReason }: TurnEventsOptions) {
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
      if (!isWorking) await client.getTask(workspaceId, task.id, { historyLength: 0 }).then(report, () => undefined)
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

/** What the log says of the turn so far. */
interface FollowedTurn {
  entry: LiveEntry
}

/** Ends when the task is final or waits for a message. */
async function* watchTurn(
  turn: FollowedTurn,
  { client, workspaceId: id, clock, since, task, onUnreachable }: TurnEventsOptions,
  signal: AbortSignal,
): AsyncIterable<ChatEvent> {
  const done = new AbortController()
  const ends = AbortSignal.any([signal, done.signal])
  try {
    for await (const events of followActivity({ client, id, since, clock, onUnreachable }, ends)) {
      const { entries, changes } = applyEvents({ entries: [turn.entry] }, events)
      turn.entry = entries[0] ?? turn.entry
      for (const change of changes) {
        const state = change.type === 'stale' ? (change.state as TaskState | undefined) : undefined
        if (state !== undefined && isFinal(state)) return
        if (state === undefined || !WAITING_STATES.has(state)) yield* toChatEvents(change)
        else {
          const pending = await permissionOf(client, task.id)
          if (pending !== undefined) yield { type: 'permission', pending }
          // The question may have been answered elsewhere meanwhile.
          else if (isWaiting(await client.getTask(id, task.id, { historyLength: 0 }))) return
        }
      }
    }
  } catch (thrown) {
    // The log no longer has the events of an outage; the stored task still has the answer.
    if (!(thrown instanceof MoleculeError) || thrown.code !== 'pruned') throw thrown
  } finally {
    done.abort()
  }
}

function* toChatEvents(change: LiveChange): Iterable<ChatEvent> {
  if (change.type === 'text' || change.type === 'again') yield change
  else if (change.type === 'tool') {
    const { name, subject = '', state } = change.tool
    yield { type: 'tool', name, subject, state }
  } else if (change.type !== 'begun' && change.text !== '') yield { type: 'note', text: change.text }
}

/** The permission that the task waits for; undefined when it waits for something else. */
export async function permissionOf(client: PlatformClient, taskId: string): Promise<PendingAskView | undefined> {
  try {
    return (await client.all('GET /pending', 'pending')).find(({ task_id: id }) => id === taskId)
  } catch (thrown) {
    // An older platform has no such route: then the task waits for a message.
    if (thrown instanceof MoleculeError && thrown.code === 'not_found') return undefined
    throw thrown
  }
}

/** When the streamed text is not the beginning of the stored answer, the whole answer is shown again. */
export function* endEvents(task: Task, shown: string): Iterable<ChatEvent> {
  const reply = partsText(task.artifacts?.at(-1))
  if (reply.startsWith(shown)) return yield { type: 'end', task, unshown: reply.slice(shown.length) }
  if (reply !== '') yield { type: 'again' }
  yield { type: 'end', task, unshown: reply }
}
