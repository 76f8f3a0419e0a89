/** The first words of messages, for lists. */
import { restoreEnvelope } from '../../protocol/envelope.ts'
import { textOf } from '../../protocol/part.ts'
import { sql, type Transaction } from '../../store/store.ts'
import { truncate } from '../../truncate.ts'

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
