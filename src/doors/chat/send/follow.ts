/**
 * Follows the tasks of messages: the state as a reaction, typing while the agent works, and one message that is edited
 * with the progress of a longer turn. All of it is best effort; the answer itself is a delivery.
 */
import { formatDuration } from '../../../duration.ts'
import { toMoleculeError } from '../../../errors.ts'
import { isFinal, type TaskState } from '../../../protocol/a2a.ts'
import { textOf } from '../../../protocol/part.ts'
import type { ActivityRow } from '../../../views/activity.ts'
import { readTaskWork } from '../../../views/task-work.ts'
import { sleep } from '../../../wait.ts'
import type { ReactionState } from '../channel.ts'
import { firstText, type SessionContext } from '../chat-context.ts'
import type { Prompts } from '../prompts/prompts.ts'
import type { HandledMessage } from '../store/chat-log.ts'

export interface TaskFollower {
  /** Follows the task of a message until it ends or waits for a person. */
  follow(message: HandledMessage, workspaceId: string): void
  /** After a start: follows the tasks that had not ended. */
  resumeAll(): Promise<void>
}

/** Tasks followed at once; further ones get their answer, without progress. */
const FOLLOWED_MAX = 500
const FOLLOW_AGAIN_MS = [1000, 5000, 15_000, 60_000] as const
/** A turn that ends before shows no progress message. */
const PROGRESS_AFTER_MS = 4000
const PROGRESS_EVERY_MS = 5000
/** Of the time that has passed: a long turn is edited less often. */
const PROGRESS_SHARE = 12
const TOOLS_SHOWN_MAX = 5

export function createFollower(context: SessionContext, prompts: Prompts): TaskFollower {
  const { chatLog, store, stored, log } = context
  const followed = new Set<string>()
  /** The last follower of each task. */
  const last = new Map<string, Promise<void>>()
  const follow: TaskFollower['follow'] = (message, workspaceId) => {
    const key = `${message.place} ${message.id}`
    const { taskId } = message
    if (taskId === undefined || followed.size >= FOLLOWED_MAX || followed.has(key)) return
    followed.add(key)
    const before = last.get(taskId)
    // An answer belongs to a task that is followed already. Two followers at once would show each question twice.
    if (before !== undefined) void context.signs.react(message, 'seen')
    const ended = Promise.resolve(before)
      .then(() => keepFollowing({ message, workspaceId, taskId }, context, prompts))
      .catch((error) => log.warn({ err: toMoleculeError(error), channel: stored.name }, 'a task cannot be followed'))
      .finally(() => {
        followed.delete(key)
        if (last.get(taskId) === ended) last.delete(taskId)
      })
    last.set(taskId, ended)
  }
  return {
    follow,
    async resumeAll() {
      try {
        await prompts.closeBudgets()
        for (const message of await chatLog.open(stored.name)) {
          const work = await readTaskWork(store, message.taskId ?? '')
          if (work === undefined) await chatLog.close(message)
          else follow(message, work.workspaceId)
        }
      } catch (error) {
        log.warn({ err: toMoleculeError(error), channel: stored.name }, 'the open tasks of a channel cannot be read')
      }
    },
  }
}

interface FollowedTask {
  readonly message: HandledMessage
  readonly taskId: string
  readonly workspaceId: string
}

/** One failed read of the store must not hide the permissions and the end of a task until the next start. */
async function keepFollowing(task: FollowedTask, context: SessionContext, prompts: Prompts): Promise<void> {
  const { clock, log, signal, stored } = context
  for (const delayMs of FOLLOW_AGAIN_MS) {
    try {
      return await followTask(task, context, prompts)
    } catch (error) {
      log.debug({ err: toMoleculeError(error), channel: stored.name }, 'a task is followed again')
      await sleep(clock, delayMs, signal)
    }
  }
  await followTask(task, context, prompts)
}

