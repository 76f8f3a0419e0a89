/** Which card an arrow key leads to. Pure. */
import type { CardPlace } from './layout.ts'

export type ArrowKey = 'ArrowUp' | 'ArrowDown' | 'ArrowLeft' | 'ArrowRight'

const STEPS: Readonly<Record<ArrowKey, readonly [dx: number, dy: number]>> = {
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
}

/** Sideways distance counts this much more, so that a card straight ahead is preferred to a nearer one beside it. */
const SIDEWAYS = 2

export const isArrowKey = (key: string): key is ArrowKey => key in STEPS

/** The nearest card in the direction of the key; undefined where there is none. */
export function nearestCard(places: ReadonlyMap<string, CardPlace>, fromId: string, key: ArrowKey): string | undefined {
  const from = places.get(fromId)
  if (from === undefined) return places.keys().next().value
  const [stepX, stepY] = STEPS[key]
  let best: { readonly id: string; readonly distance: number } | undefined
  for (const [id, { x, y }] of places) {
    const ahead = (x - from.x) * stepX + (y - from.y) * stepY
    if (id === fromId || ahead <= 0) continue
    const distance = ahead + SIDEWAYS * Math.abs((x - from.x) * stepY + (y - from.y) * stepX)
    if (best === undefined || distance < best.distance) best = { id, distance }
  }
  return best?.id
}
