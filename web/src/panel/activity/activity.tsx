/** The activity of a workspace: each turn as a timeline, and what happened to the chosen message as a story beside it. */
import { useMemo, useState } from 'react'
import type { WorkspaceSummary } from '../../../../src/client/views.ts'
import { Button } from '../../ui/button.tsx'
import { classNames } from '../../ui/class-names.ts'
import { EmptyState, Loading } from '../../ui/empty-state.tsx'
import { ReadFailure } from '../../ui/section.tsx'
import type { TabProps } from '../tab.ts'
import { StoryPane } from './story-pane.tsx'
import { buildTurns, FILTERS, isShown, type StepFilter, type TurnSteps } from './timeline.ts'
import { TurnTimeline } from './turn-timeline.tsx'
import { useActivityLog } from './use-activity.ts'

export function Activity({ workspace }: TabProps) {
  const log = useActivityLog(workspace.id)
  const [filter, setFilter] = useState<StepFilter>('all')
  const [chosen, setChosen] = useState<string>()
  const { entries } = log
  const turns = useMemo(() => buildTurns(entries ?? []), [entries])
  if (entries === undefined) return log.error ? <ReadFailure error={log.error} onRetry={log.retry} /> : <Loading />
  if (turns.length === 0) return <NothingYet workspace={workspace} />
  const storyOf = chosen ?? turns.find(({ taskId }) => taskId !== undefined)?.taskId
  const shown = turns.filter(({ steps }) => steps.some((step) => isShown(step, filter)))
  return (
    <div className="@container flex min-h-full flex-1 flex-col">
      <div className="grid min-h-full flex-1 @4xl:grid-cols-[minmax(0,1fr)_360px]">
        <div className="min-w-0">
          <Filters turns={turns} chosen={filter} onChoose={setFilter} />
          <ol aria-label="Turns" className="flex flex-col">
            {shown.map((turn) => (
              <TurnTimeline
                key={turn.taskId ?? turn.steps[0]?.key}
                workspaceId={workspace.id}
                turn={turn}
                title={turn.taskId && log.titles[turn.taskId]}
                filter={filter}
                isChosen={turn.taskId !== undefined && turn.taskId === storyOf}
                onChoose={setChosen}
              />
            ))}
          </ol>
          {log.hasOlder ? (
            <div className="px-5 pb-5">
              <Button disabled={log.isReadingOlder} onClick={log.readOlder}>
                Show older turns
              </Button>
            </div>
          ) : null}
        </div>
        {storyOf === undefined ? null : (
          <aside aria-label="What happened" className="border-line border-l bg-raised @max-4xl:hidden">
            <div className="sticky top-0 p-6">
              <StoryPane workspaceId={workspace.id} taskId={storyOf} />
            </div>
          </aside>
        )}
      </div>
    </div>
  )
}

const NothingYet = ({ workspace }: { readonly workspace: WorkspaceSummary }) => (
  <EmptyState title="Nothing happened yet">
    When {workspace.name} gets a message, you see here what it runs, reads and changes.
  </EmptyState>
)

interface FiltersProps {
  readonly turns: readonly TurnSteps[]
  readonly chosen: StepFilter
  readonly onChoose: (filter: StepFilter) => void
}

/** A kind of which there is nothing is not offered. */
function Filters({ turns, chosen, onChoose }: FiltersProps) {
  const counts = FILTERS.map(({ id, title }) => ({
    id,
    title,
    count: turns.reduce((sum, { steps }) => sum + steps.filter((step) => isShown(step, id)).length, 0),
  }))
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset has a border and a legend of its own.
    <div role="group" aria-label="Show" className="flex flex-wrap gap-2 border-line border-b px-5 py-3">
      {counts
        .filter(({ id, count }) => count > 0 || id === chosen)
        .map(({ id, title, count }) => (
          <button
            key={id}
            type="button"
            aria-pressed={id === chosen}
            onClick={() => onChoose(id)}
            className={classNames(
              'h-7 shrink-0 rounded-full border px-3 font-[550] text-second max-md:h-10',
              id === chosen
                ? 'border-accent bg-accent-soft text-accent'
                : 'border-line bg-surface text-soft hover:border-edge',
            )}
          >
            {title} <span className="ml-1 font-[400]">{count}</span>
          </button>
        ))}
    </div>
  )
}