async function followTask(task: FollowedTask, context: SessionContext, prompts: Prompts): Promise<void> {
  const { logs, reception, chatLog, signal } = context
  const { message, taskId, workspaceId } = task
  if (signal.aborted) return
  const show = createProgress(task, context)
  /** After a stop the next start shows how the task ended. */
  const close = async () => {
    await show.shown()
    if (!signal.aborted) await chatLog.close(message)
  }
  try {
    const cursor = await logs.resolveCursor(workspaceId, undefined)
    const now = await reception.task(taskId, { historyLength: 0, artifacts: false })
    const update = async (state: TaskState, text: string, isReply: boolean) => {
      const isParked = state === 'TASK_STATE_WORKING' && text !== '' && (await prompts.tellBudget(message, text))
      show.state(state, isParked)
      // After a restart an ask may be over whose prompt still has its buttons.
      if (state === 'TASK_STATE_AUTH_REQUIRED' && !isReply) await prompts.ask(message, workspaceId)
      else await prompts.expire(taskId)
    }
    const status = now?.status
    if (status !== undefined) await update(status.state, textOf(status.message?.parts), false)
    if (status !== undefined && isFinal(status.state)) return await close()
    for await (const row of logs.follow(workspaceId, cursor, signal)) {
      const { state, text, isReply, tools, hasBudgetAnswer } = readRow(row, taskId)
      show.tools(tools)
      if (hasBudgetAnswer || state !== undefined) await prompts.closeBudgets()
      if (state === undefined) continue
      await update(state, text, isReply)
      if (state === 'TASK_STATE_INPUT_REQUIRED' && !isReply && text !== '') await prompts.question(message, text)
      if (isFinal(state) || isReply) break
    }
    await close()
  } finally {
    await show.end()
  }
}

/** What a row of the log says about one task, and about budgets. */
function readRow({ entries }: ActivityRow, taskId: string) {
  const own = entries.filter((entry) => entry.task_id === taskId)
  const status = own.findLast(({ type, state }) => type === 'status' && state !== undefined)
  return {
    state: status?.state as TaskState | undefined,
    text: status?.text ?? '',
    hasBudgetAnswer: entries.some(({ type, name }) => type === 'budget' && name !== 'asked'),
    isReply: own.some(({ type }) => type === 'reply'),
    tools: own.filter(({ type, state }) => type === 'tool' && state === 'started').map(({ name = 'a tool' }) => name),
  }
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

/** Reaction, typing and the progress message of one task. */
function createProgress({ message }: FollowedTask, context: SessionContext) {
  const { channel, clock, chatLog, say, inPlace, signal, signs } = context
  const { place, messageId } = message
  const startMs = clock.monotonicMs()
  const tools: string[] = []
  let shown: ReactionState | undefined
  let progressId = message.progressId
  let cancelTyping = (): void => undefined
  let cancelProgress = (): void => undefined
  let editing: Promise<unknown> = Promise.resolve()
  let reacted: Promise<unknown> = Promise.resolve()
  const type = () => {
    signs.typing(place)
    cancelTyping = clock.after(channel.limits.typingMs * 0.8, type)
  }
  const edit = (markdown: string) =>
    inPlace(place, 'progress', async () => {
      const text = firstText(channel, markdown)
      if (progressId !== undefined && text !== undefined)
        await channel.edit({ place, messageId: progressId, text }, signal)
    })
  const report = async () => {
    if (!signs.mayShowProgress()) return
    const text = `Working for ${formatDuration(roundedMs())}${toolsText(tools)}`
    if (progressId !== undefined) return await edit(text)
    const said = await say({ place, markdown: text, replyTo: messageId, rank: 'progress' })
    progressId = said?.type === 'sent' ? said.messageId : undefined
    if (progressId !== undefined) await chatLog.setProgress(message, progressId)
  }
  const roundedMs = () => Math.max(1, Math.round((clock.monotonicMs() - startMs) / 1000)) * 1000
  const schedule = (delayMs: number) => {
    cancelProgress = clock.after(delayMs, () => {
      editing = report()
        .catch(() => undefined)
        .then(() => {
          if (shown === 'running')
            schedule(Math.max(PROGRESS_EVERY_MS, (clock.monotonicMs() - startMs) / PROGRESS_SHARE))
        })
    })
  }
  const rest = () => {
    cancelTyping()
    cancelProgress()
  }
  return {
    state(state: TaskState, isParked = false) {
      const reaction = isParked ? 'waiting' : REACTIONS[state]
      if (reaction === shown) return
      shown = reaction
      rest()
      reacted = signs.react({ place, messageId }, reaction)
      if (reaction !== 'running' || signal.aborted) return
      type()
      schedule(PROGRESS_AFTER_MS)
    },
    shown: () => reacted,
    tools: (names: readonly string[]) => void tools.push(...names),
    async end() {
      rest()
      await editing
      if (progressId === undefined || signal.aborted) return
      const ends: Partial<Record<ReactionState, string>> = { done: 'Done', failed: 'Ended', waiting: 'Waiting' }
      await edit(`${ends[shown ?? 'done'] ?? 'Ended'} after ${formatDuration(roundedMs())}${toolsText(tools)}`).catch(
        () => undefined,
      )
    },
  }
}

/** Names only: what exactly a tool does is for owners. */
function toolsText(tools: readonly string[]): string {
  if (tools.length === 0) return ''
  const last = tools.slice(-TOOLS_SHOWN_MAX).join(', ')
  return ` · ${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}: ${tools.length > TOOLS_SHOWN_MAX ? '..., ' : ''}${last}`
}
