/**
 * Questions of a running turn to a person. Asking suspends the turn and sets its task to input-required; the next
 * message with that task's id is the answer and goes to the waiting worker instead of into the queue. A question for
 * permission sets auth-required and is answered through `pending-asks.ts` alone: who sends a task may not also allow what its
 * agent does. No answer in time is a denial. If the worker dies the question is void and the answer is queued behind
 * the re-run.
 */
import type { Part, TaskState } from '../../protocol/a2a.ts'
import { sql, type Transaction, together } from '../../store/store.ts'
import { type Ask, type LeaseKey, type LeaseStanding, leaseId } from '../inbox.ts'
import { lockWorkspace } from '../lease/lock-workspace.ts'
import { lockHeldTurn, type SuspendOutput, suspend, takeSlotBack } from '../lease/suspend.ts'
import { recordChange } from '../read/event-log.ts'
import { setTaskState } from '../read/tasks.ts'

/** How long a question waits where it does not say otherwise. */
const ASK_TIMEOUT_MS = 30 * 60_000
const EXPIRED_MAX = 100

export function* ask(key: LeaseKey, question: Ask, accepts: (id: string) => boolean): Transaction<SuspendOutput> {
  const message = yield* lockHeldTurn(key)
  if (message === undefined) return { answer: 'stale', next: undefined }
  if (message.state === 'stopping') return { answer: 'stop', next: undefined }
  const asked = yield* sql<{ id: string; state: string }>(
    'select id, state from asks where message_id = $1 and epoch = $2',
    [key.messageId, key.epoch],
  )
  // The answer to an earlier ask was lost and the worker asks again: one question is put once.
  if (asked.some(({ id }) => id === question.id)) return { answer: 'held', next: undefined }
  // The next message of the task is the answer: with two questions open nobody could tell to which.
  if (asked.some(({ state }) => state === 'open')) return { answer: 'refused', next: undefined }
  const suspended = yield* suspend(key, accepts)
  if (suspended.answer !== 'held') return suspended
  yield* sql(
    `insert into asks (message_id, id, workspace_id, task_id, epoch, state, question, tool, subject, asked_at, expires_at)
     values ($1, $2, $3, $4, $5, 'open', $6, $7, $8, now_ms(), now_ms() + $9)`,
    [
      key.messageId,
      question.id,
      key.workspaceId,
      key.taskId,
      key.epoch,
      JSON.stringify(question.parts),
      question.permission?.tool ?? null,
      question.permission?.subject ?? null,
      question.timeoutMs ?? ASK_TIMEOUT_MS,
    ],
  )
  yield* sql('update messages set asked = 1 where id = $1', [key.messageId])
  const waits = question.permission === undefined ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_AUTH_REQUIRED'
  yield* setAskStatus(key, { state: waits, parts: question.parts })
  return suspended
}

/** A question whose turn still waits for it. */
export interface OpenAsk {
  readonly id: string
  readonly key: LeaseKey
  readonly worker: string
  readonly forPermission: boolean
}

interface OpenAskRow {
  id: string
  message_id: string
  workspace_id: string
  task_id: string
  epoch: number
  conversation_id: string
  worker: string
  tool: string | null
}

const SELECT_OPEN = `select a.id, a.message_id, a.workspace_id, a.task_id, a.epoch, a.tool, c.id as conversation_id, c.worker
  from asks a join messages m on m.id = a.message_id join conversations c on c.id = m.conversation_id
  where a.state = 'open' and c.lease_epoch = a.epoch and m.state = 'leased'`

/** What the task's turn is waiting to hear, if it is. */
export function* openAskOf(taskId: string): Transaction<OpenAsk | undefined> {
  const [row] = yield* sql<OpenAskRow>(`${SELECT_OPEN} and a.task_id = $1`, [taskId])
  return row === undefined ? undefined : toOpenAsk(row)
}

