/**
 * Shows one task in the chat: its state as a reaction, typing, and the live message of a longer wait or turn. Invariant: an
 * edit is never worth an answer: it comes less often in a long turn, in a group and after a limit of the service.
 */
import type { TaskState } from '../../../protocol/a2a.ts'
import type { ActivityRow } from '../../../views/activity.ts'
import { readChatPage } from '../../../views/chat-page.ts'
import type { ReactionState } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import { endedText } from './live-text.ts'
import { createLiveTurn, PASSED } from './live-turn.ts'
import type { FollowedTask, Waits } from './waits.ts'

export interface TurnShow {
  /** The turn runs already: what it has written so far is read. */
  resume(): Promise<void>
  add(row: ActivityRow): void
  state(change: StateChange): void
  rest(): void
  /** False where the live message could not be ended: the next start does it. */
  end(): Promise<boolean>
}

interface StateChange {
  readonly state: TaskState
  /** The state came with the answer. */
  readonly isReply: boolean
  /** No turn of it runs. */
  readonly isWaiting: boolean
  readonly waitsForBudget: boolean
}

const REACTIONS: Readonly<Record<TaskState, ReactionState>> = {
  TASK_STATE_SUBMITTED: 'seen',
  TASK_STATE_WORKING: 'running',
  TASK_STATE_INPUT_REQUIRED: 'waiting',
  TASK_STATE_AUTH_REQUIRED: 'waiting',
  TASK_STATE_COMPLETED: 'done',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_REJECTED: 'failed',
  TASK_STATE_CANCELED: 'failed',
}

export function createTurnShow(task: FollowedTask, context: SessionContext, waits: Waits): TurnShow {
  const { channel, clock, deliveries, door, signal, signs, store } = context
  const { message, taskId, workspaceId } = task
  const live = context.live.of(message)
  const turn = createLiveTurn(task, live, context)
  let shown: ReactionState | undefined
  let reacted: Promise<unknown> = Promise.resolve()
  let cancelTyping = (): void => undefined
  const type = () => {
    signs.typing(message.place)
    cancelTyping = clock.after(channel.limits.typingMs * 0.8, type)
  }
  const rest = () => {
    cancelTyping()
    turn.stop()
    waits.end(message)
  }
  live.onClose(() => endedText(wordOf(shown), turn.now(), false))
  return {
    rest,
    add: turn.text.add,
    async resume() {
      const query = { workspaceId, conversation: taskId, at: taskId, limit: 1, detail: false }
      const { messages, seq } = await readChatPage(store, query)
      const [stored] = messages
      // A later message of the task has a turn of its own.
      if (stored?.id === taskId && stored.state === 'running')
        turn.text.begin({ text: stored.reply?.text, tools: stored.tools }, seq)
    },
    state(change) {
      const reaction = reactionOf(change)
      if (reaction === shown && !change.isWaiting) return
      rest()
      if (reaction !== shown) reacted = signs.react(message, reaction)
      const before = shown
      shown = reaction
      if (signal.aborted) return
      if (change.waitsForBudget) turn.leave(PASSED)
      else if (change.isWaiting) waits.begin(task, live)
      // The question comes below what the agent has said so far.
      if (reaction === 'waiting' && !change.isReply && before === 'running')
        turn.leave(endedText('Waiting', turn.now(), true))
      if (reaction !== 'running') return
      type()
      turn.start({ isNew: before !== 'waiting' })
    },
    async end() {
      rest()
      await reacted
      if (signal.aborted) return false
      // The delivery of the answer ends it.
      if (live.isTaken || (await deliveries.hasOpen(door, message.place, taskId))) return true
      await live.close(endedText(wordOf(shown), turn.now(), shown === 'failed'))
      if (!live.isShown) context.live.drop(message)
      return !live.isShown
    },
  }
}

function reactionOf({ state, isWaiting, waitsForBudget }: StateChange): ReactionState {
  if (waitsForBudget) return 'waiting'
  return isWaiting ? 'seen' : REACTIONS[state]
}

function wordOf(shown: ReactionState | undefined): 'Done' | 'Ended' | 'Waiting' {
  if (shown === 'done') return 'Done'
  return shown === 'waiting' ? 'Waiting' : 'Ended'
}
