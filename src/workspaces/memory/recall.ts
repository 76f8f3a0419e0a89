/**
 * Recalls memories for the first turn of a conversation: those that match the message best, then the newest. Later turns
 * get none, because the agent's session has them already.
 */
import type { Brief } from '../../protocol/brief.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import { type Memories, type Memory, QUERY_CHARACTERS_MAX } from '../memories.ts'

const MATCHES_MAX = 6
const NEWEST_MAX = 6
/** Of all recalled memories together. A memory that does not fit is left out. */
const CHARACTERS_MAX = 8192

export interface RecallOptions {
  readonly memories: Pick<Memories, 'namespacesOf' | 'search' | 'list'>
  /** Whether turns of that backend may call a model, which reads the memories. */
  readonly isMetered: (runtime: string) => boolean
}

interface RecallKey {
  readonly workspaceId: string
  readonly envelope: Envelope
}

/** Returns the same brief function; the brief of a conversation's first turn gets what the workspace remembers. */
export function withRecall<K extends RecallKey, B>(
  makeBrief: (key: K, bridge?: B) => Promise<Brief>,
  { memories, isMetered }: RecallOptions,
): (key: K, bridge?: B) => Promise<Brief> {
  return async (key, bridge) => {
    const brief = await makeBrief(key, bridge)
    if (!isMetered(brief.runtime) || !isFirstTurn(brief)) return brief
    const recalled = describeMemories(await recall(key, memories))
    return recalled === undefined ? brief : { ...brief, recalled }
  }
}

const isFirstTurn = ({ sessionToken, history, earlierConversation }: Brief): boolean =>
  sessionToken === undefined && history === undefined && earlierConversation === undefined

async function recall({ workspaceId, envelope }: RecallKey, memories: RecallOptions['memories']): Promise<Memory[]> {
  const text = envelope.message.parts.map((part) => part.text ?? '').join(' ')
  const query = text.slice(0, QUERY_CHARACTERS_MAX)
  const namespaces = await memories.namespacesOf(workspaceId)
  const matches = namespaces.map((namespace) => memories.search(namespace, query, MATCHES_MAX))
  const newest = namespaces.map((namespace) => memories.list(namespace, { limit: NEWEST_MAX }))
  const found = (await Promise.all(matches)).flat()
  const listed = (await Promise.all(newest)).flatMap((page) => page.memories)
  return [...new Map([...found, ...listed].map((memory) => [memory.id, memory])).values()]
}

/** Undefined if there are none. */
function describeMemories(memories: readonly Memory[]): string | undefined {
  const lines: string[] = []
  let left = CHARACTERS_MAX
  for (const { text, createdAtMs } of memories) {
    const line = `- ${new Date(createdAtMs).toISOString().slice(0, 10)}: ${text.replace(/\s+/g, ' ').trim()}`
    if (line.length > left) continue
    left -= line.length
    lines.push(line)
  }
  return lines.length === 0 ? undefined : `What you remember from earlier conversations:\n${lines.join('\n')}`
}
