/** The log of a workspace: its newest page, older pages on demand, and every later entry live. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { ActivityView } from '../../../../src/client/views.ts'
import { client } from '../../api/client.ts'
import { useWorkspaceEvents } from '../../api/live.ts'
import { keys } from '../../api/queries.ts'

const ENTRIES_PER_PAGE = 200
/** Live entries that are kept; older ones are read again from the platform when the tab opens again. */
const LIVE_ENTRIES_MAX = 5000

export interface ActivityLog {
  readonly entries: readonly ActivityView[] | undefined
  readonly titles: Readonly<Record<string, string>>
  readonly error: unknown
  readonly hasOlder: boolean
  readonly isReadingOlder: boolean
  readOlder(): void
  retry(): void
}

export function useActivityLog(workspaceId: string): ActivityLog {
  const [live, setLive] = useState<readonly ActivityView[]>([])
  const query = useInfiniteQuery({
    queryKey: keys.workspace(workspaceId, 'activity'),
    queryFn: ({ pageParam }) =>
      client.call('GET /workspaces/{id}/activity', {
        id: workspaceId,
        limit: ENTRIES_PER_PAGE,
        newest: true,
        titles: true,
        before: pageParam,
      }),
    initialPageParam: undefined as number | undefined,
    // An empty page is the end: the log is kept for some days only.
    getNextPageParam: ({ activity, first }) => (activity.length === 0 || first === 1 ? undefined : first),
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnMount: 'always',
  })
  const pages = query.data?.pages
  const seen = pages?.[0]?.next
  useWorkspaceEvents({
    workspaceId,
    since: seen,
    onEvents: (events) =>
      setLive((before) => [...before, ...events.filter(({ type }) => type !== 'text')].slice(-LIVE_ENTRIES_MAX)),
    onGap: () => void query.refetch(),
  })
  const entries = pages && [
    ...pages.toReversed().flatMap(({ activity }) => activity),
    ...live.filter(({ seq }) => seq > (seen ?? 0)),
  ]
  return {
    entries,
    titles: Object.assign({}, ...(pages?.map((page) => page.titles) ?? [])),
    error: query.error,
    hasOlder: query.hasNextPage,
    isReadingOlder: query.isFetchingNextPage,
    readOlder: () => void query.fetchNextPage(),
    retry: () => void query.refetch(),
  }
}
