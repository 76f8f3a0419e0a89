/**
 * Cancelling: cancel or settle wins, whichever commits first. The task is cancelled at once. A running message becomes
 * `stopping` and its conversation stays leased until the worker settles, so that the next turn cannot meet the old
 * process in one session. What it has written so far becomes its reply, marked as partial.
 */
import { MoleculeError } from '../../errors.ts'
import { isFinal } from '../../protocol/a2a.ts'
import { writeReply } from '../../protocol/stored-reply.ts'
import { runStatement, sql, type Transaction, together } from '../../store/store.ts'
import { findTask, taskNotFound } from '../read/tasks.ts'
import type { TaskView } from '../reception.ts'
import { refreshReadiness } from '../rows/conversation.ts'
import { LEASE_COLUMNS, type LeaseRow, toLeaseKey } from '../rows/lease.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { type LogItem, recordChange } from '../rows/log.ts'
import { cancelQueued, inStates, stopMessage } from '../rows/message.ts'
import { closeChildrenIn } from '../rows/message-updates.ts'
import type { StatusMessage } from '../rows/status-message.ts'
import { setTaskState } from '../rows/task.ts'
import { messagesOfTask } from '../rows/task-messages.ts'
import type { LeaseKey } from '../worker.ts'
import { partialReplyOf, type StoppedTurn } from './partial-reply.ts'

export interface CanceledTask {
  readonly workspaceId: string
  /** The turn to stop, and its worker. */
  readonly running?: { readonly key: LeaseKey; readonly worker: string }
}

/** `status` says why, where the caller itself does not know. */
export function* cancel(taskId: string, view: TaskView, status?: StatusMessage): Transaction<CanceledTask> {
  const workspaceId = (yield* findTask(taskId, view))?.workspace_id ?? ''
  yield* together([lockWorkspace(workspaceId)])
  const task = yield* findTask(taskId, view)
  if (task === undefined) throw taskNotFound(taskId)
  if (task.state === 'TASK_STATE_CANCELED') return { workspaceId }
  if (isFinal(task.state)) {
    throw new MoleculeError('not_cancelable', `task ${taskId} has ended already (${task.state})`)
  }
  const queued = yield* runStatement<{ id: string }>(cancelQueued(taskId))
  const [running] = yield* sql<LeaseRow & { worker: string; appended: number }>(
    `select c.worker, m.appended, ${LEASE_COLUMNS} from messages m join conversations c on c.id = m.conversation_id
     where ${messagesOfTask('m', '$1')} and m.${inStates('leased')}`,
    [taskId],
  )
  const partial = running === undefined ? [] : yield* stopTurn(running)
  const messageId = running?.message_id ?? queued[0]?.id ?? (yield* lastMessage(taskId))
  const items: LogItem[] = [...partial, { t: 'status', state: 'TASK_STATE_CANCELED', ...status }]
  const entries = [{ taskId, messageId, items }]
  // An agent that cancels its own delegation needs no message about it.
  if (view.principal === task.principal) yield* runStatement(closeChildrenIn(taskId))
  yield* together([
    setTaskState(taskId, 'TASK_STATE_CANCELED', status),
    ...(queued.length > 0 ? [refreshReadiness(task.conversation_id)] : []),
    ...recordChange({ workspaceId, waiting: -queued.length, entries }),
  ])
  if (running === undefined) return { workspaceId }
  return { workspaceId, running: { key: toLeaseKey(running), worker: running.worker } }
}

/** Returns what the log says of the text that is kept. */
function* stopTurn(turn: StoppedTurn): Transaction<LogItem[]> {
  const reply = yield* partialReplyOf(turn)
  const stored = reply === undefined ? null : writeReply(reply)
  yield* runStatement(stopMessage(turn.message_id, stored))
  return reply === undefined ? [] : [{ t: 'reply', partial: true }]
}

function* lastMessage(taskId: string): Transaction<string> {
  const [row] = yield* sql<{ id: string }>(
    `select m.id from messages m where ${messagesOfTask('m', '$1')} order by m.n desc limit 1`,
    [taskId],
  )
  return row?.id ?? ''
}
