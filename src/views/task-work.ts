/** Where a task is worked on, whether a turn of it runs, and how its last message ended: for a door that decides by it. */
import { IS_RUNNING } from '../inbox/rows/message.ts'
import { messagesOfTask } from '../inbox/rows/task-messages.ts'
import { type ReadStore, sql, type Transaction } from '../store/store.ts'

interface TaskWork {
  readonly workspaceId: string
  /** A turn that waits for a permission, or is being stopped, runs too. */
  readonly isRunning: boolean
}

/** Undefined for an unknown task. */
export const readTaskWork = (store: ReadStore, taskId: string): Promise<TaskWork | undefined> =>
  store.read(() => workOf(taskId))

function* workOf(taskId: string): Transaction<TaskWork | undefined> {
  const [row] = yield* sql<{ workspace_id: string; turns: number }>(
    `select t.workspace_id, (select count(*) from messages m where ${messagesOfTask('m', 't.id')}
       and m.${IS_RUNNING}) as turns from tasks t where t.id = $1`,
    [taskId],
  )
  return row && { workspaceId: row.workspace_id, isRunning: Number(row.turns) > 0 }
}

interface LastTry {
  readonly workspaceId: string
  readonly messageId: string
  /** It failed for good. */
  readonly isDead: boolean
  /** The task of its replay. */
  readonly replayedAs: string | undefined
}

/** The last message of a task; undefined when it was pruned. */
export const readLastTry = (store: ReadStore, taskId: string): Promise<LastTry | undefined> =>
  store.read(() => lastTryOf(taskId))

function* lastTryOf(taskId: string): Transaction<LastTry | undefined> {
  const [row] = yield* sql<{ id: string; workspace_id: string; state: string; replayed_as: string | null }>(
    `select m.id, m.workspace_id, m.state, m.replayed_as from messages m where ${messagesOfTask('m', '$1')}
     order by m.n desc limit 1`,
    [taskId],
  )
  return (
    row && {
      workspaceId: row.workspace_id,
      messageId: row.id,
      isDead: row.state === 'dead',
      replayedAs: row.replayed_as ?? undefined,
    }
  )
}
