/** Tasks as callers see them, read from the rows of the task, its messages and their replies. */
import { MoleculeError } from '../../errors.ts'
import {
  type Artifact,
  isFinal,
  type Message,
  type MessageContent,
  type Part,
  type Task,
  type TaskState,
} from '../../protocol/a2a.ts'
import { restoreEnvelope } from '../../protocol/envelope.ts'
import { readReply, type StoredReply } from '../../protocol/stored-reply.ts'
import { PAGE_BYTES_MAX } from '../../store/page-budget.ts'
import { sql, type Transaction } from '../../store/store.ts'
import type { TaskSnapshot, TaskView } from '../reception.ts'
import { type StatusMessage, type TaskIds, toAgentMessage } from '../rows/status-message.ts'
import { messagesOfTask } from '../rows/task-messages.ts'
import { replyArtifactId } from './log-wire.ts'
import { partialArtifacts } from './partial-artifacts.ts'
import { coversPrincipal } from './principals.ts'
import { whyWaiting } from './why-waiting.ts'

export interface StoredTaskRow {
  id: string
  workspace_id: string
  conversation_id: string
  context_id: string
  principal: string
  state: TaskState
  status_message: string | null
  updated_at: number
}

/** The task's row; undefined where the view does not allow it. */
export function* findTask(taskId: string, view: TaskView): Transaction<StoredTaskRow | undefined> {
  const [row] = yield* sql<StoredTaskRow>(
    `select id, workspace_id, conversation_id, context_id, principal, state, status_message, updated_at
     from tasks where id = $1`,
    [taskId],
  )
  if (row === undefined) return undefined
  if (view.principal !== undefined && !coversPrincipal(view.principal, row.principal)) return undefined
  if (view.workspaceId !== undefined && view.workspaceId !== row.workspace_id) return undefined
  return row
}

export const taskNotFound = (taskId: string): MoleculeError =>
  new MoleculeError('not_found', `there is no task ${taskId}`)

interface MessageRow {
  id: string
  /** Null where the view does not show the message. */
  envelope: string | null
  /** Null where there is no reply, or the view does not show it. */
  reply: string | null
  /** 1 when a turn of the message asked a person. */
  asked: number
  n: number
  /** The number of messages of the task. */
  total: number
}

export function* readTask(taskId: string, view: TaskView): Transaction<Task | undefined> {
  const row = yield* findTask(taskId, view)
  return row === undefined ? undefined : yield* showTask(row, view)
}

/** One task shows at most this many bytes of its messages and replies: older ones are left out. */
const TASK_BYTES_MAX = 8 * 1024 * 1024

/** Messages of a task that are counted; a task does not show more. */
const TASK_MESSAGES_MAX = 10_000

/** A view without replies reads the last words of earlier turns only from replies up to this size. */
const SAID_BYTES_MAX = 64 * 1024

/**
 * The newest messages of a task within the budget, and at least one, in any order. `$2` is how many envelopes the view
 * shows, `$3` is how many bytes a reply may have that it shows; the history needs the last words of earlier turns.
 * Otherwise one task with hundreds of messages of 8 MB would fill the memory.
 * SQLite copies every column that a query with a window or an order uses: envelope and reply stay outside of both. The
 * `limit` keeps the planner from merging the innermost query into the one with the windows.
 */
const MESSAGES_OF_TASK = `select k.id, k.n, k.total, case when k.age <= $2 then m.envelope end as envelope,
    case when octet_length(m.reply) <= $3
      or (k.age > 1 and $2 > 0 and octet_length(m.reply) <= ${SAID_BYTES_MAX}) then m.reply end as reply,
    m.asked
  from (select s.id, s.n, s.bytes, row_number() over (order by s.n desc) as age, count(*) over () as total,
      sum(s.bytes) over (order by s.n desc rows unbounded preceding) as bytes_through
    from (select m.id, m.n, octet_length(m.envelope) + coalesce(octet_length(m.reply), 0) as bytes
      from messages m where ${messagesOfTask('m', '$1')} order by m.n desc limit ${TASK_MESSAGES_MAX}) s) k
  join messages m on m.id = k.id
  where k.bytes_through <= ${TASK_BYTES_MAX} or k.bytes_through = k.bytes`

