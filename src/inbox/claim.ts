/**
 * Claiming: a worker takes the oldest ready conversation of a workspace and with it its oldest unsettled message.
 * The lease is on the conversation, because locking message rows would let a second worker run the next message of
 * the same conversation. Taking raises the epoch; from then on every word of an earlier holder is stale.
 */

import { restoreEnvelope } from '../protocol/envelope.ts'
import type { Sender } from '../protocol/request.ts'
import { sql, type Transaction } from '../store/store.ts'
import type { Item, NewEntry } from './event-log.ts'
import type { Lease } from './inbox.ts'

/** How long a worker may be silent before another takes over; it renews every third of that. */
export const LEASE_MS = 30_000

export interface Claim {
  readonly lease: Lease
  readonly entry: NewEntry
}

/** Whether some conversation of the workspace could run now; then a newcomer may not jump the queue. */
export function* anythingReady(workspaceId: string): Transaction<boolean> {
  const rows = yield* sql(
    'select 1 as ready from conversations where workspace_id = $1 and ready_at <= now_ms() limit 1',
    [workspaceId],
  )
  return rows.length > 0
}

/** Workspaces with a ready conversation and a free slot, the longest waiting first. */
export function* openWorkspaces(limit: number): Transaction<string[]> {
  const rows = yield* sql<{ workspace_id: string }>(
    `select l.workspace_id from workspace_load l
     join conversations c on c.workspace_id = l.workspace_id and c.ready_at <= now_ms()
     where l.hosted = 1 and l.running < l.slots
     group by l.workspace_id order by min(c.ready_at) limit $1`,
    [limit],
  )
  return rows.map((row) => row.workspace_id)
}

export interface ConversationRow {
  id: string
  principal: string
  context_id: string
  lease_epoch: number
}

interface MessageRow {
  id: string
  task_id: string
  envelope: string
  sender: string
  idempotency_key: string
  failures: number
  losses: number
  interrupted: number
  session_retried: number
}

/** Leases the oldest ready conversation to the worker. The caller counts the slot and closes the books. */
export function* takeOldest(workspaceId: string, worker: string): Transaction<Claim | undefined> {
  const [conversation] = yield* sql<ConversationRow>(
    `select id, principal, context_id, lease_epoch from conversations
     where workspace_id = $1 and ready_at <= now_ms() order by ready_at, id limit 1 /*for update skip locked*/`,
    [workspaceId],
  )
  return conversation === undefined ? undefined : yield* leaseConversation(workspaceId, conversation, worker)
}

/** Leases the conversation and with it its oldest unsettled message. */
export function* leaseConversation(
  workspaceId: string,
  conversation: ConversationRow,
  worker: string,
): Transaction<Claim> {
  const [message] = yield* sql<MessageRow>(
    `select id, task_id, envelope, sender, idempotency_key, failures, losses, interrupted, session_retried
     from messages where conversation_id = $1 and settled_at is null order by n limit 1`,
    [conversation.id],
  )
  if (message === undefined) throw new Error(`conversation ${conversation.id} is ready and has no message`)
  const epoch = conversation.lease_epoch + 1
  yield* sql(
    `update conversations set lease_epoch = $2, worker = $3, lease_until = now_ms() + ${LEASE_MS}, ready_at = null
     where id = $1`,
    [conversation.id, epoch, worker],
  )
  yield* sql(`update messages set state = 'leased', appended = 0, asked = 0 where id = $1`, [message.id])
  yield* sql(
    `update tasks set state = 'TASK_STATE_WORKING', status_message = null, updated_at = now_ms() where id = $1`,
    [message.task_id],
  )
  return { lease: toLease(workspaceId, conversation, { ...message, epoch }), entry: started(message) }
}

function toLease(workspaceId: string, conversation: ConversationRow, message: MessageRow & { epoch: number }): Lease {
  return {
    workspaceId,
    conversationId: conversation.id,
    messageId: message.id,
    epoch: message.epoch,
    taskId: message.task_id,
    contextId: conversation.context_id,
    principal: conversation.principal,
    sender: JSON.parse(message.sender) as Sender,
    envelope: restoreEnvelope(message.envelope),
    idempotencyKey: message.idempotency_key,
    failures: message.failures,
    losses: message.losses,
    interrupted: message.interrupted === 1,
    sessionRetried: message.session_retried === 1,
  }
}

/** A new attempt voids what an earlier one showed of its reply, so that a retry never doubles text. */
function started(message: MessageRow): NewEntry {
  const again = message.failures + message.losses + message.interrupted + message.session_retried > 0
  const items: Item[] = [{ t: 'status', state: 'TASK_STATE_WORKING' }]
  if (again) items.push({ t: 'reset' })
  return { taskId: message.task_id, messageId: message.id, items }
}
