/**
 * Admission: one transaction turns a letter into a durable message and its task, or attaches it to the task of the
 * same letter admitted before. Where a worker stands ready and nothing older waits, the same transaction also leases
 * the message to it: one commit instead of two is half of what makes a durable answer fast.
 */
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { isFinal, isInterrupted, type TaskState } from '../../protocol/a2a.ts'
import { contentHash, writeEnvelope } from '../../protocol/envelope.ts'
import { refuseLoop } from '../../protocol/relay-path.ts'
import { sql, statement, type Transaction, together } from '../../store/store.ts'
import { answerAsk, type OpenAsk, openAskOf } from '../ask/ask.ts'
import type { Admitted, Directive, Letter } from '../inbox.ts'
import { recordChange } from '../read/event-log.ts'
import { dedupeOf } from './dedupe.ts'
import {
  type ContinuedTaskRow,
  conversationStatement,
  leaseOfLetter,
  messageStatement,
  type Placement,
  type PreparedLetter,
  type TargetConversation,
  taskStatements,
} from './letter-rows.ts'

/** Messages that may wait in one workspace before a sender is told to come again. */
const QUEUE_MESSAGES_MAX = 1000
const QUEUE_RETRY_AFTER_MS = 5000

export function prepareLetter(letter: Letter): PreparedLetter {
  const { workspaceId, principal, envelope } = letter
  refuseLoop(envelope.message.metadata, workspaceId)
  const key = letter.idempotencyKey ?? envelope.message.messageId
  const dedupe = dedupeOf({ workspaceId, principal, key })
  return { letter, key, dedupe, hash: contentHash(envelope.message), envelopeText: writeEnvelope(envelope) }
}

/** The workers that would take a message at once: one for hosted workspaces, one that named this workspace. */
export interface ReadyWorkers {
  readonly hosted?: string
  readonly named?: string
}

export interface Admission {
  readonly admitted: Admitted
  /** What is handed out because of it: the message itself as a lease, or as the answer a turn waits for. */
  readonly toWorker?: { readonly worker: string; readonly directive: Directive }
}

export function* admit(prepared: PreparedLetter, ready: ReadyWorkers): Transaction<Admission> {
  const { letter } = prepared
  const given = letter.envelope.message
  const named = given.taskId === undefined ? undefined : yield* continuedTask(letter, given.taskId)
  const givenContext = named?.context_id ?? given.contextId
  const found = yield* lookUp(prepared, givenContext)
  // As it is under the lock: it may have ended since it was looked up.
  const task = named && { ...named, state: found.taskState ?? named.state }
  const duplicate = found.known && attachDuplicate(prepared, found.known)
  if (duplicate !== undefined) return { admitted: duplicate }
  if (task !== undefined) assertOpen(letter, task)
  const load = assertQueueNotFull(letter.workspaceId, found.load)
  const conversation = toConversation(found.conversation)
  const asked = task !== undefined && isInterrupted(task.state) ? yield* openAskOf(task.id) : undefined
  if (task !== undefined && asked?.kind === 'question') {
    return yield* admitAnswer(prepared, { conversation, task, asked })
  }
  const worker = load.hosted === 1 ? ready.hosted : ready.named
  // A newcomer may not jump the queue: where something older is ready it waits its turn.
  const open = load.paused === 0 && load.running < load.slots
  const claims = worker !== undefined && open && conversation.free && load.ready === 0
  // A context of our making is called like its conversation, which is then found without an index of names.
  const contextId = givenContext ?? conversation.id
  const place: Placement = {
    conversation,
    contextId,
    task,
    waitsForPermission: asked !== undefined,
    claimant: claims ? { worker, hosted: load.hosted === 1 } : undefined,
  }
  return yield* insertMessage(prepared, place)
}

/** Writes the letter into its place, in one step. */
function* insertMessage(prepared: PreparedLetter, place: Placement): Transaction<Admission> {
  const { conversation, contextId, task, waitsForPermission, claimant } = place
  const { workspaceId } = prepared.letter
  const claims = claimant !== undefined
  const messageId = prepared.letter.id ?? ulid()
  const taskId = task?.id ?? messageId
  const going: TaskState = claims || task !== undefined ? 'TASK_STATE_WORKING' : 'TASK_STATE_SUBMITTED'
  const state = waitsForPermission && task !== undefined ? task.state : going
  const change = {
    workspaceId,
    running: claims ? 1 : 0,
    waiting: claims ? 0 : 1,
    entries: [{ taskId, messageId, items: [{ t: 'status', state } as const] }],
  }
  yield* together([
    ...taskStatements(prepared.letter, place, { taskId, state }),
    conversationStatement(prepared.letter, place),
    messageStatement(prepared, conversation, {
      id: messageId,
      taskId,
      state: claims ? 'leased' : 'queued',
      begun: claimant?.hosted === true,
    }),
    ...recordChange(change),
  ])
  const admitted = { taskId, contextId, duplicate: false }
  if (!claims) return { admitted }
  const lease = leaseOfLetter(prepared, place, { taskId, messageId })
  return { admitted, toWorker: { worker: claimant.worker, directive: { type: 'lease', lease } } }
}

interface Answering {
  readonly conversation: TargetConversation
  readonly task: ContinuedTaskRow
  readonly asked: OpenAsk
}

