/** Writes a task's state. The last settle of a task also hands its result to the callers that wait in this process. */
import type { TaskState } from '../../protocol/a2a.ts'
import type { StoredReply } from '../../protocol/stored-reply.ts'
import { type Statement, statement } from '../../store/store.ts'
import type { StatusMessage } from './status-message.ts'

/** The final task states, as a list for SQL. */
export const FINAL_STATES = `('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED')`

/** A task that is final or interrupted. With it, the most frequent call (one message, one reply) reads nothing back. */
export interface TaskResult {
  readonly state: TaskState
  readonly status?: StatusMessage
  readonly reply: StoredReply
  readonly atMs: number
}

export const setTaskState = (taskId: string, state: TaskState, status?: StatusMessage): Statement =>
  statement('update tasks set state = $2, status_message = $3, updated_at = now_ms() where id = $1', [
    taskId,
    state,
    toJson(status),
  ])

/** Takes the time from the result, so that waiting callers and later readers see the same. */
export const setTaskResult = (taskId: string, { state, status, atMs }: TaskResult): Statement =>
  statement('update tasks set state = $2, status_message = $3, updated_at = $4 where id = $1', [
    taskId,
    state,
    toJson(status),
    atMs,
  ])

const toJson = (status: StatusMessage | undefined): string | null =>
  status === undefined ? null : JSON.stringify(status)
