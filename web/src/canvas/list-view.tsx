/** Many workspaces: one line each, grouped by parent, with a filter. On a phone it is the only view. */
import { type ReactNode, useMemo, useState } from 'react'
import type { WorkspaceMap } from '../api/queries.ts'
import { useWantedFocus } from '../route/focus.ts'
import { Button } from '../ui/button.tsx'
import { classNames } from '../ui/class-names.ts'
import { Dot, type DotState } from '../ui/dot.tsx'
import { EmptyState } from '../ui/empty-state.tsx'
import { Field } from '../ui/field.tsx'
import { countText } from '../ui/text/times.ts'
import { groupByParent } from './families.ts'
import { countStates, filterWorkspaces, type ListFilter, STATE_FILTERS } from './filter.ts'
import { ListGroups } from './list-groups.tsx'

const NO_FILTER: ListFilter = { text: '', state: undefined }

interface ListViewProps {
  readonly workspaces: WorkspaceMap
  /** Stands after the filters, as the eye reads. */
  readonly viewSwitch?: ReactNode
}

export function ListView({ workspaces, viewSwitch }: ListViewProps) {
  const [filter, setFilter] = useState(NO_FILTER)
  useWantedFocus({ view: 'list' }, () => document.querySelector<HTMLElement>('main input[type=search]')?.focus())
  const groups = useMemo(() => groupByParent(filterWorkspaces(workspaces.values(), filter)), [workspaces, filter])
  return (
    <div className="h-full overflow-y-auto px-4 pb-6 max-md:pb-24">
      <div className="sticky top-0 z-10 -mx-4 flex flex-wrap items-center gap-4 bg-ground px-4 py-3 max-md:gap-2">
        <div className="w-60 max-md:w-full">
          <Field
            label="Filter by name, role or runtime"
            hideLabel
            type="search"
            placeholder="Filter by name, role or runtime"
            value={filter.text}
            onChange={({ target }) => setFilter({ ...filter, text: target.value })}
          />
        </div>
        <StateFilters
          workspaces={workspaces}
          chosen={filter.state}
          onChoose={(state) => setFilter({ ...filter, state })}
        />
        {viewSwitch}
      </div>
      {groups.length === 0 ? (
        <EmptyState
          title={filter.text === '' ? 'No workspace is in this state' : `No workspace matches “${filter.text}”`}
          action={<Button onClick={() => setFilter(NO_FILTER)}>Clear the filter</Button>}
        />
      ) : (
        <ListGroups groups={groups} />
      )}
    </div>
  )
}

interface StateFiltersProps {
  readonly workspaces: WorkspaceMap
  readonly chosen: DotState | undefined
  readonly onChoose: (state: DotState | undefined) => void
}

function StateFilters({ workspaces, chosen, onChoose }: StateFiltersProps) {
  const counts = countStates(workspaces.values())
  return (
    <fieldset className="flex gap-2 max-md:w-full max-md:overflow-x-auto max-md:pb-1">
      <legend className="sr-only">Show only</legend>
      <FilterButton
        title="All"
        count={workspaces.size}
        isChosen={chosen === undefined}
        onChoose={() => onChoose(undefined)}
      />
      {STATE_FILTERS.map(({ state, title }) => {
        const count = counts.get(state) ?? 0
        if (count === 0 && chosen !== state) return null
        return (
          <FilterButton
            key={state}
            state={state}
            title={title}
            count={count}
            isChosen={chosen === state}
            onChoose={() => onChoose(chosen === state ? undefined : state)}
          />
        )
      })}
    </fieldset>
  )
}

interface FilterButtonProps {
  readonly state?: DotState
  readonly title: string
  readonly count: number
  readonly isChosen: boolean
  readonly onChoose: () => void
}

function FilterButton({ state, title, count, isChosen, onChoose }: FilterButtonProps) {
  return (
    <button
      type="button"
      aria-pressed={isChosen}
      onClick={onChoose}
      className={classNames(
        'flex h-7 shrink-0 items-center gap-2 rounded-full border px-3 text-second max-md:h-10',
        isChosen ? 'border-accent bg-accent-soft text-accent' : 'border-line bg-surface text-soft hover:border-edge',
      )}
    >
      {state === undefined ? null : <Dot state={state} />}
      {title} <span className="tabular-nums">{countText(count)}</span>
    </button>
  )
}
