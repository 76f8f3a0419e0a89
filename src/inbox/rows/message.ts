/**
 * The states of a message, and every change of a state as one named statement. A statement names the states that it
 * starts from, so an update under a wrong assumption changes no row. `docs/architecture.md` prints the table of
 * transitions from this file.
 */
import type { WaitsFor } from '../../protocol/brief.ts'
import { type Statement, statement, type Value } from '../../store/store.ts'
import type { LeaseKey, Outcome } from '../worker.ts'
import { inAskStates } from './ask.ts'
import { type States, stateCondition } from './state-condition.ts'
import { messagesOfTask } from './task-messages.ts'

/**
 * `stopping`: its task is cancelled, and its turn still runs. `dead`: it failed for good. `answer`: it answers an ask of a
 * running turn, and waits in no queue.
 */
export type MessageState = 'queued' | 'leased' | 'stopping' | 'done' | 'dead' | 'canceled' | 'answer'

/** For a query on messages: `m.${inStates('queued')}`. */
export const inStates = (...states: States<MessageState>): string => stateCondition(states)

/**
 * A turn of the message runs. A query that wants one of the two states names this condition too: then the planner uses
 * the partial index on running messages.
 */
export const IS_RUNNING = inStates('leased', 'stopping')

export const isRunning = (state: MessageState): boolean => state === 'leased' || state === 'stopping'

/** The message was cancelled or failed for good, or will be cancelled as soon as its turn has stopped. */
export const IS_GIVEN_UP = inStates('stopping', 'canceled', 'dead')

/** A message that no worker began in this time becomes a dead letter, unless its sender gave another time. */
export const EXPIRY_MS = 24 * 3600_000

export interface Transition {
  /** Empty: the row is new. */
  readonly from: readonly MessageState[]
  readonly to: MessageState
  readonly when: string
}

/** By the name of the statement. */
export const MESSAGE_TRANSITIONS = {
  insertQueued: { from: [], to: 'queued', when: 'admitted' },
  insertLeased: { from: [], to: 'leased', when: 'admitted while a worker is free and no older message is ready' },
  insertAnswer: { from: [], to: 'answer', when: 'admitted while a turn of its task asks a question' },
  insertReplay: { from: [], to: 'queued', when: 'a person replays a dead letter: the copy is a new message' },
  claimMessage: { from: ['queued'], to: 'leased', when: 'a worker takes it' },
  releaseMessage: { from: ['leased'], to: 'queued', when: 'given back: drain, pause, or parked before it began' },
  retryMessage: { from: ['leased'], to: 'queued', when: 'its turn failed and is tried again at a time' },
  returnUnbegun: { from: ['leased'], to: 'queued', when: 'its worker was lost before the turn began' },
  returnLost: { from: ['leased'], to: 'queued', when: 'its worker was lost' },
  finishMessage: { from: ['leased'], to: 'done', when: 'its turn settles with the reply' },
  stopMessage: { from: ['leased'], to: 'stopping', when: 'its task is cancelled' },
  settleStopped: { from: ['stopping'], to: 'canceled', when: 'its turn settles: the processes are gone' },
  closeLostStopped: { from: ['stopping'], to: 'canceled', when: 'its worker was lost' },
  cancelQueued: { from: ['queued'], to: 'canceled', when: 'its task is cancelled' },
  failMessages: { from: ['queued', 'leased'], to: 'dead', when: 'its task fails: for good, lost 5 times, or expired' },
  cancelWaitingOf: { from: ['queued'], to: 'canceled', when: 'its workspace is deleted' },
  cancelRunningOf: { from: ['leased', 'stopping'], to: 'canceled', when: 'its workspace is deleted' },
  requeueAnswers: { from: ['answer'], to: 'queued', when: 'the turn that asked runs again' },
} as const satisfies Record<string, Transition>

export type MessageTransition = keyof typeof MESSAGE_TRANSITIONS

/** The update of one transition. */
function move(name: MessageTransition, set: readonly string[], where = 'id = $1'): string {
  const { from, to }: Transition = MESSAGE_TRANSITIONS[name]
  const assignments = [`state = '${to}'`, ...set].join(', ')
  return `update messages set ${assignments} where ${where} and ${stateCondition(from)}`
}

/** The place of a message in a tree of delegations. */
export interface TreePlaceRow {
  readonly parentId: string | null
  readonly rootId: string
  readonly parentEpoch: number | null
  /** JSON of a `DelegationEnvelope`. */
  readonly delegation: string
}

