/** What becomes of a turn's questions to a person when its attempt is over without an end. */
import { sql, type Transaction } from '../../store/store.ts'

/** Nobody waits for an answer any more; what was answered is spent. */
export function* closeAsks(messageId: string): Transaction<void> {
  yield* sql(`update asks set state = 'void' where message_id = $1 and state = 'open'`, [messageId])
}

/** Open questions are void; answers go back into the queue, for an answer is spent only when its turn has settled. */
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
