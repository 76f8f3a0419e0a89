/**
 * What a brief reads of the inbox: the notes of earlier attempts, the earlier messages of the conversation, and the turns of
 * the last hour. Texts that no brief would use are not read: a turn waits for these statements.
 */
import { HOUR_MS } from '../duration.ts'
import { sql, type Transaction } from '../store/store.ts'

/** The notes that earlier attempts at the message stored. */
export function* readNotes(messageId: string): Transaction<Record<string, string>> {
  const rows = yield* sql<{ key: string; value: string }>('select key, value from turn_notes where message_id = $1', [
    messageId,
  ])
  return Object.fromEntries(rows.map(({ key, value }) => [key, value]))
}

/** The latest messages that are read. */
export const EARLIER_MESSAGES_MAX = 10
/** Of one message with its reply. A longer one is left out: no model reads more, and reading it for each turn is slow. */
export const EARLIER_CHARACTERS_MAX = 1_000_000

/** The message of the turn, and its conversation. */
export interface EarlierQuery {
  readonly conversationId: string
  readonly messageId: string
}

export interface EarlierMessage {
  readonly id: string
  readonly state: string
  readonly envelope: string
  /** JSON of a `Sender`. */
  readonly sender: string
  /** Null for a message that was not answered. */
  readonly reply: string | null
  /** 1 where its turn lost the session of the agent. */
  readonly session_retried: number
}

const earlier = (ended: string): string => `select id, state, envelope, sender, reply, session_retried from messages
  where conversation_id = $1 and n < (select o.n from messages o where o.id = $2) and ${ended}
    and length(envelope) + coalesce(length(reply), 0) <= ${EARLIER_CHARACTERS_MAX}
  order by n desc limit ${EARLIER_MESSAGES_MAX}`

const ANSWERED = earlier(`(state = 'done' or (state = 'canceled' and begun = 1))`)
const BEGUN = earlier(`(state = 'done' or (state in ('canceled', 'dead') and begun = 1)) and replayed_as is null`)

/** The messages that were answered and those whose turn was cancelled, the oldest first. */
export function* readAnswered({ conversationId, messageId }: EarlierQuery): Transaction<EarlierMessage[]> {
  return (yield* sql<EarlierMessage>(ANSWERED, [conversationId, messageId])).reverse()
}

/** The messages whose turn began and has ended, the oldest first. One that was replayed counts as its replay only. */
export function* readBegun({ conversationId, messageId }: EarlierQuery): Transaction<EarlierMessage[]> {
  return (yield* sql<EarlierMessage>(BEGUN, [conversationId, messageId])).reverse()
}

/** The envelopes of the first messages that no turn answered and that came with a history. */
export function* readUnansweredHistories({ conversationId, messageId }: EarlierQuery): Transaction<string[]> {
  const rows = yield* sql<{ envelope: string }>(
    `select envelope from messages where conversation_id = $1 and n < (select o.n from messages o where o.id = $2)
       and (state = 'dead' or (state = 'canceled' and begun = 0)) and envelope like '%"history"%'
       and length(envelope) <= ${EARLIER_CHARACTERS_MAX} order by n limit ${EARLIER_MESSAGES_MAX}`,
    [conversationId, messageId],
  )
  return rows.map(({ envelope }) => envelope)
}

export interface EndedTurn {
  readonly messageId: string
  readonly ageMs: number
}

/** Of the messages whose first attempt ended in the last hour, that attempt. */
const FIRST_ATTEMPTS = `from turn_usage u where u.workspace_id = $1 and u.ended_at > now_ms() - ${HOUR_MS}
  and not exists (select 1 from turn_usage before where before.message_id = u.message_id and before.epoch < u.epoch)`

/** Counts the ended turns of the last hour. That is nearly always enough to decide, and it loads no rows. */
export function* countTurnsOfHour(workspaceId: string, limit: number): Transaction<number> {
  const [row] = yield* sql<{ turns: number }>(
    `select count(*) as turns from (select 1 as turn ${FIRST_ATTEMPTS} limit $2) lately`,
    [workspaceId, limit],
  )
  return row?.turns ?? 0
}

/** The latest ended turns of the last hour, at most as many as the limit. */
export function* listTurnsOfHour(workspaceId: string, limit: number): Transaction<EndedTurn[]> {
  const rows = yield* sql<{ message_id: string; age: number }>(
    `select u.message_id, now_ms() - u.ended_at as age ${FIRST_ATTEMPTS} order by u.ended_at desc limit $2`,
    [workspaceId, limit],
  )
  return rows.map(({ message_id: messageId, age: ageMs }) => ({ messageId, ageMs }))
}
