/** Arrow keys move between cards. A card outside of the view is brought into it. */
import { useReactFlow } from '@xyflow/react'
import { type FocusEvent, type KeyboardEvent, useState } from 'react'
import { CARD_WIDTH, type CardPlace } from './layout.ts'
import { isArrowKey, nearestCard } from './nearest.ts'

export function useCardKeys(places: ReadonlyMap<string, CardPlace>) {
  const flow = useReactFlow()
  const [focusedId, setFocusedId] = useState<string>()
  const onKeyDown = (event: KeyboardEvent) => {
    const card = cardIdOf(event.target)
    if (card === undefined || !isArrowKey(event.key)) return
    event.preventDefault()
    const next = nearestCard(places, card, event.key)
    const place = next === undefined ? undefined : places.get(next)
    if (next === undefined || place === undefined) return
    const element = document.querySelector<HTMLElement>(`[data-card="${CSS.escape(next)}"]`)
    element?.focus({ preventScroll: true })
    if (element && !isInView(element)) {
      void flow.setCenter(place.x + CARD_WIDTH / 2, place.y + 60, { zoom: flow.getZoom() })
    }
  }
  const onFocus = (event: FocusEvent) => setFocusedId(cardIdOf(event.target) ?? focusedId)
  return { focusedId, onKeyDown, onFocus }
}

const cardIdOf = (target: EventTarget): string | undefined =>
  target instanceof HTMLElement ? target.dataset['card'] : undefined

function isInView(element: HTMLElement): boolean {
  const card = element.getBoundingClientRect()
  const view = element.closest('.react-flow')?.getBoundingClientRect()
  if (view === undefined) return true
  return card.left >= view.left && card.top >= view.top && card.right <= view.right && card.bottom <= view.bottom
}
