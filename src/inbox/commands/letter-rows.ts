/** The rows of an admitted letter (task, message, conversation) as statements, and its lease. */
import { isInterrupted, type TaskState } from '../../protocol/a2a.ts'
import { type Statement, statement } from '../../store/store.ts'
import type { Ancestry } from '../delegate/ancestry.ts'
import { putStatement } from '../deliver/push-configs.ts'
import type { Letter } from '../reception.ts'
import { addLeasedMessage, addMessage, insertConversation } from '../rows/conversation.ts'
import { EXPIRY_MS, type NewMessage } from '../rows/message.ts'
import { insertTask, setTaskState } from '../rows/task.ts'
import type { Lease } from '../worker.ts'
import type { Claimant } from './claim.ts'

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
  const { workspaceId, principal } = letter
  return [insertTask({ id: taskId, workspaceId, conversationId: conversation.id, contextId, principal }, state)]
}

/** What a letter commits with its message: the webhook of its task, and writes of its door. */
export function companionStatements({ workspaceId, push, commitWith }: Letter, taskId: string): Statement[] {
  const statements = commitWith === undefined ? [] : [commitWith(taskId)]
  if (push === undefined) return statements
  return [...statements, putStatement({ ...push, workspaceId, config: { ...push.config, taskId }, afterSeq: 0 })]
}

export function newMessage(
  prepared: PreparedLetter,
  conversation: TargetConversation,
  { id, taskId, begun }: { id: string; taskId: string; begun: boolean },
): NewMessage {
  const { letter, key, dedupe, hash, envelopeText, ancestry } = prepared
  return {
    id,
    workspaceId: letter.workspaceId,
    conversationId: conversation.id,
    taskId,
    n: conversation.n,
    dedupe,
    contentHash: hash,
    idempotencyKey: key,
    envelope: envelopeText,
    sender: JSON.stringify(letter.sender),
    replyTo: letter.replyTo === undefined ? null : JSON.stringify(letter.replyTo),
    expiresInMs: Math.round(letter.expiresInMs ?? EXPIRY_MS),
    begun,
    place: ancestry && { ...ancestry, delegation: JSON.stringify(ancestry.envelope) },
  }
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

export function conversationStatement({ workspaceId, principal }: Letter, placement: Placement): Statement {
  const { conversation, contextId, claimant } = placement
  const { id, n, epoch } = conversation
  const lease = claimant && { epoch: epoch + 1, worker: claimant.worker }
  if (!conversation.exists) return insertConversation({ id, workspaceId, principal, contextId }, lease)
  if (lease !== undefined) return addLeasedMessage(id, n, lease)
  return addMessage(id, n, { isFree: conversation.free })
}
