/** The conversations of a workspace, the last changed first. */

import { type InfiniteData, useInfiniteQuery } from '@tanstack/react-query'
import type { ApiAnswer } from '../../../../src/api/api.ts'
import type { ChatHistory } from '../../../../src/client/live-conversation.ts'
import type { ConversationView } from '../../../../src/client/views.ts'
import { truncate } from '../../../../src/truncate.ts'
import { client } from '../../api/client.ts'
import { keys, queryClient } from '../../api/queries.ts'

type ConversationsPage = ApiAnswer<'GET /workspaces/{id}/conversations'>

const LISTED_MAX = 50
const PAGES_MAX = 40

export interface ConversationsQueryState {
  /** Undefined until the first page is there. */
  readonly conversations: readonly ConversationView[] | undefined
  readonly hasMore: boolean
  readonly isReading: boolean
  readonly error: Error | null
  readMore(): void
}

export function useConversations(workspaceId: string): ConversationsQueryState {
  const query = useInfiniteQuery({
    queryKey: keys.workspace(workspaceId, 'conversations', ''),
    queryFn: ({ pageParam }) =>
      client.call('GET /workspaces/{id}/conversations', { id: workspaceId, limit: LISTED_MAX, after: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    maxPages: PAGES_MAX,
  })
  const listed = query.data?.pages.flatMap(({ conversations }) => conversations)
  return {
    // A conversation that changed while pages were read stands on two of them.
    conversations: listed && [...new Map(listed.toReversed().map((each) => [each.id, each])).values()].toReversed(),
    hasMore: query.hasNextPage,
    isReading: query.isFetching,
    error: query.error,
    readMore: () => void query.fetchNextPage(),
  }
}

/** Puts a conversation that has changed on top of the list, where the page knows all that the list shows of it. */
export function noteConversation(workspaceId: string, changed: ConversationView): void {
  const queryKey = keys.workspace(workspaceId, 'conversations', '')
  queryClient.setQueryData<InfiniteData<ConversationsPage>>(queryKey, (before) => {
    const [first, ...rest] = before?.pages ?? []
    if (before === undefined || first === undefined) return before
    const known = before.pages.flatMap(({ conversations }) => conversations).find(({ id }) => id === changed.id)
    const now = { ...changed, title: known?.title ?? changed.title, ...(known?.sender && { sender: known.sender }) }
    if (known !== undefined && JSON.stringify(known) === JSON.stringify(now)) return before
    const others = (page: ConversationsPage) => page.conversations.filter(({ id }) => id !== changed.id)
    const pages = [
      { ...first, conversations: [now, ...others(first)] },
      ...rest.map((page) => ({ ...page, conversations: others(page) })),
    ]
    return { ...before, pages }
  })
}

const TITLE_CHARACTERS_MAX = 80

/** What the list shows of an open conversation; undefined while its newest message is not on the page. */
export function summaryOf(history: ChatHistory): ConversationView | undefined {
  const { id, contextId, principal, entries, hasNewer } = history
  const [first, last] = [entries[0], entries.at(-1)]
  if (id === undefined || contextId === undefined || principal === undefined || hasNewer) return undefined
  if (first === undefined || last === undefined) return undefined
  const words = first.text.replaceAll(/\s+/g, ' ').trim()
  const title = truncate(words, TITLE_CHARACTERS_MAX)
  return {
    id,
    context_id: contextId,
    principal,
    sender: first.sender,
    // An answer to a running turn is no turn of its own: the list shows how the turn stands.
    state: (entries.findLast(({ answers }) => answers === undefined) ?? last).state,
    messages: last.n,
    title: title === '' ? 'a message without text' : title,
    updated_at: last.ended_at ?? last.started_at ?? last.sent_at,
  }
}

export function refreshConversations(workspaceId: string): void {
  void queryClient.invalidateQueries({ queryKey: keys.workspace(workspaceId, 'conversations') })
}

export const isOfPeople = ({ principal }: Pick<ConversationView, 'principal'>): boolean => principal === 'people'

/** What names a conversation in a list. */
export function nameOf({ title, principal, sender }: ConversationView): string {
  if (principal === 'people' || sender === undefined) return title
  return `${sender.name}: ${title}`
}
