/** Keeps the map in view: it fits itself until a person moves it, and the chosen card is always visible. */
import { getViewportForBounds, useReactFlow, useStore, type Viewport } from '@xyflow/react'
import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from 'react'
import { CARD_HEIGHT, CARD_WIDTH, type CardPlaces, type MapRoom } from './layout.ts'

const FIT = { padding: 0.1, maxZoom: 1, minZoom: 0.5 }

const MARGIN = 16
/** Beside a wide panel there is room for one card: the chosen one, at its full size. */
const NARROW_WIDTH = CARD_WIDTH * 2
const ROOM_STEP = 80

/**
 * The size of the window, in steps, so that cards do not move with every pixel of a window that is resized. Not the size
 * of the map: the cards keep their places when a panel opens beside them. Undefined until the map has a size.
 */
export function useRoom(): MapRoom | undefined {
  const hasSize = useStore((store) => store.width > 0)
  const size = useSyncExternalStore(onResize, readSize)
  return useMemo(() => {
    const [width = 0, height = 0] = size.split(' ').map(Number)
    return hasSize ? { width, height } : undefined
  }, [hasSize, size])
}

function onResize(listener: () => void): () => void {
  addEventListener('resize', listener)
  return () => removeEventListener('resize', listener)
}

const readSize = (): string =>
  [innerWidth, innerHeight].map((length) => Math.max(1, Math.round(length / ROOM_STEP)) * ROOM_STEP).join(' ')

/** Shows all cards, or as many as are readable. React Flow would wait until it has measured every card. */
export function fitAll(places: CardPlaces, width: number, height: number): Viewport {
  const bounds = { x: 0, y: 0, width: CARD_WIDTH, height: 0 }
  for (const { x, y } of places.values()) {
    bounds.width = Math.max(bounds.width, x + CARD_WIDTH)
    bounds.height = Math.max(bounds.height, y + CARD_HEIGHT)
  }
  return getViewportForBounds(bounds, width, height, FIT.minZoom, FIT.maxZoom, FIT.padding)
}

/** Returns the callback for the start of a move of the map. */
export function useViewport(places: CardPlaces, chosenId: string | undefined): (event: unknown) => void {
  const flow = useReactFlow()
  const isMoved = useRef(false)
  const width = useStore((store) => store.width)
  const height = useStore((store) => store.height)
  const isNarrow = width < NARROW_WIDTH
  const shape = useMemo(() => shapeOf(places), [places])
  const fitted = useRef<string>(undefined)
  // biome-ignore lint/correctness/useExhaustiveDependencies: fits again when the cards or the room for them change.
  useEffect(() => {
    if (isMoved.current || places.size === 0 || (isNarrow && chosenId !== undefined)) return
    // A panel that opens moves no card, unless it would cover the chosen one.
    if (chosenId !== undefined && fitted.current === shape) return
    fitted.current = shape
    void flow.setViewport(fitAll(places, width, height))
  }, [flow, shape, width, height])
  // biome-ignore lint/correctness/useExhaustiveDependencies: a panel that opens may cover the card.
  useEffect(() => {
    const place = chosenId === undefined ? undefined : places.get(chosenId)
    if (place === undefined || width === 0) return
    const { x, y, zoom } = flow.getViewport()
    const [left, top] = [place.x * zoom + x, place.y * zoom + y]
    const isVisible =
      left >= MARGIN &&
      top >= MARGIN &&
      left + CARD_WIDTH * zoom <= width - MARGIN &&
      top + CARD_HEIGHT * zoom <= height - MARGIN
    if (isVisible && !isNarrow) return
    const options = { zoom: isNarrow ? FIT.maxZoom : zoom }
    void flow.setCenter(place.x + CARD_WIDTH / 2, place.y + CARD_HEIGHT / 2, options)
  }, [flow, chosenId, width, height])
  return useCallback((event) => {
    // A move by the program has no event.
    if (event !== null) isMoved.current = true
  }, [])
}

/** Changes when cards come or go, not when a card only grows by a line. */
const shapeOf = (places: ReadonlyMap<string, unknown>): string => [...places.keys()].sort().join()
