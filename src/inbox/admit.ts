/**
 * Admission: one transaction turns a letter into a durable message and its task, or attaches it to the task of the
 * same letter admitted before. Where a worker stands ready and nothing older waits, the same transaction also leases
 * the message to it: one commit instead of two is half of what makes a durable answer fast.
 */
import { createHash } from 'node:crypto'
import { MoleculeError } from '../errors.ts'
import { ulid } from '../ids.ts'
import { isFinal, isInterrupted, type TaskState } from '../protocol/a2a.ts'
import { contentHash, writeEnvelope } from '../protocol/envelope.ts'
import { sql, type Transaction } from '../store/store.ts'
import { answerAsk, type OpenAsk, openAskOf } from './ask.ts'
import { anythingReady, LEASE_MS } from './claim.ts'
import { closeBooks } from './event-log.ts'
import { EXPIRY_MS } from './expire.ts'
import type { Admitted, Handout, Lease, Letter } from './inbox.ts'

/** Messages that may wait in one workspace before a sender is told to come again. */
const QUEUE_MESSAGES_MAX = 1000
const QUEUE_RETRY_AFTER_MS = 5000

/** A letter with everything computed that needs no database, so that the transaction is short and repeatable. */
export interface PreparedLetter {
  readonly letter: Letter
  readonly key: string
  readonly dedupe: Uint8Array
  readonly hash: string
  readonly envelopeText: string
}

export function prepareLetter(letter: Letter): PreparedLetter {
  const { workspaceId, principal, envelope } = letter
  const key = letter.idempotencyKey ?? envelope.message.messageId
  const name = JSON.stringify([workspaceId, principal, key])
  // 16 bytes in one indexed column: a random text key of full length costs a third of the write throughput.
  const dedupe = createHash('sha256').update(name).digest().subarray(0, 16)
  return { letter, key, dedupe, hash: contentHash(envelope.message), envelopeText: writeEnvelope(envelope) }
}

/** The workers that would take a message at once: one for hosted workspaces, one that named this workspace. */
export interface Ready {
  readonly hosted?: string
  readonly named?: string
}

export interface Admission {
  readonly admitted: Admitted
  /** What is handed out because of it: the message itself as a lease, or as the answer a turn waits for. */
  readonly handout?: { readonly worker: string; readonly handout: Handout }
}

export function* admit(prepared: PreparedLetter, ready: Ready): Transaction<Admission> {
  const duplicate = yield* findDuplicate(prepared)
  if (duplicate !== undefined) return { admitted: duplicate }
  const { workspaceId, envelope } = prepared.letter
  const load = yield* openLoad(workspaceId)
  const given = envelope.message
  const task = given.taskId === undefined ? undefined : yield* continuedTask(prepared, given.taskId)
  const contextId = task?.context_id ?? given.contextId ?? ulid()
  const conversation = yield* openConversation(prepared.letter, contextId)
  const asked = task !== undefined && isInterrupted(task.state) ? yield* openAskOf(task.id) : undefined
  if (task !== undefined && asked !== undefined) return yield* admitAnswer(prepared, { conversation, task, asked })
  const worker = load.hosted === 1 ? ready.hosted : ready.named
  const open = worker !== undefined && load.running < load.slots && conversation.free
  const claims = open && (load.waiting === 0 || !(yield* anythingReady(workspaceId)))
  const placed: Placed = { conversation, contextId, task, worker: claims ? worker : undefined }
  const taskId = yield* placeTask(prepared, placed)
  yield* placeConversation(prepared.letter, placed)
  const messageId = yield* placeMessage(prepared, { conversation, taskId, state: claims ? 'leased' : 'queued' })
  const lease = toLease(prepared, placed, { taskId, messageId })
  const state: TaskState = claims || task !== undefined ? 'TASK_STATE_WORKING' : 'TASK_STATE_SUBMITTED'
  yield* closeBooks({
    workspaceId,
    running: claims ? 1 : 0,
    waiting: claims ? 0 : 1,
    entries: [{ taskId, messageId: lease.messageId, items: [{ t: 'status', state }] }],
  })
  const admitted = { taskId, contextId, duplicate: false }
  return claims ? { admitted, handout: { worker, handout: { type: 'lease', lease } } } : { admitted }
}

