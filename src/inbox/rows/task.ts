/** The row of a task, and its states. The last settle of a task also hands its result to the callers that wait in this process. */
import type { TaskState } from '../../protocol/a2a.ts'
import type { StoredReply } from '../../protocol/stored-reply.ts'
import { type Statement, statement } from '../../store/store.ts'
import { type States, stateCondition } from './state-condition.ts'
import type { StatusMessage } from './status-message.ts'

/** For a query on tasks: `t.${inTaskStates('TASK_STATE_WORKING')}`. */
const inTaskStates = (...states: States<TaskState>): string => stateCondition(states)

export const IS_OPEN = inTaskStates(
  ...(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'] as const),
)
export const IS_FINAL = inTaskStates(
  ...(['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED'] as const),
)

export interface NewTask {
  readonly id: string
  readonly workspaceId: string
  readonly conversationId: string
  readonly contextId: string
  readonly principal: string
}

export const insertTask = (row: NewTask, state: TaskState): Statement =>
  statement(
    `insert into tasks (id, workspace_id, conversation_id, context_id, principal, state, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, now_ms(), now_ms())`,
    [row.id, row.workspaceId, row.conversationId, row.contextId, row.principal, state],
  )

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
