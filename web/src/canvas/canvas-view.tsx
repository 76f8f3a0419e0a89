/** The workspaces as a map or as a list. Many are a list until a person chooses the map; a phone has only the list. */
import { useState } from 'react'
import { useWorkspacesMaybe } from '../api/queries.ts'
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
  if (workspaces === undefined) return null
  const choice = chosen ?? (workspaces.size > MAP_WORKSPACES_MAX ? 'list' : 'map')
  const choose = (next: Choice) => {
    setChosen(next)
    localStorage.setItem(CHOICE_KEY, next)
  }
  if (isPhone) return <ListView workspaces={workspaces} />
  return (
    <>
      {choice === 'map' ? <CardMap workspaces={workspaces} /> : <ListView workspaces={workspaces} />}
      <ViewSwitch choice={choice} onChoose={choose} />
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
