/**
 * Follows the tasks of messages: the state as a reaction, typing while the agent works, and the live message of a longer wait
 * or turn. All of it is best effort; the answer itself is a delivery.
 */
import { toMoleculeError } from '../../../errors.ts'
import { isFinal, type TaskState } from '../../../protocol/a2a.ts'
import { textOf } from '../../../protocol/part.ts'
import type { ActivityRow } from '../../../views/activity.ts'
import { readTaskWork } from '../../../views/task-work.ts'
import { sleep } from '../../../wait.ts'
import type { SessionContext } from '../chat-context.ts'
import { createTurnShow } from '../live/turn-show.ts'
import { createWaits, type FollowedTask, type Waits } from '../live/waits.ts'
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

export function createFollower(context: SessionContext, prompts: Prompts): TaskFollower {
  const { chatLog, store, stored, log } = context
  const waits = createWaits(context)
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
      .then(() => keepFollowing({ message, workspaceId, taskId }, context, { prompts, waits }))
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

interface FollowParts {
  readonly prompts: Prompts
  readonly waits: Waits
}

/** One failed read of the store must not hide the permissions and the end of a task until the next start. */
async function keepFollowing(task: FollowedTask, context: SessionContext, parts: FollowParts): Promise<void> {
  const { clock, log, signal, stored } = context
  for (const delayMs of FOLLOW_AGAIN_MS) {
    try {
      return await followTask(task, context, parts)
    } catch (error) {
      log.debug({ err: toMoleculeError(error), channel: stored.name }, 'a task is followed again')
      await sleep(clock, delayMs, signal)
    }
  }
  await followTask(task, context, parts)
}

async function followTask(task: FollowedTask, context: SessionContext, parts: FollowParts): Promise<void> {
  const { logs, reception, chatLog, signal } = context
  const { prompts, waits } = parts
  const { message, taskId, workspaceId } = task
  if (signal.aborted) return
  const show = createTurnShow(task, context, waits)
  /** After a stop the next start shows how the task ended. */
  const close = async () => {
    if ((await show.end()) && !signal.aborted) await chatLog.close(message)
  }
  const update = async (state: TaskState, text: string, isReply: boolean) => {
    const hasReason = state === 'TASK_STATE_WORKING' && text !== ''
    const waitsForBudget = hasReason && (await prompts.tellBudget(message, text))
    show.state({ state, isReply, isWaiting: hasReason || state === 'TASK_STATE_SUBMITTED', waitsForBudget })
    // After a restart an ask may be over whose prompt still has its buttons.
    if (state === 'TASK_STATE_AUTH_REQUIRED' && !isReply) await prompts.ask(message, workspaceId)
    else await prompts.expire(taskId)
  }
  try {
    const cursor = await logs.resolveCursor(workspaceId, undefined)
    const now = await reception.task(taskId, { historyLength: 0, artifacts: false })
    const status = now?.status
    if (status?.state === 'TASK_STATE_WORKING') await show.resume()
    if (status !== undefined) await update(status.state, textOf(status.message?.parts), false)
    if (status !== undefined && isFinal(status.state)) return await close()
    for await (const row of logs.follow(workspaceId, cursor, signal)) {
      const { state, text, isReply, hasBudgetAnswer } = readRow(row, taskId)
      show.add(row)
      if (hasBudgetAnswer || state !== undefined) await prompts.closeBudgets()
      if (state === undefined) continue
      await update(state, text, isReply)
      if (state === 'TASK_STATE_INPUT_REQUIRED' && !isReply && text !== '') await prompts.question(message, text)
      if (isFinal(state) || isReply) break
    }
    await close()
  } finally {
    show.rest()
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
  }
}
