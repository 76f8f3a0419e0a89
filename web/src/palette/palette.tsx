/** Ctrl-K: a field, and the workspaces and actions that match. Arrow keys choose, Enter runs. */
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import type { MessageHitView } from '../../../src/client/views.ts'
import { reasonOf } from '../api/client.ts'
import { useMay, useWorkspaces, type WorkspaceMap } from '../api/queries.ts'
import { pause, restart, resume } from '../canvas/changes.ts'
import { useAllActions } from '../canvas/stop-all.tsx'
import { placeOfHit } from '../panel/chat/message-hits.tsx'
import { type FoundMessages, useMessageSearch } from '../panel/chat/use-message-search.ts'
import { goToWithFocus } from '../route/focus.ts'
import { openView } from '../route/route.ts'
import { classNames } from '../ui/class-names.ts'
import { useModal } from '../ui/dialog.tsx'
import { matchedPart } from '../ui/text/matched-part.ts'
import { findEntries, makeEntries, type PaletteEntry } from './entries.ts'

export function Palette({ onClose }: { readonly onClose: () => void }) {
  const dialog = useModal(onClose)
  const listId = useId()
  const may = useMay()
  const workspaces = useWorkspaces()
  const all = useAllActions()
  const [query, setQuery] = useState('')
  const [chosen, setChosen] = useState(0)
  const entries = makeEntries(workspaces.values(), { may, open: goToWithFocus, openView, restart, pause, resume, all })
  const search = useMessageSearch(query.trim().length < SEARCHED_CHARACTERS_MIN ? '' : query.trim())
  const { hits = [] } = search
  const found = [...findEntries(entries, query), ...messageEntries(hits.slice(0, HITS_SHOWN), workspaces)]
  const run = (entry: PaletteEntry | undefined) => {
    if (entry === undefined) return
    onClose()
    entry.run()
  }
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined && found.length > 0) setChosen((chosen + step + found.length) % found.length)
    else if (event.key === 'Enter') run(found[chosen])
    else return
    event.preventDefault()
  }
  return (
    <dialog
      ref={dialog}
      aria-label="Find"
      className="mx-auto mt-[12vh] w-[calc(100%-32px)] max-w-[560px] flex-col rounded-card border border-line bg-surface p-0 text-ink shadow-float backdrop:bg-ink/20 open:flex dark:backdrop:bg-ground/60"
    >
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={found[chosen] && `${listId}-${chosen}`}
        aria-label="Find a workspace, an action or a message"
        placeholder="Find a workspace, an action or a message"
        data-autofocus
        dir="auto"
        value={query}
        onChange={({ target }) => {
          setQuery(target.value)
          setChosen(0)
        }}
        onKeyDown={onKey}
        className="focus-inside h-11 rounded-t-card border-line border-b bg-surface px-4 text-body max-md:text-title"
      />
      <div id={listId} role="listbox" aria-label="Found" className="max-h-[50vh] overflow-y-auto">
        {found.map((entry, index) => (
          <Entry
            key={entry.id}
            entry={entry}
            query={query}
            id={`${listId}-${index}`}
            isChosen={index === chosen}
            onPoint={() => setChosen(index)}
            onRun={() => run(entry)}
          />
        ))}
      </div>
      {found.length === 0 ? (
        <p role="status" className="px-4 py-3 text-second text-soft">
          {nothingText(query, search)}
        </p>
      ) : null}
    </dialog>
  )
}

/** Why the list is empty. "Nothing matches" is said when every stored message was looked at. */
function nothingText(query: string, { isReading, error, hasMore }: FoundMessages): string {
  if (isReading) return 'Searching the messages…'
  if (error) return `The messages cannot be searched. ${reasonOf(error)}`
  if (hasMore) return `No recent message has “${query}”. The chat of a workspace searches older ones.`
  return `Nothing matches “${query}”.`
}

/** Shorter words are in nearly every message. */
const SEARCHED_CHARACTERS_MIN = 3
const HITS_SHOWN = 8

/** The conversation opens at the message. */
const messageEntries = (hits: readonly MessageHitView[], workspaces: WorkspaceMap): PaletteEntry[] =>
  hits.map((hit) => ({
    id: `message ${hit.id}`,
    title: hit.excerpt,
    hint: `message, ${workspaces.get(hit.workspace_id)?.name ?? 'a workspace'}`,
    run: () => goToWithFocus(placeOfHit(hit)),
  }))

interface EntryProps {
  readonly entry: PaletteEntry
  readonly query: string
  readonly id: string
  readonly isChosen: boolean
  readonly onPoint: () => void
  readonly onRun: () => void
}

function Entry({ entry, query, id, isChosen, onPoint, onRun }: EntryProps) {
  const [before, match, after] = matchedPart(entry.title, query)
  const line = useRef<HTMLDivElement>(null)
  // The arrow keys go on below the lower edge of the list.
  useEffect(() => {
    if (isChosen) line.current?.scrollIntoView({ block: 'nearest' })
  }, [isChosen])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and handles the keys of its list.
    <div
      ref={line}
      id={id}
      role="option"
      tabIndex={-1}
      aria-selected={isChosen}
      onPointerMove={onPoint}
      onClick={onRun}
      className={classNames(
        'flex min-h-10 cursor-pointer items-center gap-3 border-l-2 px-4 py-2 text-second max-md:min-h-11',
        isChosen ? 'border-accent bg-accent-soft' : 'border-transparent',
      )}
    >
      <span dir="auto" className="min-w-0 flex-1 truncate">
        {before}
        {match === '' ? null : <mark className="bg-transparent font-[600] text-accent">{match}</mark>}
        {after}
      </span>
      <span className="shrink-0 text-faint text-time">{entry.hint}</span>
    </div>
  )
}
