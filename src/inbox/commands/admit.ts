/**
 * Admission: one transaction turns a letter into a durable message and its task, or attaches it to the task of the same
 * letter admitted before. Where a worker waits and nothing older is ready, the same transaction also leases the message
 * to it: one commit instead of two is half of what makes a durable answer fast.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { isFinal, isInterrupted, type TaskState } from '../../protocol/a2a.ts'
import { readBudget } from '../../protocol/delegation.ts'
import { contentHash, writeEnvelope } from '../../protocol/envelope.ts'
import { refuseLoop } from '../../protocol/relay-path.ts'
import { sql, statement, type Transaction, together } from '../../store/store.ts'
import { type Ancestry, requireRoom } from '../delegate/ancestry.ts'
import { meetByKey, meetOldChild } from '../delegate/old-child.ts'
import type { Admitted, Letter } from '../reception.ts'
import { addMessage } from '../rows/conversation.ts'
import { dedupeOf, dedupeOfContent, keyOfContent } from '../rows/dedupe.ts'
import { recordChange } from '../rows/log.ts'
import { insertAnswer, insertLeased, insertQueued } from '../rows/message.ts'
import type { Directive } from '../worker.ts'
import { answerAsk, type OpenAsk, openAskOf } from './ask.ts'
import {
  budgetStatements,
  type ContinuedTaskRow,
  companionStatements,
  conversationStatement,
  leaseOfLetter,
  newMessage,
  type Placement,
  type PreparedLetter,
  type TargetConversation,
  taskStatements,
} from './letter-rows.ts'
import { requireQueueShare } from './queue-share.ts'
import type { WorkerDirective } from './stored-directives.ts'

/** A letter up to this size is prepared in one step. */
const SMALL_LETTER_BYTES_MAX = 256 * 1024

export const isLargeLetter = ({ bytes = 0 }: Letter): boolean => bytes > SMALL_LETTER_BYTES_MAX

export function prepareLetter(letter: Letter, ancestry?: Ancestry): PreparedLetter {
  const { envelope } = letter
  refuseLoop(envelope.message.metadata, letter.workspaceId)
  const maxCostUsd = readBudget(envelope.message.metadata)
  const hash = contentHash(envelope.message)
  return { letter, ...keysOf(letter, hash), hash, envelopeText: writeEnvelope(envelope), ancestry, maxCostUsd }
}

/** The same in steps: to hash 8 MiB takes 45 ms, to write them as text 25 ms, and other callers must not wait for both. */
export async function prepareLargeLetter(letter: Letter, ancestry?: Ancestry): Promise<PreparedLetter> {
  refuseLoop(letter.envelope.message.metadata, letter.workspaceId)
  const maxCostUsd = readBudget(letter.envelope.message.metadata)
  const hash = contentHash(letter.envelope.message)
  await nextTurn()
  const envelopeText = writeEnvelope(letter.envelope)
  await nextTurn()
  return { letter, ...keysOf(letter, hash), hash, envelopeText, ancestry, maxCostUsd }
}

function keysOf(letter: Letter, hash: string): Pick<PreparedLetter, 'key' | 'dedupe' | 'otherKeys'> {
  const { workspaceId, principal, envelope, idempotencyKey } = letter
  const { messageId, contextId, taskId } = envelope.message
  const given = { workspaceId, principal, key: idempotencyKey ?? messageId }
  const { key } = given
  const dedupe = dedupeOf(given)
  if (idempotencyKey !== undefined) return { key, dedupe, otherKeys: [] }
  const bare = dedupeOfContent(given, { hash })
  const isPlaced = contextId !== undefined || taskId !== undefined
  return {
    key,
    dedupe,
    otherKeys: isPlaced ? [bare, dedupeOfContent(given, { hash, contextId, taskId })] : [bare],
  }
}

/** The workers that would take a message at once: one for hosted workspaces, one for this workspace by name. */
export interface ReadyWorkers {
  readonly hosted?: string
  readonly named?: string
}

export interface Admission {
  readonly admitted: Admitted
  /** The message as a lease for a worker, or as the answer for a waiting turn. */
  readonly toWorker?: WorkerDirective
}

