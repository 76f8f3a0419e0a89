/**
 * A conversation has no column of its state: it is leased while `worker` is set, and ready from `ready_at` on. When it is
 * ready is always derived from its oldest unsettled message, because order within a conversation
 * is absolute. The search starts behind `settled_n`, the last message that a turn settled. Invariant: nothing before it
 * becomes unsettled again. The running message is the oldest, and only an answer to it can go back into the queue.
 */
import { type Statement, statement } from '../../store/store.ts'

const oldest = (column: string, conversation: { id: string; settledN: string }): string =>
  `(select m.${column} from messages m where m.conversation_id = ${conversation.id} and m.n > ${conversation.settledN}
    and m.settled_at is null order by m.n limit 1)`

/** The id of the oldest unsettled message of a conversation `c`. */
export const OLDEST_UNSETTLED_ID = oldest('id', { id: 'c.id', settledN: 'c.settled_n' })

const READY_AT = oldest('ready_at', { id: 'conversations.id', settledN: 'conversations.settled_n' })
const FREE = `update conversations set worker = null, lease_until = null, ready_at = ${READY_AT} where id = $1`
const FREE_BEHIND = `update conversations set worker = null, lease_until = null, settled_n = $2,
  ready_at = ${oldest('ready_at', { id: '$1', settledN: '$2' })} where id = $1`

/**
 * The lease ends: the conversation is ready when its next message is. `settledN`: the number of the settled message.
 */
export const freeConversation = (conversationId: string, settledN?: number): Statement =>
  settledN === undefined ? statement(FREE, [conversationId]) : statement(FREE_BEHIND, [conversationId, settledN])

/** Waiting messages were removed: those behind them move up. Does nothing while a turn runs; its end does the same. */
export const refreshReadiness = (conversationId: string): Statement =>
  statement(`update conversations set ready_at = ${READY_AT} where id = $1 and worker is null`, [conversationId])

/** After this silence another worker may take over. Workers renew their leases every third of it. */
export const LEASE_MS = 30_000
const LEASE_UNTIL = `now_ms() + ${LEASE_MS}`

export interface NewConversation {
  readonly id: string
  readonly workspaceId: string
  readonly principal: string
  readonly contextId: string
}

/** A worker's hold, under a new epoch. */
export interface ConversationLease {
  readonly epoch: number
  readonly worker: string
}

// SQL texts of the hot path are built once: a new string must be hashed again to find its prepared statement.

const insertText = (leaseUntil: string, readyAt: string): string =>
  `insert into conversations (id, workspace_id, principal, context_id, last_n, lease_epoch, worker, lease_until, ready_at)
   values ($1, $2, $3, $4, 1, $5, $6, ${leaseUntil}, ${readyAt})`
const INSERT_LEASED = insertText(LEASE_UNTIL, 'null')
const INSERT_READY = insertText('null', 'now_ms()')

/** With its first message: leased, or ready at once. */
export function insertConversation(row: NewConversation, lease?: ConversationLease): Statement {
  const { id, workspaceId, principal, contextId } = row
  const text = lease === undefined ? INSERT_READY : INSERT_LEASED
  return statement(text, [id, workspaceId, principal, contextId, lease?.epoch ?? 0, lease?.worker ?? null])
}

const LEASE = `update conversations set lease_epoch = $2, worker = $3, lease_until = ${LEASE_UNTIL}, ready_at = null
  where id = $1`

export const leaseConversation = (id: string, { epoch, worker }: ConversationLease): Statement =>
  statement(LEASE, [id, epoch, worker])

const ADD_LEASED = `update conversations set last_n = $2, lease_epoch = $3, worker = $4, lease_until = ${LEASE_UNTIL}
  where id = $1`

/** A message comes that is leased at once. */
export const addLeasedMessage = (id: string, n: number, { epoch, worker }: ConversationLease): Statement =>
  statement(ADD_LEASED, [id, n, epoch, worker])

const ADD = 'update conversations set last_n = $2 where id = $1'
const ADD_READY = 'update conversations set last_n = $2, ready_at = now_ms() where id = $1'

/** A message comes. `isFree`: no message waits before it, so it is ready; otherwise order within a conversation is absolute. */
export const addMessage = (id: string, n: number, { isFree }: { readonly isFree: boolean }): Statement =>
  statement(isFree ? ADD_READY : ADD, [id, n])

/** A message comes under the next number. It is ready unless another one waits or runs. */
export const addNextMessage = (id: string): Statement =>
  statement(
    `update conversations set last_n = last_n + 1,
       ready_at = case when worker is null then coalesce(ready_at, now_ms()) else ready_at end where id = $1`,
    [id],
  )

export const extendLease = (id: string): Statement =>
  statement(`update conversations set lease_until = ${LEASE_UNTIL} where id = $1`, [id])

/** A raised epoch makes every later call of a worker stale. */
export const voidLeasesOf = (workspaceId: string): Statement =>
  statement(
    `update conversations set worker = null, lease_until = null, ready_at = null, lease_epoch = lease_epoch + 1
     where id in (select t.conversation_id from tasks t where t.workspace_id = $1)`,
    [workspaceId],
  )

/** The clock was set back by this time. */
export const moveReadyTimesBack = (backMs: number): Statement =>
  statement('update conversations set ready_at = ready_at - $1 where ready_at is not null', [backMs])