interface Answering {
  readonly conversation: Conversation
  readonly task: TaskRow & { id: string }
  readonly asked: OpenAsk
}

/** The message answers a question of the task's running turn: it goes to that turn and never into the queue. */
function* admitAnswer(prepared: PreparedLetter, { conversation, task, asked }: Answering): Transaction<Admission> {
  const { message } = prepared.letter.envelope
  yield* sql('update conversations set last_n = $2 where id = $1', [conversation.id, conversation.n])
  const messageId = yield* placeMessage(prepared, { conversation, taskId: task.id, state: 'answer' })
  yield* answerAsk(asked, messageId)
  const admitted = { taskId: task.id, contextId: task.context_id, duplicate: false }
  const handout: Handout = { type: 'answer', key: asked.key, askId: asked.id, parts: message.parts }
  return { admitted, handout: { worker: asked.worker, handout } }
}

interface KnownRow {
  task_id: string
  context_id: string
  content_hash: string
}

function* findDuplicate({ letter, dedupe, hash }: PreparedLetter): Transaction<Admitted | undefined> {
  const [known] = yield* sql<KnownRow>(
    `select m.task_id, m.content_hash, t.context_id
     from messages m join tasks t on t.id = m.task_id where m.dedupe = $1`,
    [dedupe],
  )
  if (known === undefined) return undefined
  const { taskId, contextId } = letter.envelope.message
  const same =
    known.content_hash === hash &&
    (taskId === undefined || taskId === known.task_id) &&
    (contextId === undefined || contextId === known.context_id)
  if (same) return { taskId: known.task_id, contextId: known.context_id, duplicate: true }
  const message = 'this message id or idempotency key was used before with other content'
  throw new MoleculeError('idempotency_conflict', message, { details: { taskId: known.task_id } })
}

interface LoadRow {
  hosted: number
  slots: number
  running: number
  waiting: number
}

function* openLoad(workspaceId: string): Transaction<LoadRow> {
  const [load] = yield* sql<LoadRow>(
    'select hosted, slots, running, waiting from workspace_load where workspace_id = $1 /*for update*/',
    [workspaceId],
  )
  if (load === undefined) throw new MoleculeError('not_found', `there is no workspace ${workspaceId}`)
  if (load.waiting < QUEUE_MESSAGES_MAX) return load
  const message = `the workspace's queue is full: ${load.waiting} messages wait`
  throw new MoleculeError('queue_full', message, { retryable: true, details: { retryAfterMs: QUEUE_RETRY_AFTER_MS } })
}

interface TaskRow {
  conversation_id: string
  context_id: string
  principal: string
  state: TaskState
}

function* continuedTask({ letter }: PreparedLetter, taskId: string): Transaction<TaskRow & { id: string }> {
  const [task] = yield* sql<TaskRow>(
    'select conversation_id, context_id, principal, state from tasks where id = $1 and workspace_id = $2',
    [taskId, letter.workspaceId],
  )
  // Somebody else's task is answered like no task: naming an id must not tell whether it exists.
  if (task === undefined || task.principal !== letter.principal) {
    throw new MoleculeError('not_found', `there is no task ${taskId}`)
  }
  const { contextId } = letter.envelope.message
  if (contextId !== undefined && contextId !== task.context_id) {
    throw new MoleculeError('invalid_request', `task ${taskId} belongs to another context than ${contextId}`)
  }
  if (isFinal(task.state)) {
    throw new MoleculeError('unsupported_operation', `task ${taskId} has ended and takes no more messages`)
  }
  return { ...task, id: taskId }
}

interface Conversation {
  readonly id: string
  readonly exists: boolean
  /** No turn runs in it and nothing waits. */
  readonly free: boolean
  readonly waits: boolean
  readonly epoch: number
  readonly n: number
}

interface ConversationRow {
  id: string
  ready_at: number | null
  worker: string | null
  lease_epoch: number
  last_n: number
}

function* openConversation({ workspaceId, principal }: Letter, contextId: string): Transaction<Conversation> {
  const [row] = yield* sql<ConversationRow>(
    `select id, ready_at, worker, lease_epoch, last_n from conversations
     where workspace_id = $1 and principal = $2 and context_id = $3 /*for update*/`,
    [workspaceId, principal, contextId],
  )
  if (row === undefined) return { id: ulid(), exists: false, free: true, waits: false, epoch: 0, n: 1 }
  const waits = row.ready_at !== null
  const free = row.worker === null && !waits
  return {
    id: row.id,
    exists: true,
    free,
    waits: waits || row.worker !== null,
    epoch: row.lease_epoch,
    n: row.last_n + 1,
  }
}

