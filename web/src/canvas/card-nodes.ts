/** The nodes and wires of the map from the workspaces. Objects that did not change stay the same. */
import type { Edge } from '@xyflow/react'
import type { OpenDelegationView } from '../../../src/client/views.ts'
import type { WorkspaceMap } from '../api/queries.ts'
import type { CardData, CardNode } from './card.tsx'
import { CARD_HEIGHT, CARD_WIDTH, type CardPlace, type CardPlaces } from './layout.ts'

export interface MapMarks {
  readonly chosenId: string | undefined
  readonly targetId: string | undefined
  readonly tabStopId: string | undefined
}

/** Keeps the objects of nodes that did not change, so that only changed cards render again. */
export function mergeNodes(before: readonly CardNode[], places: CardPlaces, marks: MapMarks): CardNode[] {
  const known = new Map(before.map((node) => [node.id, node]))
  return [...places].map(([id, place]) => {
    const marked: CardData = {
      isChosen: id === marks.chosenId,
      isTarget: id === marks.targetId,
      isTabStop: id === marks.tabStopId,
    }
    const old = known.get(id)
    if (old === undefined) return newNode(id, place, marked)
    const data = hasSameMarks(old.data, marked) ? old.data : marked
    // A card that is held stays where the pointer is.
    if (old.dragging || isSamePlace(old.position, place)) return data === old.data ? old : { ...old, data }
    return { ...old, position: place, data }
  })
}

const CLICKABLE = { pointerEvents: 'all' } as const

const newNode = (id: string, place: CardPlace, data: CardData): CardNode => ({
  id,
  type: 'card',
  position: place,
  // React Flow measures the card too; with the same size it does not render the card again.
  measured: { width: CARD_WIDTH, height: CARD_HEIGHT },
  // The map takes no pointer for a node that can be neither dragged nor selected, but a card can always be clicked.
  style: CLICKABLE,
  data,
})

const isSamePlace = (one: CardPlace, other: CardPlace): boolean => one.x === other.x && one.y === other.y

const hasSameMarks = (one: CardData, other: CardData): boolean =>
  one.isChosen === other.isChosen && one.isTarget === other.isTarget && one.isTabStop === other.isTabStop

const WIRE = { stroke: 'var(--color-line)', strokeWidth: 1.5 }
const LIVE_WIRE = { strokeWidth: 1.5 }

/**
 * A wire from each parent to its children, live while the parent waits for the child; and a live wire for each other
 * delegation that is not finished.
 */
export function wiresOf(workspaces: WorkspaceMap, open: readonly OpenDelegationView[]): Edge[] {
  const live = new Set(open.filter(({ from, to }) => workspaces.has(from) && workspaces.has(to)).map(wireId))
  const wires: Edge[] = []
  for (const { id, parent_id: parent } of workspaces.values()) {
    if (!parent || !workspaces.has(parent)) continue
    const wire = { from: parent, to: id }
    wires.push(toEdge(wire, live.delete(wireId(wire))))
  }
  for (const wire of open) if (live.delete(wireId(wire))) wires.push(toEdge(wire, true))
  return wires
}

const wireId = ({ from, to }: { readonly from: string; readonly to: string }): string => `${from}-${to}`

const toEdge = (wire: { readonly from: string; readonly to: string }, isLive: boolean): Edge => ({
  id: wireId(wire),
  source: wire.from,
  target: wire.to,
  focusable: false,
  ...(isLive ? { style: LIVE_WIRE, className: 'live', zIndex: 1 } : { style: WIRE }),
})

export const hasSameWires = (one: readonly Edge[], other: readonly Edge[]): boolean =>
  one.length === other.length &&
  one.every(({ id, className }, index) => id === other[index]?.id && className === other[index]?.className)
