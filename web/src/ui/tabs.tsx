/** A row of tabs. Arrow keys move between them, as screen readers expect of tabs. */
import { type KeyboardEvent, useEffect, useRef } from 'react'
import { classNames } from './class-names.ts'

export interface TabsProps {
  readonly label: string
  readonly tabs: readonly { readonly id: string; readonly title: string }[]
  /** The tabs with something that is not saved yet. */
  readonly unsaved?: ReadonlySet<string>
  readonly chosen: string
  readonly onChoose: (id: string) => void
  /** The id of the element that shows the chosen tab. */
  readonly panelId: string
}

export function Tabs({ label, tabs, unsaved, chosen, onChoose, panelId }: TabsProps) {
  const list = useRef<HTMLDivElement>(null)
  // On a phone the row is wider than the screen.
  useEffect(() => {
    const tab = list.current?.querySelector<HTMLElement>(`[data-tab="${chosen}"]`)
    tab?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [chosen])
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const at = tabs.findIndex(({ id }) => id === chosen)
    const next = tabs.at((at + step) % tabs.length)
    if (next === undefined) return
    onChoose(next.id)
    list.current?.querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus()
  }
  return (
    <div
      ref={list}
      role="tablist"
      aria-label={label}
      className="flex gap-4.5 overflow-x-auto px-5 [scrollbar-width:none]"
    >
      {tabs.map(({ id, title }) => (
        <button
          key={id}
          type="button"
          role="tab"
          id={`tab-${id}`}
          data-tab={id}
          aria-selected={id === chosen}
          aria-controls={panelId}
          tabIndex={id === chosen ? 0 : -1}
          onClick={() => onChoose(id)}
          onKeyDown={move}
          className={classNames(
            'focus-inside -mb-px h-10 shrink-0 border-b-2 text-second max-md:h-11',
            id === chosen ? 'border-ink font-[600] text-ink' : 'border-transparent text-soft hover:text-ink',
          )}
        >
          {title}
          {unsaved?.has(id) ? <UnsavedMark /> : null}
        </button>
      ))}
    </div>
  )
}

const UnsavedMark = () => (
  <>
    <span
      aria-hidden="true"
      title="Not saved yet"
      className="ml-1.5 inline-block size-1.5 rounded-full bg-accent align-middle"
    />
    <span className="sr-only">(not saved yet)</span>
  </>
)
