/**
 * When a conversation is ready: always derived from its oldest unsettled message, because order within a conversation
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
