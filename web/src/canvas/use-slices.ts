/** Mounts the cards of the map in slices, those in view first: 200 cards at once are a task of 200 to 320 ms. */
import { useStore } from '@xyflow/react'
import { useEffect, useMemo, useState } from 'react'
import { CARD_HEIGHT, CARD_WIDTH, type CardPlace, type CardPlaces, takeFirst } from './layout.ts'
import { fitAll } from './use-viewport.ts'

/** Cards that are mounted in one frame. Measured on a busy machine: the first card after 411 ms, with 32 after 545 ms. */
const SLICE = 16
const ALL = Number.POSITIVE_INFINITY

/** The places of the cards that are mounted now; after some frames all of them. */
export function useSlices(places: CardPlaces): CardPlaces {
  const width = useStore((store) => store.width)
  const height = useStore((store) => store.height)
  const [count, setCount] = useState(SLICE)
  useEffect(() => {
    if (places.size === 0 || count === ALL) return
    const frame = requestAnimationFrame(() => setCount(count < places.size ? count + SLICE : ALL))
    return () => cancelAnimationFrame(frame)
  }, [count, places.size])
  return useMemo(() => {
    if (count >= places.size) return places
    const { x, y, zoom } = fitAll(places, width, height)
    const isInView = (place: CardPlace) =>
      (place.x + CARD_WIDTH) * zoom + x > 0 &&
      (place.y + CARD_HEIGHT) * zoom + y > 0 &&
      place.x * zoom + x < width &&
      place.y * zoom + y < height
    return takeFirst(places, count, isInView)
  }, [places, count, width, height])
}
