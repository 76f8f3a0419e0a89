/**
 * Where the focus goes. An action that leads to another place, such as one of the palette, brings the focus there. Escape
 * closes the panel when nothing lies above it. A panel that closed gives the focus back to its card.
 */
import { useEffect, useSyncExternalStore } from 'react'
import { goTo, type PagePlace, readPlace, writePlace } from './route.ts'

const listeners = new Set<() => void>()
/** The place that shall get the focus as soon as it is there. */
let wanted: string | undefined

const nameOf = ({ workspaceId, tab, view }: PagePlace): string =>
  writePlace({ ...(workspaceId && { workspaceId }), ...(tab && { tab }), ...(view && { view }) })

/** Goes to a place and brings the focus there. */
export function goToWithFocus(place: PagePlace): void {
  wanted = nameOf(place)
  goTo(place)
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Calls `focus` when this place is shown and its focus is wanted. */
export function useWantedFocus(place: PagePlace, focus: () => void): void {
  const isWanted = useSyncExternalStore(subscribe, () => wanted === nameOf(place))
  useEffect(() => {
    if (!isWanted) return
    wanted = undefined
    focus()
  })
}

/** The element of the panel that takes the focus. */
export const PANEL = 'aside[data-panel]'

const isField = (target: EventTarget | null): target is HTMLElement =>
  target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement

/** The first Escape leaves a field, so that no form closes under the hands; the next one closes the panel. */
export function useEscape(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { key, target } = event
      if (key !== 'Escape' || event.defaultPrevented || event.isComposing) return
      // Dialogs and menus close themselves.
      if (document.querySelector('dialog[open]') !== null) return
      if (readPlace(location.hash).workspaceId === undefined) return
      // The browser empties a search field.
      if (target instanceof HTMLInputElement && target.type === 'search' && target.value !== '') return
      if (isField(target)) document.querySelector<HTMLElement>(PANEL)?.focus()
      else goTo({})
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}

/** Gives the focus back to the card or the row of the workspace whose panel has closed. */
export function useFocusBack(openId: string | undefined): void {
  useEffect(() => {
    if (openId === undefined) return
    return () => {
      const { workspaceId } = readPlace(location.hash)
      // A click has put the focus elsewhere, or another panel opens.
      if (workspaceId !== undefined || (document.activeElement ?? document.body) !== document.body) return
      const id = CSS.escape(openId)
      const card = document.querySelector<HTMLElement>(`[data-card="${id}"], a[data-workspace="${id}"]`)
      card?.focus({ preventScroll: true })
    }
  }, [openId])
}
