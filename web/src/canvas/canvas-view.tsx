/** The workspaces as a map or as a list. Many are a list until a person chooses the map; a phone has only the list. */
import { useEffect, useState } from 'react'
import { useWorkspacesMaybe } from '../api/queries.ts'
import { usePlace } from '../route/route.ts'
import { classNames } from '../ui/class-names.ts'
import { CardMap } from './card-map.tsx'
import { ListView } from './list-view.tsx'
import { usePhone } from './use-phone.ts'

/** With more workspaces than this the list comes first. */
const MAP_WORKSPACES_MAX = 40
const CHOICE_KEY = 'molecule.view'

type Choice = 'map' | 'list'

export function CanvasView() {
  const workspaces = useWorkspacesMaybe()
  const isPhone = usePhone()
  const [chosen, setChosen] = useState(readChoice)
  const { view } = usePlace()
  const choose = (next: Choice) => {
    setChosen(next)
    localStorage.setItem(CHOICE_KEY, next)
  }
  // An address, such as that of the palette, names the view.
  const named = view === 'list' || view === 'map' ? view : undefined
  // biome-ignore lint/correctness/useExhaustiveDependencies: `choose` is new on each render.
  useEffect(() => {
    if (named !== undefined) choose(named)
  }, [named])
  if (workspaces === undefined) return null
  const choice = chosen ?? (workspaces.size > MAP_WORKSPACES_MAX ? 'list' : 'map')
  if (isPhone) return <ListView workspaces={workspaces} />
  const viewSwitch = <ViewSwitch choice={choice} onChoose={choose} />
  if (choice === 'list') return <ListView workspaces={workspaces} viewSwitch={viewSwitch} />
  return (
    <>
      {viewSwitch}
      <CardMap workspaces={workspaces} />
    </>
  )
}

function readChoice(): Choice | undefined {
  const stored = localStorage.getItem(CHOICE_KEY)
  return stored === 'map' || stored === 'list' ? stored : undefined
}

const CHOICES: readonly { readonly id: Choice; readonly title: string }[] = [
  { id: 'map', title: 'Map' },
  { id: 'list', title: 'List' },
]

function ViewSwitch({ choice, onChoose }: { readonly choice: Choice; readonly onChoose: (choice: Choice) => void }) {
  return (
    <fieldset className="absolute top-3 right-4 z-10 flex rounded-button border border-line bg-surface p-0.5">
      <legend className="sr-only">Show the workspaces as</legend>
      {CHOICES.map(({ id, title }) => (
        <button
          key={id}
          type="button"
          aria-pressed={id === choice}
          onClick={() => onChoose(id)}
          className={classNames(
            'h-7 rounded-chip px-2.5 text-second',
            id === choice ? 'bg-raised font-[600] text-ink' : 'text-soft hover:text-ink',
          )}
        >
          {title}
        </button>
      ))}
    </fieldset>
  )
}