/** The message answers a question of the task's running turn: it goes to that turn and never into the queue. */
function* admitAnswer(prepared: PreparedLetter, { conversation, task, asked }: Answering): Transaction<Admission> {
  const { message } = prepared.letter.envelope
  const id = prepared.letter.id ?? ulid()
  yield* together([
    statement('update conversations set last_n = $2 where id = $1', [conversation.id, conversation.n]),
    messageStatement(prepared, conversation, { id, taskId: task.id, state: 'answer', begun: false }),
  ])
  yield* answerAsk(asked, id)
  const admitted = { taskId: task.id, contextId: task.context_id, duplicate: false }
  const directive: Directive = { type: 'answer', key: asked.key, askId: asked.id, parts: message.parts }
  return { admitted, toWorker: { worker: asked.worker, directive } }
}

interface KnownRow {
  task_id: string
  context_id: string
  content_hash: string
}

interface LoadRow {
  hosted: number
  paused: number
  slots: number
  running: number
  waiting: number
  /** 1 when some conversation could run now. */
  ready: number
}

interface ConversationRow {
  id: string
  ready_at: number | null
  worker: string | null
  lease_epoch: number
  last_n: number
}

interface Found {
  readonly known: KnownRow | undefined
  readonly load: LoadRow | undefined
  readonly conversation: ConversationRow | undefined
  readonly taskState: TaskState | undefined
}

/**
 * The conversation of a context that its sender named, or of one that was made for this sender; one that was made for
 * somebody else has that id too, and is not found.
 */
const CONVERSATION = `select id, ready_at, worker, lease_epoch, last_n from conversations
  where id = coalesce((select n.id from conversations n where n.workspace_id = $1 and n.principal = $2
      and n.context_id = $3 and n.id <> n.context_id), $3)
    and workspace_id = $1 and principal = $2 and context_id = $3 /*for update*/`

/**
 * All that has to be known, in one step; locked in the order that every transaction keeps. Where the sender named no
 * context there is no conversation to look for.
 */
function* lookUp({ letter, dedupe }: PreparedLetter, contextId: string | undefined): Transaction<Found> {
  const { taskId } = letter.envelope.message
  const state = 'select state from tasks where id = $1'
  const conversation = (name: string) => statement(CONVERSATION, [letter.workspaceId, letter.principal, name])
  const [[known], [load], conversations, tasks] = (yield* together([
    statement(
      `select m.task_id, m.content_hash, t.context_id
       from messages m join tasks t on t.id = m.task_id where m.dedupe = $1`,
      [dedupe],
    ),
    statement(
      `select hosted, paused, slots, running, waiting, case when waiting > 0 and exists (
         select 1 from conversations c where c.workspace_id = $1 and c.ready_at <= now_ms()) then 1 else 0 end as ready
       from workspace_load where workspace_id = $1 /*for update*/`,
      [letter.workspaceId],
    ),
    ...(contextId === undefined ? [] : [conversation(contextId)]),
    // Whoever names a task has thereby named its context.
    ...(taskId === undefined ? [] : [statement(state, [taskId])]),
  ])) as unknown as [KnownRow[], LoadRow[], ConversationRow[]?, { state: TaskState }[]?]
  return { known, load, conversation: conversations?.[0], taskState: tasks?.[0]?.state }
}

/** The task of the same letter admitted before, in whatever state it is; other content under the same key is refused. */
function attachDuplicate({ letter, hash }: PreparedLetter, known: KnownRow): Admitted {
  const { taskId, contextId } = letter.envelope.message
  const same =
    known.content_hash === hash &&
    (taskId === undefined || taskId === known.task_id) &&
    (contextId === undefined || contextId === known.context_id)
  if (same) return { taskId: known.task_id, contextId: known.context_id, duplicate: true }
  const message = 'this message id or idempotency key was used before with other content'
  throw new MoleculeError('idempotency_conflict', message, { details: { taskId: known.task_id } })
}

function assertQueueNotFull(workspaceId: string, load: LoadRow | undefined): LoadRow {
  if (load === undefined) throw new MoleculeError('not_found', `there is no workspace ${workspaceId}`)
  if (load.waiting < QUEUE_MESSAGES_MAX) return load
  const message = `the workspace's queue is full: ${load.waiting} messages wait`
  throw new MoleculeError('queue_full', message, { retryable: true, details: { retryAfterMs: QUEUE_RETRY_AFTER_MS } })
}

function* continuedTask(letter: Letter, taskId: string): Transaction<ContinuedTaskRow> {
  const [task] = yield* sql<ContinuedTaskRow>(
    'select id, context_id, principal, state from tasks where id = $1 and workspace_id = $2',
    [taskId, letter.workspaceId],
  )
  // Somebody else's task is answered like no task: naming an id must not tell whether it exists.
  if (task !== undefined && task.principal === letter.principal) return task
  throw new MoleculeError('not_found', `there is no task ${taskId}`)
}

/** Looked at only after duplicates: the same message again attaches, also when its task has ended meanwhile. */
function assertOpen({ envelope }: Letter, task: ContinuedTaskRow): void {
  const { contextId } = envelope.message
  if (contextId !== undefined && contextId !== task.context_id) {
    throw new MoleculeError('invalid_request', `task ${task.id} belongs to another context than ${contextId}`)
  }
  if (!isFinal(task.state)) return
  throw new MoleculeError('unsupported_operation', `task ${task.id} has ended and takes no more messages`)
}

function toConversation(row: ConversationRow | undefined): TargetConversation {
  if (row === undefined) return { id: ulid(), exists: false, free: true, epoch: 0, n: 1 }
  const free = row.worker === null && row.ready_at === null
  return { id: row.id, exists: true, free, epoch: row.lease_epoch, n: row.last_n + 1 }
}