export interface NewMessage {
  readonly id: string
  readonly workspaceId: string
  readonly conversationId: string
  readonly taskId: string
  readonly n: number
  readonly dedupe: Uint8Array
  readonly contentHash: string
  readonly idempotencyKey: string
  readonly envelope: string
  readonly sender: string
  readonly replyTo: string | null
  readonly expiresInMs: number
  readonly begun: boolean
  /** Of a message that belongs to a tree below another message. */
  readonly place?: TreePlaceRow | undefined
}

type Insert = 'insertQueued' | 'insertLeased' | 'insertAnswer'

const insertText = (name: Insert, more = { columns: '', values: '' }): string =>
  `insert into messages (id, workspace_id, conversation_id, task_id, n, dedupe, content_hash, idempotency_key,
     envelope, sender, reply_to, admitted_at, ready_at, expires_at, begun, state, settled_at${more.columns})
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, now_ms(), now_ms(), now_ms() + $12, $13,
     '${MESSAGE_TRANSITIONS[name].to}', ${name === 'insertAnswer' ? 'now_ms()' : 'null'}${more.values})`

const PLACE = {
  columns: ', parent_id, root_id, parent_epoch, child_open, delegation',
  values: ', $14, $15, $16, $17, $18',
}

// SQL texts of the hot path are built once: a new string must be hashed again to find its prepared statement.
const INSERT = {
  insertQueued: insertText('insertQueued'),
  insertLeased: insertText('insertLeased'),
  insertAnswer: insertText('insertAnswer'),
}
const INSERT_PLACED = {
  insertQueued: insertText('insertQueued', PLACE),
  insertLeased: insertText('insertLeased', PLACE),
}

const rowValues = (row: NewMessage): Value[] => [
  row.id,
  row.workspaceId,
  row.conversationId,
  row.taskId,
  row.n,
  row.dedupe,
  row.contentHash,
  row.idempotencyKey,
  row.envelope,
  row.sender,
  row.replyTo,
  row.expiresInMs,
  row.begun ? 1 : 0,
]

function insertOpen(name: keyof typeof INSERT_PLACED, row: NewMessage): Statement {
  const { place } = row
  if (place === undefined) return statement(INSERT[name], rowValues(row))
  const { parentId, rootId, parentEpoch, delegation } = place
  // A follow-up of a root message belongs to the tree and has no parent that waits for it.
  const isOpen = parentId === null ? 0 : 1
  return statement(INSERT_PLACED[name], [...rowValues(row), parentId, rootId, parentEpoch, isOpen, delegation])
}

export const insertQueued = (row: NewMessage): Statement => insertOpen('insertQueued', row)
export const insertLeased = (row: NewMessage): Statement => insertOpen('insertLeased', row)
/** An answer is settled at once: the turn that receives it settles for both. */
export const insertAnswer = (row: NewMessage): Statement => statement(INSERT.insertAnswer, rowValues(row))

/**
 * A copy of the message `from` as `to`, the message that opens the new task. A delegation keeps its place below a parent
 * that has not failed; below another it would be cancelled at once, so its replay begins a tree of its own.
 */
export const insertReplay = ({ from, to, dedupe }: { from: string; to: string; dedupe: Uint8Array }): Statement =>
  statement(
    `insert into messages (id, workspace_id, conversation_id, task_id, n, dedupe, content_hash, idempotency_key,
       envelope, sender, reply_to, replay_of, state, admitted_at, ready_at, expires_at, parent_id, root_id,
       parent_epoch, child_open, delegation)
     select $2, m.workspace_id, m.conversation_id, $2, c.last_n + 1, $3, m.content_hash, m.idempotency_key,
       m.envelope, m.sender, m.reply_to, m.id, '${MESSAGE_TRANSITIONS.insertReplay.to}', now_ms(), now_ms(),
       now_ms() + ${EXPIRY_MS},
       p.id, case when p.id is not null then m.root_id end, case when p.id is not null then m.parent_epoch end,
       case when p.id is not null then 1 end, case when p.id is not null then m.delegation end
     from messages m join conversations c on c.id = m.conversation_id
     left join messages p on p.id = m.parent_id and not p.${IS_GIVEN_UP} where m.id = $1`,
    [from, to, dedupe],
  )

const CLAIM = move('claimMessage', ['begun = $2', 'leased_at = now_ms()', 'appended = 0', 'asked = 0'])
const FINISH = move('finishMessage', [
  ...["outcome = 'done'", 'reply = $2', 'settled_at = now_ms()', 'settled_epoch = $3', 'suspended = 0'],
])

export const claimMessage = (id: string, begun: boolean): Statement => statement(CLAIM, [id, begun ? 1 : 0])