export function* admit(asSent: PreparedLetter, ready: ReadyWorkers): Transaction<Admission> {
  const { letter } = asSent
  const given = letter.envelope.message
  const named = given.taskId === undefined ? undefined : yield* continuedTask(letter, given.taskId)
  const givenContext = named?.context_id ?? given.contextId
  const found = yield* lookUp(asSent, givenContext)
  // Use the state read under the lock: the task may have ended since the first read.
  const task = named && { ...named, state: found.taskState ?? named.state }
  const known = found.known.find((row) => isSameLetter(asSent, row))
  if (known !== undefined) {
    if (asSent.ancestry !== undefined) yield* meetByKey(letter, asSent.ancestry, known.id)
    const companions = companionStatements(letter, known.task_id)
    if (companions.length > 0) yield* together(companions)
    return { admitted: { taskId: known.task_id, contextId: known.context_id, duplicate: true } }
  }
  const prepared = withFreeKey(asSent, found.known)
  if (prepared.ancestry !== undefined) {
    const met = yield* meetOldChild(prepared, prepared.ancestry)
    if (met !== undefined) return { admitted: met }
    requireRoom(prepared.ancestry)
  }
  if (task !== undefined) assertOpen(letter, task)
  const { load } = found
  if (load === undefined) throw new MoleculeError('not_found', `there is no workspace ${letter.workspaceId}`)
  yield* requireQueueShare(letter, load.waiting)
  const conversation = toConversation(found.conversation)
  const asked = task !== undefined && isInterrupted(task.state) ? yield* openAskOf(task.id) : undefined
  if (task !== undefined && asked?.kind === 'question') {
    return yield* admitAnswer(prepared, { conversation, task, asked })
  }
  const worker = load.hosted === 1 ? ready.hosted : ready.named
  // A new message must not overtake: while an older one is ready, it waits.
  const open = load.paused === 0 && load.running < load.slots
  const claims = worker !== undefined && open && conversation.free && load.ready === 0
  // A context that we create has the id of its conversation, so it needs no row in the index of contexts.
  const contextId = givenContext ?? conversation.id
  const placement: Placement = {
    conversation,
    contextId,
    task,
    waitsForPermission: asked !== undefined,
    claimant: claims ? { worker, hosted: load.hosted === 1 } : undefined,
  }
  return yield* insertMessage(prepared, placement)
}

function* insertMessage(prepared: PreparedLetter, placement: Placement): Transaction<Admission> {
  const { conversation, contextId, task, waitsForPermission, claimant } = placement
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
  const row = newMessage(prepared, conversation, { id: messageId, taskId, begun: claimant?.hosted === true })
  yield* together([
    ...taskStatements(prepared.letter, placement, { taskId, state }),
    conversationStatement(prepared.letter, placement),
    claims ? insertLeased(row) : insertQueued(row),
    ...budgetStatements(prepared, { messageId, taskId }),
    ...companionStatements(prepared.letter, taskId),
    ...recordChange(change),
  ])
  const admitted = { taskId, contextId, duplicate: false }
  if (!claims) return { admitted }
  const lease = leaseOfLetter(prepared, placement, { taskId, messageId })
  return { admitted, toWorker: { worker: claimant.worker, directive: { type: 'lease', lease } } }
}

/** The message answers a question of the task's running turn: it goes to that turn and never into the queue. */
function* admitAnswer(
  prepared: PreparedLetter,
  { conversation, task, asked }: { conversation: TargetConversation; task: ContinuedTaskRow; asked: OpenAsk },
): Transaction<Admission> {
  const { message } = prepared.letter.envelope
  const id = prepared.letter.id ?? ulid()
  yield* together([
    addMessage(conversation.id, conversation.n, { isFree: false }),
    insertAnswer(newMessage(prepared, conversation, { id, taskId: task.id, begun: false })),
  ])
  yield* answerAsk(asked, id)
  const admitted = { taskId: task.id, contextId: task.context_id, duplicate: false }
  const directive: Directive = { type: 'answer', key: asked.key, askId: asked.id, parts: message.parts }
  return { admitted, toWorker: { worker: asked.worker, directive } }
}

/** A message under one of the letter's keys. */
interface KnownRow {
  id: string
  dedupe: Uint8Array
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
  /** 1 when a conversation is ready now. */
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
  readonly known: readonly KnownRow[]
  readonly load: LoadRow | undefined
  readonly conversation: ConversationRow | undefined
  readonly taskState: TaskState | undefined
}

