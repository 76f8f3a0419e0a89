/** Ends the asks of a turn whose attempt is over. */
import { sql, type Transaction } from '../../store/store.ts'

/** The message has ended: open asks are void, and answers are used up. */
export function* closeAsks(messageId: string): Transaction<void> {
  yield* sql(`update asks set state = 'void' where message_id = $1 and state = 'open'`, [messageId])
}

/**
 * The message runs again, and its next attempt asks again. Open asks are void; answers go back into the queue, because
 * an answer is used up only when its turn settles. Returns how many answers wait again.
 */
export function* voidAsks(messageId: string): Transaction<number> {
  yield* closeAsks(messageId)
  const answers = yield* sql(
    `update messages set state = 'queued', settled_at = null, outcome = null where state = 'answer' and id in (
       select answer_message_id from asks where message_id = $1 and state = 'answered') returning id`,
    [messageId],
  )
  yield* sql(`update asks set state = 'void' where message_id = $1 and state = 'answered'`, [messageId])
  return answers.length
}
