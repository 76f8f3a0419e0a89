/** Tasks as callers see them: their state, and the snapshot that is read from the task, its messages and replies. */
import { MoleculeError } from '../errors.ts'
import type { Artifact, Message, Task, TaskState } from '../protocol/a2a.ts'
import { restoreEnvelope } from '../protocol/envelope.ts'
import { type Statement, sql, statement, type Transaction } from '../store/store.ts'
import { replyArtifactId, type Said, type StoredReply, statusMessage } from './event-log.ts'
import type { Snapshot, TaskView } from './inbox.ts'
import { whyWaiting } from './why-waiting.ts'

export const setTaskState = (taskId: string, state: TaskState, said?: Said): Statement =>
  statement('update tasks set state = $2, status_message = $3, updated_at = now_ms() where id = $1', [
    taskId,
    state,
    said === undefined ? null : JSON.stringify(said),
  ])

export interface TaskRow {
  id: string
  workspace_id: string
  conversation_id: string
  context_id: string
  state: TaskState
  status_message: string | null
  updated_at: number
}

/** The task's row if the viewer may see it; for anybody else it does not exist. */
export function* findTask(taskId: string, view: TaskView): Transaction<TaskRow | undefined> {
  const [row] = yield* sql<TaskRow & { principal: string }>(
    `select id, workspace_id, conversation_id, context_id, principal, state, status_message, updated_at
     from tasks where id = $1`,
    [taskId],
  )
  if (row === undefined) return undefined
  if (view.principal !== undefined && view.principal !== row.principal) return undefined
  if (view.workspaceId !== undefined && view.workspaceId !== row.workspace_id) return undefined
  return row
}

export const taskNotFound = (taskId: string): MoleculeError =>
  new MoleculeError('not_found', `there is no task ${taskId}`)

interface MessageRow {
  id: string
  envelope: string
  reply: string | null
}

export function* readTask(taskId: string, view: TaskView): Transaction<Task | undefined> {
  const row = yield* findTask(taskId, view)
  if (row === undefined) return undefined
  const messages = yield* sql<MessageRow>('select id, envelope, reply from messages where task_id = $1 order by n', [
    taskId,
  ])
  const waits = row.state === 'TASK_STATE_SUBMITTED' && row.status_message === null
  const words = waits ? yield* whyWaiting(row) : undefined
  const artifacts = messages.flatMap(artifactsOf)
  const history = historyOf(row, messages, view.historyLength)
  return {
    id: row.id,
    contextId: row.context_id,
    status: { state: row.state, ...statusWords(row, words), timestamp: new Date(row.updated_at).toISOString() },
    ...(artifacts.length > 0 && { artifacts }),
    ...(history.length > 0 && { history }),
  }
}

export function* readSnapshot(taskId: string, view: TaskView): Transaction<Snapshot | undefined> {
  const task = yield* readTask(taskId, view)
  const [range] = yield* sql<{ last: number | null; first: number | null }>(
    'select max(seq) as last, min(seq) as first from events where task_id = $1',
    [taskId],
  )
  return task && { task, seq: range?.last ?? 0, firstSeq: range?.first ?? 0 }
}

function artifactsOf({ id, reply }: MessageRow): Artifact[] {
  if (reply === null) return []
  const { parts, artifacts } = JSON.parse(reply) as StoredReply
  return [...artifacts, { artifactId: replyArtifactId(id), parts }]
}

/** Unset = all, 0 = none, N = the last N. */
function historyOf(row: TaskRow, messages: readonly MessageRow[], length: number | undefined): Message[] {
  const from = length === undefined ? 0 : Math.max(0, messages.length - length)
  return messages.slice(from).map((message) => {
    const { message: words } = restoreEnvelope(message.envelope)
    return { ...words, taskId: row.id, contextId: row.context_id }
  })
}

function statusWords(row: TaskRow, waiting: Said | undefined): { message?: Message } {
  const words = row.status_message === null ? waiting : (JSON.parse(row.status_message) as Said)
  if (words === undefined) return {}
  return { message: statusMessage({ id: row.id, contextId: row.context_id }, `${row.id}.status`, words) }
}