export const finishMessage = ({ messageId, epoch }: LeaseKey, reply: string): Statement =>
  statement(FINISH, [messageId, reply, epoch])

interface ReleaseOptions {
  readonly outcome: Outcome['type']
  /** The turn may have acted. */
  readonly interrupted: boolean
  /** 0: it keeps its place in the queue. */
  readonly afterMs: number
  readonly waitsFor?: WaitsFor | undefined
}

/** It costs the message no attempt. */
export function releaseMessage({ messageId, epoch }: LeaseKey, options: ReleaseOptions): Statement {
  const { outcome, interrupted, afterMs, waitsFor = null } = options
  const set = backInQueue({ afterMs, interrupted })
  return statement(move('releaseMessage', set), [messageId, outcome, epoch, afterMs, waitsFor])
}

interface RetryOptions {
  readonly afterMs: number
  readonly interrupted: boolean
  /** It runs once more with a fresh session. */
  readonly sessionLost: boolean
  /** A limit of the provider holds: no failure is counted. */
  readonly parked: boolean
}

export function retryMessage({ messageId, epoch }: LeaseKey, options: RetryOptions): Statement {
  const { afterMs, sessionLost, parked } = options
  const set = backInQueue(options)
  if (sessionLost) set.push('session_retried = 1')
  if (parked) set.push('parks = parks + 1', 'parked_at = coalesce(parked_at, now_ms())')
  // Another kind of failure came between: the next limit of the provider has its whole time again.
  else if (!sessionLost) set.push('failures = failures + 1', 'parks = 0', 'parked_at = null')
  return statement(move('retryMessage', set), [messageId, 'retry', epoch, afterMs, null])
}

/** $2 outcome, $3 epoch, $4 the wait, $5 what it waits for. */
const backInQueue = ({ afterMs, interrupted }: { afterMs: number; interrupted: boolean }): string[] => [
  ...['suspended = 0', 'outcome = $2', 'settled_epoch = $3', 'waits_for = $5'],
  afterMs > 0 ? 'ready_at = now_ms() + $4' : 'ready_at = ready_at + $4',
  ...(interrupted ? ['interrupted = 1'] : []),
]

export const returnUnbegun = (id: string): Statement => statement(move('returnUnbegun', ['suspended = 0']), [id])

export const returnLost = (id: string): Statement =>
  statement(move('returnLost', ['losses = losses + 1', 'interrupted = 1', 'suspended = 0']), [id])

/** `partialReply` is what the turn has written so far. */
export const stopMessage = (id: string, partialReply: string | null): Statement =>
  statement(move('stopMessage', ['reply = $2']), [id, partialReply])

/** It keeps the partial reply that its cancel has stored. */
export const settleStopped = ({ messageId, epoch }: LeaseKey, outcome: Outcome['type']): Statement => {
  const set = ['outcome = $2', 'settled_at = now_ms()', 'settled_epoch = $3', 'suspended = 0']
  return statement(move('settleStopped', set), [messageId, outcome, epoch])
}

const CANCELED = ["outcome = 'stopped'", 'settled_at = now_ms()']

export const closeLostStopped = (id: string): Statement =>
  statement(move('closeLostStopped', [...CANCELED, 'suspended = 0']), [id])

const CANCEL_QUEUED = `${move('cancelQueued', CANCELED, messagesOfTask('messages', '$1'))} returning id`

/** Every waiting message of the task. Returns their ids. */
export const cancelQueued = (taskId: string): Statement => statement(CANCEL_QUEUED, [taskId])

const FAIL = `${move('failMessages', ["outcome = 'dead'", 'settled_at = now_ms()'], messagesOfTask('messages', '$1'))}
  returning id, workspace_id, task_id, reply_to`

/** Every unsettled message of the task. Returns them as `AddressedMessage`. */
export const failMessages = (taskId: string): Statement => statement(FAIL, [taskId])

/** Two statements, for waiting and for running messages, because each of them has its own partial index. */
export const cancelWaitingOf = (workspaceId: string): Statement =>
  statement(move('cancelWaitingOf', CANCELED, 'workspace_id = $1'), [workspaceId])
export const cancelRunningOf = (workspaceId: string): Statement =>
  statement(move('cancelRunningOf', CANCELED, 'workspace_id = $1'), [workspaceId])

const ANSWERS = `id in (select answer_message_id from asks where message_id = $1 and ${inAskStates('answered')})`

/** The answers that the turns of this message got. Returns their ids. */
export const requeueAnswers = (messageId: string): Statement =>
  statement(`${move('requeueAnswers', ['settled_at = null', 'outcome = null'], ANSWERS)} returning id`, [messageId])
