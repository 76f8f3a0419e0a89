/** Tasks as callers see them: their state, and the snapshot that is read from the task, its messages and replies. */
import { MoleculeError } from '../errors.ts'
import { type Artifact, isFinal, type Message, type Task, type TaskState } from '../protocol/a2a.ts'
import { restoreEnvelope } from '../protocol/envelope.ts'
import { type Statement, sql, statement, type Transaction } from '../store/store.ts'
import { replyArtifactId, type StoredReply } from './event-log.ts'
import type { Snapshot, TaskView } from './inbox.ts'
import { partialArtifacts } from './partial-artifacts.ts'
import { type Said, statusMessage } from './said.ts'
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
  return row === undefined ? undefined : yield* showTask(row, view)
}

/** The task of a row that the viewer may see. */
export function* showTask(row: TaskRow, view: TaskView): Transaction<Task> {
  const messages = yield* sql<MessageRow>('select id, envelope, reply from messages where task_id = $1 order by n', [
    row.id,
  ])
  const waits = row.state === 'TASK_STATE_SUBMITTED' && row.status_message === null
  const words = waits ? yield* whyWaiting(row) : undefined
  const artifacts = latest(messages.flatMap(artifactsOf))
  const history = historyOf(row, messages, view.historyLength)
  return {
    id: row.id,
    contextId: row.context_id,
    status: { state: row.state, ...statusWords(row, words, view), timestamp: new Date(row.updated_at).toISOString() },
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
  if (task === undefined) return undefined
  const { first, last } = { first: range?.first ?? 0, last: range?.last ?? 0 }
  // A task that rests has no answer in the making, and one whose log begins and ends here has shown nothing yet.
  if (first === last || isFinal(task.status.state)) return { task, seq: last, firstSeq: first }
  const artifacts = [...(task.artifacts ?? []), ...(yield* partialArtifacts(task, task.artifacts ?? []))]
  return { task: artifacts.length > 0 ? { ...task, artifacts } : task, seq: last, firstSeq: first }
}

function artifactsOf({ id, reply }: MessageRow): Artifact[] {
  if (reply === null) return []
  const { artifacts, ...words } = JSON.parse(reply) as StoredReply
  return words.parts.length === 0 ? [...artifacts] : [...artifacts, { artifactId: replyArtifactId(id), ...words }]
}

/** An agent that goes on with a task may give an artifact of it anew: the last one counts, in the first one's place. */
function latest(artifacts: readonly Artifact[]): Artifact[] {
  return [...new Map(artifacts.map((artifact) => [artifact.artifactId, artifact])).values()]
}

/** Unset = all, 0 = none, N = the last N. */
function historyOf(row: TaskRow, messages: readonly MessageRow[], length: number | undefined): Message[] {
  const from = length === undefined ? 0 : Math.max(0, messages.length - length)
  return messages.slice(from).map((message) => {
    const { message: words } = restoreEnvelope(message.envelope)
    return { ...words, taskId: row.id, contextId: row.context_id }
  })
}

function statusWords(row: TaskRow, waiting: Said | undefined, { detail }: TaskView): { message?: Message } {
  const said = row.status_message === null ? waiting : (JSON.parse(row.status_message) as Said)
  if (said === undefined) return {}
  const messageId = `${row.id}.status`
  return { message: statusMessage({ id: row.id, contextId: row.context_id }, { messageId, said, detail }) }
}