/** The task of a row that `findTask` returned. */
export function* showTask(row: StoredTaskRow, view: TaskView): Transaction<Task> {
  const { historyLength = HISTORY_MAX, artifacts = true, replyBytesMax = REPLY_BYTES_MAX } = view
  const found = yield* sql<MessageRow>(MESSAGES_OF_TASK, [row.id, historyLength, artifacts ? replyBytesMax : 0])
  const rows = found.length < 2 ? found : found.toSorted((a, b) => a.n - b.n)
  const waits = row.state === 'TASK_STATE_SUBMITTED' && row.status_message === null
  const waitingStatus = waits ? yield* whyWaiting(row) : undefined
  const status = row.status_message === null ? waitingStatus : (JSON.parse(row.status_message) as StatusMessage)
  const standing = { id: row.id, contextId: row.context_id, state: row.state, status, atMs: row.updated_at }
  const questions = historyLength === 0 ? NO_QUESTIONS : yield* answeredQuestions(rows)
  const task = toTask(
    standing,
    rows.map((message) => toMessageAndReply(message, questions)),
    view,
  )
  const omitted = (rows[0]?.total ?? 0) - rows.length
  return omitted === 0 ? task : { ...task, metadata: { omitted_messages: omitted } }
}

/** More messages than a task can have. */
const HISTORY_MAX = 1_000_000_000
/** More bytes than a reply can have. */
const REPLY_BYTES_MAX = 1_000_000_000

/** A task without its messages. */
export interface TaskStanding extends TaskIds {
  readonly state: TaskState
  readonly status: StatusMessage | undefined
  readonly atMs: number
}

/** One message of a task and its reply. */
export interface MessageAndReply {
  readonly id: string
  /** Undefined where the view does not show it. */
  readonly message: Message | undefined
  readonly reply: StoredReply | undefined
  /** The question of a running turn that the message answers. */
  readonly answers?: MessageContent | undefined
}

export function toTask(task: TaskStanding, exchanges: readonly MessageAndReply[], view: TaskView): Task {
  const artifacts = view.artifacts === false ? [] : latestArtifacts(exchanges.flatMap(artifactsOf))
  const history = historyOf(task, exchanges, view.historyLength)
  return {
    id: task.id,
    contextId: task.contextId,
    status: { state: task.state, ...statusContent(task, view), timestamp: new Date(task.atMs).toISOString() },
    ...(artifacts.length > 0 && { artifacts }),
    ...(history.length > 0 && { history }),
  }
}

const toMessageAndReply = (
  { id, envelope, reply }: MessageRow,
  questions: ReadonlyMap<string, MessageContent>,
): MessageAndReply => ({
  id,
  message: envelope === null ? undefined : restoreEnvelope(envelope).message,
  reply: reply === null ? undefined : readReply(reply, id),
  answers: questions.get(id),
})

const NO_QUESTIONS: ReadonlyMap<string, MessageContent> = new Map()

/** The questions that these messages answer, by the id of the answer. Permissions are answered by owners only. */
function* answeredQuestions(rows: readonly MessageRow[]): Transaction<ReadonlyMap<string, MessageContent>> {
  const askers = rows.filter(({ asked }) => asked === 1)
  if (askers.length === 0) return NO_QUESTIONS
  const questions = new Map<string, MessageContent>()
  for (const { id } of askers) {
    const asks = yield* sql<{ answer_message_id: string; question: string }>(
      `select answer_message_id, question from asks where message_id = $1 and tool is null
       and answer_message_id is not null order by asked_at desc limit ${QUESTIONS_MAX}`,
      [id],
    )
    for (const ask of asks) questions.set(ask.answer_message_id, { parts: JSON.parse(ask.question) as Part[] })
  }
  return questions
}

/** Questions of one message in the history of its task; older ones are left out. */
const QUESTIONS_MAX = 100

