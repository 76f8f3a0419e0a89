/** The caches of the page: their keys, and the hooks that read them. Live events update them (`live.ts`). */
import { QueryCache, QueryClient, queryOptions, useQuery } from '@tanstack/react-query'
import { createContext, use, useMemo } from 'react'
import type { MeView, OpenDelegationView } from '../../../src/client/views.ts'
import { listWorkspaces } from '../../../src/client/workspaces.ts'
import { client, isLoggedOut } from './client.ts'
import { keepOnlyFor } from './kept-for.ts'
import { type ShownWorkspace, withWaits } from './shown-workspace.ts'

export type WorkspaceMap = ReadonlyMap<string, ShownWorkspace>

/** Every key begins with the thing that it is about. A key of one workspace begins with `workspace` and its id. */
export const keys = {
  me: ['me'],
  workspaces: ['workspaces'],
  needs: ['needs'],
  wires: ['wires'],
  workspace: (id: string, ...rest: readonly (string | number)[]) => ['workspace', id, ...rest],
} as const

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    // A session that has ended leaves no data on the page: only the logged-out page is shown.
    onError: (error) => {
      if (isLoggedOut(error)) forgetSession()
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      retry: (failures, error) => !isLoggedOut(error) && failures < 2,
      refetchOnWindowFocus: false,
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
})

/** The page is logged out: removes everything that it has read. */
export function forgetSession(): void {
  queryClient.setQueryData(keys.me, null)
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== keys.me[0] })
}

/** `null` = not logged in; undefined = not known yet. */
export function useMe(): MeView | null | undefined {
  return useQuery<MeView | null>({
    queryKey: keys.me,
    queryFn: async () => {
      try {
        const me = await client.call('GET /me')
        keepOnlyFor(me)
        return me
      } catch (thrown) {
        if (isLoggedOut(thrown)) return null
        throw thrown
      }
    },
    staleTime: Number.POSITIVE_INFINITY,
    retry: true,
    retryDelay: 1000,
  }).data
}

/** The session of the page. A context, because each of many cards asks it: a query has an observer for each. */
export const SessionContext = createContext<MeView | undefined>(undefined)

/** Whether this session may do the action. A button whose action would be refused is not rendered. */
export function useMay(): (action: string) => boolean {
  const me = use(SessionContext)
  return (action) => me?.actions.includes(action) ?? false
}

const NO_WORKSPACES: WorkspaceMap = new Map()

const workspacesQuery = queryOptions<WorkspaceMap>({
  queryKey: keys.workspaces,
  queryFn: async () => new Map((await listWorkspaces(client)).map((workspace) => [workspace.id, workspace])),
  staleTime: Number.POSITIVE_INFINITY,
})

/** Asks for the workspaces before the page knows its session, so that both answers arrive together. */
export const preloadWorkspaces = (): Promise<void> => queryClient.prefetchQuery(workspacesQuery)

/** All workspaces by id, live; undefined until the first snapshot. */
export function useWorkspacesMaybe(): WorkspaceMap | undefined {
  const { data } = useQuery(workspacesQuery)
  const open = useOpenDelegations()
  return useMemo(() => data && withWaits(data, open), [data, open])
}

export const useWorkspaces = (): WorkspaceMap => useWorkspacesMaybe() ?? NO_WORKSPACES

/** The workspaces at this moment, for a callback that must not render its component again on each change. */
export const readWorkspaces = (): WorkspaceMap => queryClient.getQueryData(workspacesQuery.queryKey) ?? NO_WORKSPACES

export function useWorkspace(id: string | undefined): ShownWorkspace | undefined {
  const workspaces = useWorkspacesMaybe()
  return id === undefined ? undefined : workspaces?.get(id)
}

/** Which workspaces work for which others now. */
export function useOpenDelegations(): readonly OpenDelegationView[] {
  const may = useMay()
  const { data = NO_DELEGATIONS } = useQuery({
    queryKey: keys.wires,
    queryFn: async () => (await client.call('GET /delegations/open')).delegations,
    enabled: may('dead-letter.read'),
  })
  return data
}

const NO_DELEGATIONS: readonly OpenDelegationView[] = []

/** Where other machines reach the platform: its public URL, else the address of this page. */
export function usePlatformUrl(): string {
  const { data } = useQuery({
    queryKey: ['version'],
    queryFn: () => client.call('GET /version'),
    staleTime: Number.POSITIVE_INFINITY,
  })
  return data?.public_url ?? location.origin
}
