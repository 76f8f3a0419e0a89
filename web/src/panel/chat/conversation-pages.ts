/** Reads the pages of one conversation into the cache of the page. */

import {
  type ChatHistory,
  EMPTY_HISTORY,
  isOpen,
  withNewer,
  withNewest,
  withOlder,
  withRefreshed,
} from '../../../../src/client/live-conversation.ts'
import { MoleculeError } from '../../../../src/errors.ts'
import { client } from '../../api/client.ts'
import { keys, queryClient } from '../../api/queries.ts'

const PAGE_MESSAGES = 20
/** The most that the platform gives in a page. */
const PAGE_MESSAGES_MAX = 50

export interface ConversationPages {
  readonly key: readonly (string | number)[]
  get(): ChatHistory | undefined
  set(history: ChatHistory): void
  /** The newest page, together with what is known. */
  readNewest(): Promise<ChatHistory>
  readOlder(before: ChatHistory): Promise<ChatHistory>
  readNewer(before: ChatHistory): Promise<ChatHistory>
  /** The newest page alone. */
  readAnew(): Promise<ChatHistory>
  /** The page around a message, alone. */
  readAround(at: string): Promise<ChatHistory>
}

export function conversationPages(workspaceId: string, conversation: string): ConversationPages {
  const key = keys.workspace(workspaceId, 'chat', conversation)
  const read = (query: { readonly limit: number; readonly before?: number; readonly at?: string }) =>
    client.call('GET /workspaces/{id}/conversations/{conversation}', { id: workspaceId, conversation, ...query })
  const get = () => queryClient.getQueryData<ChatHistory>(key)
  const readAnew = async () => withNewest(undefined, await read({ limit: PAGE_MESSAGES }))
  /** A running message may be far before the newest, with many queued behind it. */
  const refreshOpen = async (history: ChatHistory): Promise<ChatHistory> => {
    const open = history.entries.find(isOpen)
    if (open === undefined || open.seq === history.seq) return history
    return withRefreshed(history, await read({ before: open.n + 1, limit: 1 }))
  }
  return {
    key,
    get,
    readAnew,
    readAround: async (at) => withNewest(undefined, await read({ at, limit: PAGE_MESSAGES })),
    set: (history) => void queryClient.setQueryData(key, history),
    async readNewest() {
      try {
        const page = await read({ limit: pageSizeFor(get()) })
        return await refreshOpen(withNewest(get(), page))
      } catch (thrown) {
        // A conversation begins with its first message.
        if (thrown instanceof MoleculeError && thrown.code === 'not_found') return get() ?? EMPTY_HISTORY
        throw thrown
      }
    },
    async readOlder({ entries: [first] }) {
      const page = await read({ before: first?.n ?? Number.MAX_SAFE_INTEGER, limit: PAGE_MESSAGES })
      return withOlder(get() ?? EMPTY_HISTORY, page)
    },
    async readNewer(before) {
      const last = before.entries.at(-1)?.n ?? 0
      const page = await read({ before: last + PAGE_MESSAGES + 1, limit: PAGE_MESSAGES })
      // A page that ends at its bytes keeps the newest: then there would be a gap.
      if ((page.messages[0]?.n ?? last + 1) > last + 1) return readAnew()
      return withNewer(before, page, (page.messages.at(-1)?.n ?? 0) < last + PAGE_MESSAGES)
    },
  }
}

/** Enough to contain every message that is still open. */
function pageSizeFor(history: ChatHistory | undefined): number {
  const first = history?.entries.find(isOpen)?.n
  const last = history?.entries.at(-1)?.n
  if (first === undefined || last === undefined) return PAGE_MESSAGES
  return Math.min(Math.max(last - first + 5, PAGE_MESSAGES), PAGE_MESSAGES_MAX)
}
