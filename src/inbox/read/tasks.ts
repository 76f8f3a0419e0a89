/** Tasks as callers see them, read from the rows of the task, its messages and their replies. */
import { MoleculeError } from '../../errors.ts'
import { type Artifact, isFinal, type Message, type Task, type TaskState } from '../../protocol/a2a.ts'
import { restoreEnvelope } from '../../protocol/envelope.ts'
import { sql, type Transaction } from '../../store/store.ts'
import type { TaskSnapshot, TaskView } from '../inbox.ts'
import { type StatusMessage, type TaskIds, toAgentMessage } from '../settle/status-message.ts'
import { replyArtifactId, type StoredReply } from './event-log.ts'
import { partialArtifacts } from './partial-artifacts.ts'
import { messagesOfTask } from './task-messages.ts'
import { whyWaiting } from './why-waiting.ts'

export interface StoredTaskRow {
  id: string
  workspace_id: string
  conversation_id: string
  context_id: string
  state: TaskState
  status_message: string | null
  updated_at: number
}

/** The task's row; undefined where the view does not allow it. */
export function* findTask(taskId: string, view: TaskView): Transaction<StoredTaskRow | undefined> {
  const [row] = yield* sql<StoredTaskRow & { principal: string }>(
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
  return row === undefined ? undefined : yield* showTask(row, view)
}

const MESSAGES_OF_TASK = `select m.id, m.envelope, m.reply from messages m where ${messagesOfTask('m', '$1')} order by m.n`

/** The task of a row that `findTask` returned. */
export function* showTask(row: StoredTaskRow, view: TaskView): Transaction<Task> {
  const rows = yield* sql<MessageRow>(MESSAGES_OF_TASK, [row.id])
  const waits = row.state === 'TASK_STATE_SUBMITTED' && row.status_message === null
  const waitingStatus = waits ? yield* whyWaiting(row) : undefined
  const status = row.status_message === null ? waitingStatus : (JSON.parse(row.status_message) as StatusMessage)
  const standing = { id: row.id, contextId: row.context_id, state: row.state, status, atMs: row.updated_at }
  return toTask(standing, rows.map(toMessageAndReply), view)
}

/** A task without its messages. */
export interface TaskStanding extends TaskIds {
  readonly state: TaskState
  readonly status: StatusMessage | undefined
  readonly atMs: number
}

/** One message of a task and its reply. */
export interface MessageAndReply {
  readonly id: string
  readonly message: Message
  readonly reply: StoredReply | undefined
}

export function toTask(task: TaskStanding, exchanges: readonly MessageAndReply[], view: TaskView): Task {
  const artifacts = latestArtifacts(exchanges.flatMap(artifactsOf))
  const history = historyOf(task, exchanges, view.historyLength)
  return {
    id: task.id,
    contextId: task.contextId,
    status: { state: task.state, ...statusContent(task, view), timestamp: new Date(task.atMs).toISOString() },
    ...(artifacts.length > 0 && { artifacts }),
    ...(history.length > 0 && { history }),
  }
}

const toMessageAndReply = ({ id, envelope, reply }: MessageRow): MessageAndReply => ({
  id,
  message: restoreEnvelope(envelope).message,
  reply: reply === null ? undefined : (JSON.parse(reply) as StoredReply),
})

export function* readSnapshot(taskId: string, view: TaskView): Transaction<TaskSnapshot | undefined> {
  const task = yield* readTask(taskId, view)
  const [range] = yield* sql<{ last: number | null; first: number | null }>(
    'select max(seq) as last, min(seq) as first from events where task_id = $1',
    [taskId],
  )
  if (task === undefined) return undefined
  const { first, last } = { first: range?.first ?? 0, last: range?.last ?? 0 }
  // A final task has no partial reply, and a log with one entry shows none yet.
  if (first === last || isFinal(task.status.state)) return { task, seq: last, firstSeq: first }
  const artifacts = [...(task.artifacts ?? []), ...(yield* partialArtifacts(task, task.artifacts ?? []))]
  return { task: artifacts.length > 0 ? { ...task, artifacts } : task, seq: last, firstSeq: first }
}

function artifactsOf({ id, reply }: MessageAndReply): Artifact[] {
  if (reply === undefined) return []
  const { artifacts, ...content } = reply
  return content.parts.length === 0 ? [...artifacts] : [...artifacts, { artifactId: replyArtifactId(id), ...content }]
}

/** A later turn of a task may give an artifact again: the last version counts, at the place of the first. */
function latestArtifacts(artifacts: readonly Artifact[]): readonly Artifact[] {
  if (artifacts.length < 2) return artifacts
  return [...new Map(artifacts.map((artifact) => [artifact.artifactId, artifact])).values()]
}

/** Unset = all, 0 = none, N = the last N. */
function historyOf(
  { id, contextId }: TaskIds,
  exchanges: readonly MessageAndReply[],
  length: number | undefined,
): Message[] {
  const from = length === undefined ? 0 : Math.max(0, exchanges.length - length)
  return exchanges.slice(from).map(({ message }) => ({ ...message, taskId: id, contextId }))
}

function statusContent(task: TaskStanding, { detail }: TaskView): { message?: Message } {
  const { status } = task
  return status === undefined
    ? {}
    : { message: toAgentMessage(task, { messageId: `${task.id}.status`, status, detail }) }
}