/** The question itself, while its turn waits for it. */
export function* findOpenAsk({ messageId, epoch, id }: AskKey): Transaction<OpenAsk | undefined> {
  const [row] = yield* sql<OpenAskRow>(`${SELECT_OPEN} and a.message_id = $1 and a.epoch = $2 and a.id = $3`, [
    messageId,
    epoch,
    id,
  ])
  return row === undefined ? undefined : toOpenAsk(row)
}

/** The key of one ask. It stays unique, because no epoch is used twice. */
export interface AskKey {
  readonly messageId: string
  readonly epoch: number
  readonly id: string
}

/** `<message>.<epoch>.<ask>`, as owners see it: the whole key, so that no answer can reach another ask. */
export const askIdOf = (key: AskKey): string => `${leaseId(key)}.${key.id}`

/** Undefined where the text is no such id. */
export function parseAskId(text: string): AskKey | undefined {
  const [, messageId, epoch, id] = /^([^.]{1,64})\.(\d{1,15})\.(.{1,128})$/s.exec(text) ?? []
  return messageId && epoch && id ? { messageId, epoch: Number(epoch), id } : undefined
}

export function* findUnanswered(): Transaction<OpenAsk[]> {
  const rows = yield* sql<OpenAskRow>(`${SELECT_OPEN} and a.expires_at < now_ms() limit ${EXPIRED_MAX}`)
  return rows.map(toOpenAsk)
}

const toOpenAsk = (row: OpenAskRow): OpenAsk => ({
  id: row.id,
  worker: row.worker,
  forPermission: row.tool !== null,
  key: {
    workspaceId: row.workspace_id,
    conversationId: row.conversation_id,
    taskId: row.task_id,
    messageId: row.message_id,
    epoch: row.epoch,
  },
})

/** Closes the question with the message that answers it; the turn goes on. */
export function* answerAsk(open: OpenAsk, answerMessageId: string): Transaction<void> {
  yield* sql(
    `update asks set state = 'answered', answer_message_id = $3 where message_id = $1 and id = $2 and state = 'open'`,
    [open.key.messageId, open.id, answerMessageId],
  )
  yield* resumeTurn(open.key)
}

/** Nobody answered in time: the turn goes on with a denial. False when somebody did meanwhile. */
export function* denyAsk(open: OpenAsk): Transaction<boolean> {
  yield* together([lockWorkspace(open.key.workspaceId)])
  return yield* closeAsk(open, { state: 'denied', by: null })
}

export interface AskAnswer {
  readonly state: 'answered' | 'denied'
  /** Who said so; null for the clock. */
  readonly by: string | null
}

/** Closes the question, once, and lets its turn go on. False when it was closed before. The workspace is locked. */
export function* closeAsk({ key, id }: OpenAsk, { state, by }: AskAnswer): Transaction<boolean> {
  const closed = yield* sql(
    `update asks set state = $4, answered_by = $5 where message_id = $1 and epoch = $2 and id = $3 and state = 'open'
     returning id`,
    [key.messageId, key.epoch, id, state, by],
  )
  if (closed.length === 0) return false
  yield* resumeTurn(key)
  return true
}

function* resumeTurn(key: LeaseKey): Transaction<LeaseStanding> {
  const message = yield* lockHeldTurn(key)
  if (message === undefined) return 'stale'
  yield* takeSlotBack(key, message)
  yield* setAskStatus(key, { state: 'TASK_STATE_WORKING' })
  return 'held'
}

interface Told {
  readonly state: TaskState
  readonly parts?: readonly Part[]
}

function* setAskStatus(key: LeaseKey, { state, parts }: Told): Transaction<void> {
  const status = parts === undefined ? undefined : { parts }
  const items = [{ t: 'status', state, ...status } as const]
  const entries = [{ taskId: key.taskId, messageId: key.messageId, items }]
  yield* together([setTaskState(key.taskId, state, status), ...recordChange({ workspaceId: key.workspaceId, entries })])
}
