/**
 * Which messages belong to a task. The message that opened it has the task's id and is found by its primary key. Only
 * later messages are in an index: most tasks have a single message, and every message pays for every index.
 */
import { restoreEnvelope } from '../../protocol/envelope.ts'
import { textOf } from '../../protocol/part.ts'
import { sql, type Transaction } from '../../store/store.ts'
import { truncate } from '../../truncate.ts'

/** An SQL condition, for a table or alias of messages and an expression for the task's id. */
export const messagesOfTask = (messages: string, taskId: string): string =>
  `(${messages}.id = ${taskId} or ${laterMessagesOfTask(messages, taskId)})`

/** The same without the message that opened the task. */
export const laterMessagesOfTask = (messages: string, taskId: string): string =>
  `(${messages}.task_id = ${taskId} and ${messages}.task_id <> ${messages}.id)`

const TEXT_CHARACTERS = 120

/** The first words of messages, by id. A message that is deleted has none. */
export function* readTexts(messageIds: readonly string[]): Transaction<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>()
  for (const id of messageIds) {
    const [row] = yield* sql<{ envelope: string }>('select envelope from messages where id = $1', [id])
    if (row === undefined) continue
    const text = textOf(restoreEnvelope(row.envelope).message.parts)
    texts.set(id, truncate(text.replaceAll(/\s+/g, ' ').trim(), TEXT_CHARACTERS))
  }
  return texts
}
