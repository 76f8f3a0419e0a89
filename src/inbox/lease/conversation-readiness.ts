/**
 * A conversation's readiness, always derived from its oldest unsettled message: order within it is absolute. That one is
 * looked for behind the last that a turn has settled. Invariant: what runs is the oldest, and only an answer to what
 * runs can become unsettled again, so nothing before it ever does.
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

/** The lease ends: the conversation is ready when its next message is. `settledN`: the number of what it has settled. */
export const freeConversation = (conversationId: string, settledN?: number): Statement =>
  settledN === undefined ? statement(FREE, [conversationId]) : statement(FREE_BEHIND, [conversationId, settledN])

/** Waiting messages have gone: those behind them move up, unless a turn is running, whose end will see to it. */
export const refreshReadiness = (conversationId: string): Statement =>
  statement(`update conversations set ready_at = ${READY_AT} where id = $1 and worker is null`, [conversationId])
