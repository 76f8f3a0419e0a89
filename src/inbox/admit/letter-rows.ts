/** The rows of an admitted letter (task, message, conversation) as statements, and its lease. */
import { isInterrupted, type TaskState } from '../../protocol/a2a.ts'
import { type Statement, statement, type Value } from '../../store/store.ts'
import type { Ancestry } from '../delegate/ancestry.ts'
import { putStatement } from '../deliver/push-configs.ts'
import { type Claimant, LEASE_MS } from '../lease/claim.ts'
import type { Letter } from '../reception.ts'
import { setTaskState } from '../settle/task-state.ts'
import { EXPIRY_MS } from '../upkeep/expire.ts'
import type { Lease } from '../worker.ts'

/** A letter with everything computed that needs no database: the transaction is short and may run twice. */
export interface PreparedLetter {
  readonly letter: Letter
  readonly key: string
  readonly dedupe: Uint8Array
  /**
   * The keys of the same letter where other messages have used its message id: without and, if it names them, with its
   * context and task. None where the caller named a key: other content under it is a conflict.
   */
  readonly otherKeys: readonly Uint8Array[]
  readonly hash: string
  readonly envelopeText: string
  /** Of a message that a turn delegated. */
  readonly ancestry?: Ancestry | undefined
  /** The budget that the sender gave it. */
  readonly maxCostUsd?: number | undefined
}

export interface ContinuedTaskRow {
  id: string
  context_id: string
  principal: string
  state: TaskState
}

export interface TargetConversation {
  readonly id: string
  readonly exists: boolean
  /** No turn runs in it and no message waits. */
  readonly free: boolean
  readonly epoch: number
  readonly n: number
}

export interface Placement {
  readonly conversation: TargetConversation
  readonly contextId: string
  readonly task: ContinuedTaskRow | undefined
  /** The task's running turn waits for a permission: this message must not set the task to working. */
  readonly waitsForPermission: boolean
  /** Claims the message in the same transaction. */
  readonly claimant: Claimant | undefined
}

export function taskStatements(
  letter: Letter,
  placement: Placement,
  { taskId, state }: { taskId: string; state: TaskState },
): Statement[] {
  const { conversation, contextId, task, waitsForPermission } = placement
  if (task !== undefined) return isInterrupted(task.state) && !waitsForPermission ? [setTaskState(taskId, state)] : []
  const row = statement(
    `insert into tasks (id, workspace_id, conversation_id, context_id, principal, state, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, now_ms(), now_ms())`,
    [taskId, letter.workspaceId, conversation.id, contextId, letter.principal, state],
  )
  return [row]
}

/** What a letter commits with its message: the webhook of its task, and writes of its door. */
export function companionStatements({ workspaceId, push, commitWith }: Letter, taskId: string): Statement[] {
  const statements = commitWith === undefined ? [] : [commitWith(taskId)]
  if (push === undefined) return statements
  return [...statements, putStatement({ ...push, workspaceId, config: { ...push.config, taskId }, afterSeq: 0 })]
}

// SQL texts of the hot path are built once: a new string must be hashed again to find its prepared statement.

const messageInsertText = (settledAt: string, more = { columns: '', values: '' }): string =>
  `insert into messages (id, workspace_id, conversation_id, task_id, n, dedupe, content_hash, idempotency_key,
     envelope, sender, reply_to, state, admitted_at, ready_at, expires_at, settled_at, begun${more.columns})
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, now_ms(), now_ms(), now_ms() + $13, ${settledAt}, $14${more.values})`
const INSERT_OPEN = messageInsertText('null')
/** An answer is settled at once: the turn that receives it settles for both. */
const INSERT_ANSWER = messageInsertText('now_ms()')
const INSERT_CHILD = messageInsertText('null', {
  columns: ', parent_id, root_id, parent_epoch, child_open, delegation',
  values: ', $15, $16, $17, $18, $19',
})

export function messageStatement(
  prepared: PreparedLetter,
  conversation: TargetConversation,
  row: { id: string; taskId: string; state: 'queued' | 'leased' | 'answer'; begun: boolean },
): Statement {
  const { id, taskId, state, begun } = row
  const { letter, key, dedupe, hash, envelopeText, ancestry } = prepared
  const values = [
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
    Math.round(letter.expiresInMs ?? EXPIRY_MS),
    begun ? 1 : 0,
  ]
  if (state === 'answer') return statement(INSERT_ANSWER, values)
  return ancestry === undefined
    ? statement(INSERT_OPEN, values)
    : statement(INSERT_CHILD, [...values, ...childValues(ancestry)])
}

function childValues({ parentId, rootId, parentEpoch, envelope }: Ancestry): Value[] {
  // A follow-up of a root message belongs to the tree and has no parent that waits for it.
  const open = parentId === null ? 0 : 1
  return [parentId, rootId, parentEpoch, open, JSON.stringify(envelope)]
}

/** The budget of a message, if it has one: most have none, and then there is no statement. */
export function budgetStatements(
  { letter, ancestry, maxCostUsd }: PreparedLetter,
  { messageId, taskId }: { messageId: string; taskId: string },
): Statement[] {
  if (maxCostUsd === undefined) return NO_STATEMENTS
  const insert = `insert into budgets (id, workspace_id, root_id, task_id, limit_usd, state)
    values ($1, $2, $3, $4, $5, 'open')`
  return [statement(insert, [messageId, letter.workspaceId, ancestry?.rootId ?? messageId, taskId, maxCostUsd])]
}

const NO_STATEMENTS: Statement[] = []

export function leaseOfLetter(
  { letter, key }: PreparedLetter,
  placement: Placement,
  ids: { taskId: string; messageId: string },
): Lease {
  return {
    workspaceId: letter.workspaceId,
    conversationId: placement.conversation.id,
    ...ids,
    epoch: placement.conversation.epoch + 1,
    contextId: placement.contextId,
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

const conversationInsertText = (leaseUntil: string, readyAt: string): string =>
  `insert into conversations (id, workspace_id, principal, context_id, last_n, lease_epoch, worker, lease_until, ready_at)
   values ($1, $2, $3, $4, $5, $6, $7, ${leaseUntil}, ${readyAt})`
const INSERT_LEASED = conversationInsertText(`now_ms() + ${LEASE_MS}`, 'null')
const INSERT_READY = conversationInsertText('null', 'now_ms()')
const LEASE = `update conversations set last_n = $2, lease_epoch = $3, worker = $4, lease_until = now_ms() + ${LEASE_MS}
  where id = $1`

export function conversationStatement({ workspaceId, principal }: Letter, placement: Placement): Statement {
  const { conversation, contextId, claimant } = placement
  const { id, n, epoch } = conversation
  if (!conversation.exists) {
    const values = [id, workspaceId, principal, contextId, n]
    if (claimant === undefined) return statement(INSERT_READY, [...values, epoch, null])
    return statement(INSERT_LEASED, [...values, epoch + 1, claimant.worker])
  }
  if (claimant !== undefined) return statement(LEASE, [id, n, epoch + 1, claimant.worker])
  // An older waiting message keeps its ready time: order within a conversation is absolute.
  const ready = conversation.free ? ', ready_at = now_ms()' : ''
  return statement(`update conversations set last_n = $2${ready} where id = $1`, [id, n])
}
