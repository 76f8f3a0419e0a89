/**
 * The ancestry of a delegation. A message that a turn sends with the token of its conversation is a child of that turn's
 * message: it gets the parent's path and the parent's workspace. The platform finds the parent by the token, so an agent
 * cannot leave the path out, and it holds for a sender that does not wait for its answer. Without it two agents that
 * delegate to each other would go on for ever.
 */
import type { Metadata } from '../../protocol/a2a.ts'
import { withMessageMetadata } from '../../protocol/envelope.ts'
import { RELAY_PATH_KEY, relayPathOf } from '../../protocol/relay-path.ts'
import { type Store, sql, type Transaction } from '../../store/store.ts'
import type { Letter } from '../inbox.ts'

/** The letter with the path of its ancestors; a path that the sender gave is replaced. */
export async function withAncestry(store: Store, letter: Letter): Promise<Letter> {
  const { parent, envelope } = letter
  if (parent === undefined) return letter
  const path = [...(await store.read(() => pathOfParent(parent))), parent.workspaceId]
  return { ...letter, envelope: withMessageMetadata(envelope, { [RELAY_PATH_KEY]: path }) }
}

const PARENT = 'select m.envelope from messages m where m.conversation_id = $1 and m.workspace_id = $2'

function* pathOfParent({ conversationId, workspaceId }: NonNullable<Letter['parent']>): Transaction<string[]> {
  const values = [conversationId, workspaceId]
  const [running] = yield* sql<{ envelope: string }>(`${PARENT} and m.state in ('leased', 'stopping')`, values)
  if (running !== undefined) return pathInEnvelope(running.envelope)
  // A process that outlives its turn: the last message of its conversation is the nearest to its parent.
  const [last] = yield* sql<{ envelope: string }>(`${PARENT} order by m.n desc limit 1`, values)
  return last === undefined ? [] : pathInEnvelope(last.envelope)
}

/** A search in the text is fast; most messages have no path, and an envelope may have 8 MiB. */
function pathInEnvelope(envelope: string): string[] {
  if (!envelope.includes(RELAY_PATH_KEY)) return []
  const stored = JSON.parse(envelope) as { params?: { message?: { metadata?: Metadata } } }
  return relayPathOf(stored.params?.message?.metadata)
}