export function* readSnapshot(taskId: string, view: TaskView): Transaction<TaskSnapshot | undefined> {
  const task = yield* readTask(taskId, view)
  const [range] = yield* sql<{ last: number | null; first: number | null; bytes: number | null }>(
    `select max(seq) as last, min(seq) as first, cast(sum(octet_length(items)) as bigint) as bytes
     from events where task_id = $1`,
    [taskId],
  )
  if (task === undefined) return undefined
  const { first, last, bytes } = { first: range?.first ?? 0, last: range?.last ?? 0, bytes: range?.bytes ?? 0 }
  // A final task has no partial reply, and a log with one entry shows none yet.
  if (first === last || isFinal(task.status.state)) return { task, seq: last, firstSeq: first }
  // Partial artifacts beyond the budget of a page are not joined in memory: the reader follows the log from its start.
  if (bytes > PAGE_BYTES_MAX) return { task, seq: first - 1, lastSeq: last, firstSeq: first }
  const artifacts = [...(task.artifacts ?? []), ...(yield* partialArtifacts(task, task.artifacts ?? []))]
  return { task: artifacts.length > 0 ? { ...task, artifacts } : task, seq: last, firstSeq: first }
}

/** The newest version of one artifact; replies are read one by one, the newest first. */
export function* readArtifact(taskId: string, artifactId: string, view: TaskView): Transaction<Artifact | undefined> {
  if ((yield* findTask(taskId, view)) === undefined) return undefined
  const messages = yield* sql<{ id: string }>(
    `select m.id from messages m where ${messagesOfTask('m', '$1')} and m.reply is not null order by m.n desc`,
    [taskId],
  )
  for (const { id } of messages) {
    const [row] = yield* sql<{ reply: string }>('select reply from messages where id = $1', [id])
    // Most replies do not have it, and to search a text is a hundred times faster than to parse it.
    if (row === undefined || !(artifactId === replyArtifactId(id) || row.reply.includes(JSON.stringify(artifactId))))
      continue
    const reply = readReply(row.reply, id)
    const found = artifactsOf({ id, message: undefined, reply }).findLast((each) => each.artifactId === artifactId)
    if (found !== undefined) return found
  }
  return undefined
}

function artifactsOf({ id, reply }: MessageAndReply): Artifact[] {
  if (reply === undefined) return []
  const { artifacts, said: _said, ...content } = reply
  return content.parts.length === 0 ? [...artifacts] : [...artifacts, { artifactId: replyArtifactId(id), ...content }]
}

/** A later turn of a task may give an artifact again: the last version counts, at the place of the first. */
function latestArtifacts(artifacts: readonly Artifact[]): readonly Artifact[] {
  if (artifacts.length < 2) return artifacts
  return [...new Map(artifacts.map((artifact) => [artifact.artifactId, artifact])).values()]
}

/**
 * Unset = all, 0 = none, N = the last N. What the agent said comes before the message that it got for it: a question
 * before its answer, the last status of a turn before the message of the next turn. The current one is the status.
 */
function historyOf(task: TaskIds, exchanges: readonly MessageAndReply[], length: number | undefined): Message[] {
  const history: Message[] = []
  let status: { readonly messageId: string; readonly status: MessageContent } | undefined
  for (const { id, message, reply, answers } of exchanges) {
    if (answers !== undefined) history.push(toAgentMessage(task, { messageId: `${id}.question`, status: answers }))
    else if (status !== undefined) history.push(toAgentMessage(task, status))
    if (message !== undefined) history.push({ ...message, taskId: task.id, contextId: task.contextId })
    if (answers === undefined) status = undefined
    if (reply?.said !== undefined) status = { messageId: `${id}.status`, status: reply.said }
  }
  return length === undefined ? history : history.slice(Math.max(0, history.length - length))
}

function statusContent(task: TaskStanding, { detail }: TaskView): { message?: Message } {
  const { status } = task
  return status === undefined
    ? {}
    : { message: toAgentMessage(task, { messageId: `${task.id}.status`, status, detail }) }
}
