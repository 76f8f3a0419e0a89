/** The conversations of a workspace, the last changed first. */
import { useInfiniteQuery } from '@tanstack/react-query'
import type { ConversationView } from '../../../../src/client/canvas-calls.ts'
import { client } from '../../api/client.ts'
import { keys, queryClient } from '../../api/queries.ts'

const LISTED_MAX = 50
/** A search page may be empty and still have a next one: after so many the person decides whether to search on. */
const PAGES_MAX = 40

export interface ConversationsQueryState {
  /** Undefined until the first page is there. */
  readonly conversations: readonly ConversationView[] | undefined
  readonly hasMore: boolean
  readonly isReading: boolean
  readonly error: Error | null
  readMore(): void
}

export function useConversations(workspaceId: string, search = ''): ConversationsQueryState {
  const query = useInfiniteQuery({
    queryKey: keys.workspace(workspaceId, 'conversations', search),
    queryFn: ({ pageParam }) =>
      client.listConversations(workspaceId, {
        limit: LISTED_MAX,
        ...(search !== '' && { search }),
        ...(pageParam !== '' && { after: pageParam }),
      }),
    initialPageParam: '',
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

export function refreshConversations(workspaceId: string): void {
  void queryClient.invalidateQueries({ queryKey: keys.workspace(workspaceId, 'conversations') })
}

export const isOfPeople = ({ principal }: Pick<ConversationView, 'principal'>): boolean => principal === 'people'

/** What names a conversation in a list. */
export function nameOf({ title, principal, sender }: ConversationView): string {
  if (principal === 'people' || sender === undefined) return title
  return `${sender.name}: ${title}`
}
