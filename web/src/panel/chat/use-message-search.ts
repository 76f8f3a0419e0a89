/** The search over every stored message. The platform reads a part at a time: the next part is asked for on its own. */
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { MessageHitView } from '../../../../src/client/views.ts'
import { client } from '../../api/client.ts'
import { keys, useMay } from '../../api/queries.ts'

/** The search begins when a person has not typed for so long. */
const SETTLED_MS = 200
const HITS_PER_PAGE = 20
/** Parts without a hit that are read before a person is asked whether to search on. */
const EMPTY_PAGES_MAX = 20

export interface FoundMessages {
  /** Undefined until the first part is there. */
  readonly hits: readonly MessageHitView[] | undefined
  readonly isReading: boolean
  readonly hasMore: boolean
  readonly error: Error | null
  readMore(): void
}

/** Without a workspace it searches all of them. */
export function useMessageSearch(typed: string, workspaceId?: string): FoundMessages {
  const may = useMay()
  const search = useSettled(typed)
  const query = useInfiniteQuery({
    queryKey: keys.workspace(workspaceId ?? '', 'found', search),
    queryFn: ({ pageParam }) =>
      client.call('GET /messages', { search, limit: HITS_PER_PAGE, workspace_id: workspaceId, after: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    enabled: search !== '' && may('activity.read'),
    placeholderData: keepPreviousData,
    staleTime: 5000,
    gcTime: 30_000,
  })
  const pages = query.data?.pages ?? []
  const { hasNextPage, isFetching, fetchNextPage } = query
  const hits = pages.flatMap(({ messages }) => messages)
  const goesOn = hasNextPage && !isFetching && hits.length === 0 && pages.length < EMPTY_PAGES_MAX
  useEffect(() => {
    if (goesOn) void fetchNextPage()
  }, [goesOn, fetchNextPage])
  return {
    hits: search === '' ? undefined : query.data && hits,
    isReading: isFetching || goesOn || search !== typed,
    hasMore: hasNextPage,
    error: query.error,
    readMore: () => void fetchNextPage(),
  }
}

function useSettled(value: string): string {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLED_MS)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}