/**
 * The conversation of a context: one that its sender named, or one that we created for this sender. A context that we
 * created for another sender has the same id as its conversation; the principal must match, so it is not found.
 */
const CONVERSATION = `select id, ready_at, worker, lease_epoch, last_n from conversations
  where id = coalesce((select n.id from conversations n where n.workspace_id = $1 and n.principal = $2
      and n.context_id = $3 and n.id <> n.context_id), $3)
    and workspace_id = $1 and principal = $2 and context_id = $3 /*for update*/`

/** By the number of other keys. */
const KNOWN_BY_KEYS = ['= $1', 'in ($1, $2)', 'in ($1, $2, $3)'].map(
  (keys) => `select m.id, m.dedupe, m.task_id, m.content_hash, t.context_id
    from messages m join tasks t on t.id = m.task_id where m.dedupe ${keys}`,
)

/**
 * Reads everything that admission needs in one round trip, in the lock order of every transaction. A message without a
 * context starts a new conversation, so none is read.
 */
function* lookUp(prepared: PreparedLetter, contextId: string | undefined): Transaction<Found> {
  const { letter, dedupe, otherKeys } = prepared
  const { taskId } = letter.envelope.message
  const state = 'select state from tasks where id = $1'
  const conversation = (name: string) => statement(CONVERSATION, [letter.workspaceId, letter.principal, name])
  const [known, [load], conversations, tasks] = (yield* together([
    statement(KNOWN_BY_KEYS[otherKeys.length] as string, [dedupe, ...otherKeys]),
    statement(
      `select hosted, paused, slots, running, waiting, case when waiting > 0 and exists (
         select 1 from conversations c where c.workspace_id = $1 and c.ready_at <= now_ms()) then 1 else 0 end as ready
       from workspace_load where workspace_id = $1 /*for update*/`,
      [letter.workspaceId],
    ),
    ...(contextId === undefined ? [] : [conversation(contextId)]),
    // A message with a task always has a context, so the order of the answers is fixed.
    ...(taskId === undefined ? [] : [statement(state, [taskId])]),
  ])) as unknown as [KnownRow[], LoadRow[], ConversationRow[]?, { state: TaskState }[]?]
  return { known: oldestFirst(known), load, conversation: conversations?.[0], taskState: tasks?.[0]?.state }
}

/** A letter that could be any of several messages is the oldest of them. */
const oldestFirst = (known: readonly KnownRow[]): readonly KnownRow[] =>
  known.length < 2 ? known : known.toSorted((a, b) => (a.id < b.id ? -1 : 1))

/** The letter was admitted as this message: it attaches to the task, in any state. */
function isSameLetter({ letter, hash }: PreparedLetter, known: KnownRow): boolean {
  const { taskId, contextId } = letter.envelope.message
  return (
    known.content_hash === hash &&
    (taskId === undefined || taskId === known.task_id) &&
    (contextId === undefined || contextId === known.context_id)
  )
}

/**
 * A letter that none of these messages is. Clients with fixed message ids send other content under a used one: it is
 * another message, under a key of its own. Other content under a key that the caller named is refused.
 */
function withFreeKey(prepared: PreparedLetter, known: readonly KnownRow[]): PreparedLetter {
  const [used] = known
  if (used === undefined) return prepared
  const { key, dedupe, otherKeys } = prepared
  const isFree = (candidate: Uint8Array) => !known.some((row) => Buffer.compare(row.dedupe, candidate) === 0)
  // Only messages under other keys are there: the first one under this message id was deleted.
  if (isFree(dedupe)) return prepared
  const free = otherKeys.find(isFree)
  if (free !== undefined) return { ...prepared, dedupe: free, key: keyOfContent(key, free) }
  const message = 'this idempotency key was used before with other content'
  throw new MoleculeError('idempotency_conflict', message, { details: { taskId: used.task_id } })
}

function* continuedTask(letter: Letter, taskId: string): Transaction<ContinuedTaskRow> {
  const [task] = yield* sql<ContinuedTaskRow>(
    'select id, context_id, principal, state from tasks where id = $1 and workspace_id = $2',
    [taskId, letter.workspaceId],
  )
  // A stranger must not learn whether a task id exists: another principal's task is not found.
  if (task !== undefined && task.principal === letter.principal) return task
  throw new MoleculeError('not_found', `there is no task ${taskId}`)
}

/** Checked after duplicates: the same message attaches even when its task has ended meanwhile. */
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
