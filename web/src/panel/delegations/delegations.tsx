/** The delegations in which the workspace takes part: one tree for each first message, with state, time and cost. */
import { useInfiniteQuery } from '@tanstack/react-query'
import type { DelegationTreeView } from '../../../../src/client/views.ts'
import { client } from '../../api/client.ts'
import { keys } from '../../api/queries.ts'
import { Button } from '../../ui/button.tsx'
import { EmptyState, Loading } from '../../ui/empty-state.tsx'
import { ReadFailure } from '../../ui/section.tsx'
import { useRefreshOnChange } from '../refresh.ts'
import type { TabProps } from '../tab.ts'
import { DelegationTree } from './delegation-tree.tsx'
import { isOpenState } from './task-state.ts'

export function Delegations({ workspace }: TabProps) {
  useRefreshOnChange(workspace.id, 'delegations')
  const query = useInfiniteQuery({
    queryKey: keys.workspace(workspace.id, 'delegations'),
    queryFn: ({ pageParam }) => client.call('GET /workspaces/{id}/delegations', { id: workspace.id, after: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
  })
  if (query.data === undefined)
    return query.error ? <ReadFailure error={query.error} onRetry={() => query.refetch()} /> : <Loading />
  const trees = withoutRepeats(query.data.pages.flatMap((page) => page.trees))
  if (trees.length === 0 && !query.hasNextPage) {
    return (
      <EmptyState title="No delegations yet">
        When {workspace.name} asks another workspace for help, you see it here.
      </EmptyState>
    )
  }
  const running = trees.filter(({ tasks }) => tasks.some(({ state }) => isOpenState(state))).length
  return (
    <div className="@container flex flex-1 flex-col gap-4 bg-ground p-5 max-md:p-3">
      <p className="text-second text-soft">
        {running} running, {trees.length - running} finished
      </p>
      {trees.map((tree) => (
        <DelegationTree key={rootOf(tree)} tree={tree} workspaceId={workspace.id} />
      ))}
      {query.hasNextPage ? (
        <div>
          <Button disabled={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
            Show older delegations
          </Button>
        </div>
      ) : null}
    </div>
  )
}

const rootOf = ({ tasks }: DelegationTreeView): string => tasks[0]?.task_id ?? ''

/** A tree may be on two pages. */
const withoutRepeats = (trees: readonly DelegationTreeView[]): DelegationTreeView[] => [
  ...new Map(trees.toReversed().map((tree) => [rootOf(tree), tree])).values().toArray().toReversed(),
]
