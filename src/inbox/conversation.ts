/** A conversation's readiness, always derived from its oldest unsettled message: order within it is absolute. */
import { type Statement, statement } from '../store/store.ts'

const HEAD_READY_AT = `(select m.ready_at from messages m
  where m.conversation_id = $1 and m.settled_at is null order by m.n limit 1)`

const FREE = `update conversations set worker = null, lease_until = null, ready_at = ${HEAD_READY_AT} where id = $1`

/** The lease ends: the conversation is ready when its next message is. */
export const freeConversation = (conversationId: string): Statement => statement(FREE, [conversationId])

/** Waiting messages have gone: those behind them move up, unless a turn is running, whose end will see to it. */
export const moveUp = (conversationId: string): Statement =>
  statement(`update conversations set ready_at = ${HEAD_READY_AT} where id = $1 and worker is null`, [conversationId])
