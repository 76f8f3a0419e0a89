/** Ends the asks of a turn whose attempt is over. */
import { runStatement, sql, type Transaction } from '../../store/store.ts'
import { requeueAnswers } from '../rows/message.ts'

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
  const answers = yield* runStatement(requeueAnswers(messageId))
  yield* sql(`update asks set state = 'void' where message_id = $1 and state = 'answered'`, [messageId])
  return answers.length
}
