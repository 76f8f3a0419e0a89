/**
 * The queue of a workspace as a whole: pause, stop, end. A paused queue leases nothing and loses nothing. Ending settles every
 * open message with one failure, so that every waiting caller gets it, and removes the queue. After that the workspace admits
 * nothing, and every call of its workers is stale.
 */
import { MoleculeError } from '../../errors.ts'
import { runStatement, sql, statement, type Transaction, together } from '../../store/store.ts'
import { voidOpenAsksOf } from '../rows/ask.ts'
import { refreshReadiness, voidLeasesOf } from '../rows/conversation.ts'
import { LEASE_COLUMNS, type LeaseRow, toLeaseKey } from '../rows/lease.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { type NewLogEntry, recordChange } from '../rows/log.ts'
import { cancelRunningOf, cancelWaitingOf, IS_RUNNING, inStates } from '../rows/message.ts'
import { discardDeadLettersOf, wakeMessagesOf } from '../rows/message-updates.ts'
import { IS_OPEN } from '../rows/task.ts'
import { messagesOfTask } from '../rows/task-messages.ts'
import type { Failure, LeaseKey } from '../worker.ts'
import { type CanceledTask, cancel } from './cancel.ts'
import { failTask } from './fail-task.ts'

export interface RunningTurn {
  readonly worker: string
  readonly key: LeaseKey
}

export function* pauseQueue(workspaceId: string, now: boolean): Transaction<RunningTurn[]> {
  yield* setPaused(workspaceId, 1)
  return now ? yield* findRunning(workspaceId) : []
}

/** Paused first: otherwise the slot of a cancelled turn would go to the next message. */
export function* cancelRunning(workspaceId: string): Transaction<(CanceledTask & { readonly taskId: string })[]> {
  yield* setPaused(workspaceId, 1)
  const rows = yield* sql<{ task_id: string }>(
    `select distinct m.task_id from messages m where m.workspace_id = $1 and m.${IS_RUNNING}
     and m.${inStates('leased')} order by m.task_id`,
    [workspaceId],
  )
  const canceled: (CanceledTask & { readonly taskId: string })[] = []
  for (const { task_id: taskId } of rows) canceled.push({ taskId, ...(yield* cancel(taskId, {})) })
  return canceled
}

export function* setPaused(workspaceId: string, paused: 0 | 1): Transaction<void> {
  const rows = yield* sql('update workspace_load set paused = $2 where workspace_id = $1 returning workspace_id', [
    workspaceId,
    paused,
  ])
  if (rows.length === 0) throw new MoleculeError('not_found', `there is no workspace ${workspaceId}`)
}

/**
 * A message that was parked before its turn began: a released message has a time in the future for no other reason. Its
 * next brief decides again, and parks it again where the limit still holds.
 */
export const HELD = `outcome = 'released'`
/** The first attempts come by themselves within seconds. A limit of the provider (`parks`) has a time of its own. */
export const FAILED_OFTEN = `outcome = 'retry' and parks = 0 and failures >= 4`

/** The messages of the condition that wait for a time are ready now. */
export function* wakeMessages(workspaceId: string, condition: string): Transaction<void> {
  yield* together([lockWorkspace(workspaceId)])
  const woken = yield* runStatement<{ conversation_id: string }>(wakeMessagesOf(workspaceId, condition))
  yield* together([...new Set(woken.map(({ conversation_id: id }) => id))].sort().map(refreshReadiness))
}

export function* endQueue(
  workspaceId: string,
  failure: Failure,
): Transaction<{ readonly running: readonly RunningTurn[]; readonly taskIds: readonly string[] }> {
  yield* together([lockWorkspace(workspaceId)])
  const running = yield* findRunning(workspaceId)
  const open = yield* sql<{ id: string; message_id: string }>(
    `select t.id, (select max(m.id) from messages m where ${messagesOfTask('m', 't.id')}) as message_id from tasks t
     where t.workspace_id = $1 and t.${IS_OPEN} order by t.id`,
    [workspaceId],
  )
  const entries: NewLogEntry[] = []
  for (const task of open) {
    const { items } = yield* failTask(task.id, failure)
    entries.push({ taskId: task.id, messageId: task.message_id, items })
  }
  yield* together([
    ...recordChange({ workspaceId, entries }),
    cancelWaitingOf(workspaceId),
    cancelRunningOf(workspaceId),
    discardDeadLettersOf(workspaceId),
    voidOpenAsksOf(workspaceId),
    voidLeasesOf(workspaceId),
    ...CLEANUP_STATEMENTS.map((text) => statement(text, [workspaceId])),
  ])
  return { running, taskIds: open.map(({ id }) => id) }
}

const CLEANUP_STATEMENTS: readonly string[] = [
  'delete from sessions where workspace_id = $1',
  'delete from permission_rules where workspace_id = $1',
  'delete from workspace_load where workspace_id = $1',
]

function* findRunning(workspaceId: string): Transaction<RunningTurn[]> {
  const rows = yield* sql<LeaseRow & { worker: string }>(
    `select c.worker, ${LEASE_COLUMNS} from messages m join conversations c on c.id = m.conversation_id
     where m.workspace_id = $1 and m.${IS_RUNNING} and c.worker is not null`,
    [workspaceId],
  )
  return rows.map((row) => ({ worker: row.worker, key: toLeaseKey(row) }))
}