interface Placed {
  readonly conversation: Conversation
  readonly contextId: string
  readonly task: (TaskRow & { id: string }) | undefined
  readonly worker: string | undefined
}

function* placeTask(
  { letter }: PreparedLetter,
  { conversation, contextId, task, worker }: Placed,
): Transaction<string> {
  if (task !== undefined) {
    if (isInterrupted(task.state)) {
      yield* sql(
        `update tasks set state = 'TASK_STATE_WORKING', status_message = null, updated_at = now_ms() where id = $1`,
        [task.id],
      )
    }
    return task.id
  }
  const id = ulid()
  yield* sql(
    `insert into tasks (id, workspace_id, conversation_id, context_id, principal, state, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, now_ms(), now_ms())`,
    [
      id,
      letter.workspaceId,
      conversation.id,
      contextId,
      letter.principal,
      worker === undefined ? 'TASK_STATE_SUBMITTED' : 'TASK_STATE_WORKING',
    ],
  )
  return id
}

interface Placing {
  readonly conversation: Conversation
  readonly taskId: string
  readonly state: 'queued' | 'leased' | 'answer'
}

/** An answer is settled from the start: the turn that takes it decides what it was worth. */
function* placeMessage(prepared: PreparedLetter, { conversation, taskId, state }: Placing): Transaction<string> {
  const { letter, key, dedupe, hash, envelopeText } = prepared
  const id = ulid()
  yield* sql(
    `insert into messages (id, workspace_id, conversation_id, task_id, n, dedupe, content_hash, idempotency_key,
       envelope, sender, reply_to, state, admitted_at, ready_at, expires_at, settled_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, now_ms(), now_ms(), now_ms() + $13,
       ${state === 'answer' ? 'now_ms()' : 'null'})`,
    [
      id,
      letter.workspaceId,
      conversation.id,
      taskId,
      conversation.n,
      dedupe,
      hash,
      key,
      envelopeText,
      JSON.stringify(letter.sender),
      letter.replyTo === undefined ? null : JSON.stringify(letter.replyTo),
      state,
      letter.expiresInMs ?? EXPIRY_MS,
    ],
  )
  return id
}

function toLease({ letter, key }: PreparedLetter, placed: Placed, ids: { taskId: string; messageId: string }): Lease {
  return {
    workspaceId: letter.workspaceId,
    conversationId: placed.conversation.id,
    ...ids,
    epoch: placed.conversation.epoch + 1,
    contextId: placed.contextId,
    principal: letter.principal,
    sender: letter.sender,
    envelope: letter.envelope,
    idempotencyKey: key,
    failures: 0,
    losses: 0,
    interrupted: false,
    sessionRetried: false,
  }
}

function* placeConversation({ workspaceId, principal }: Letter, placed: Placed): Transaction<void> {
  const { conversation, contextId, worker } = placed
  const { id, n } = conversation
  const epoch = worker === undefined ? conversation.epoch : conversation.epoch + 1
  const until = worker === undefined ? 'lease_until' : `now_ms() + ${LEASE_MS}`
  // An older message that waits keeps its own ready time: order within a conversation is absolute.
  const ready = worker !== undefined || conversation.waits ? 'ready_at' : 'now_ms()'
  if (conversation.exists) {
    yield* sql(
      `update conversations set last_n = $2, lease_epoch = $3, worker = coalesce($4, worker),
         lease_until = ${until}, ready_at = ${ready} where id = $1`,
      [id, n, epoch, worker ?? null],
    )
    return
  }
  yield* sql(
    `insert into conversations (id, workspace_id, principal, context_id, last_n, lease_epoch, worker, lease_until, ready_at)
     values ($1, $2, $3, $4, $5, $6, $7, ${orNull(until)}, ${orNull(ready)})`,
    [id, workspaceId, principal, contextId, n, epoch, worker ?? null],
  )
}

/** A new row has no old value to keep. */
const orNull = (expression: string): string => (expression.startsWith('now_ms') ? expression : 'null')
