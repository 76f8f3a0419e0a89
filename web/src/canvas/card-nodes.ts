/** The nodes and wires of the map from the workspaces. Objects that did not change stay the same. */
import type { Edge } from '@xyflow/react'
import type { OpenDelegationView } from '../../../src/client/canvas-calls.ts'
import type { WorkspaceMap } from '../api/queries.ts'
import { type CardData, type CardNode, estimateHeight } from './card.tsx'
import { CARD_WIDTH, type CardPlace } from './layout.ts'

export interface MapMarks {
  readonly chosenId: string | undefined
  readonly targetId: string | undefined
  readonly tabStopId: string | undefined
}

/** Keeps the node objects of cards that did not change, so that only changed cards render again. */
export function mergeNodes(
  before: readonly CardNode[],
  { workspaces, places }: { readonly workspaces: WorkspaceMap; readonly places: ReadonlyMap<string, CardPlace> },
  marks: MapMarks,
): CardNode[] {
  const known = new Map(before.map((node) => [node.id, node]))
  return [...workspaces.values()].map((workspace) => {
    const { id } = workspace
    const data: CardData = {
      workspace,
      isChosen: id === marks.chosenId,
      isTarget: id === marks.targetId,
      isTabStop: id === marks.tabStopId,
    }
    const old = known.get(id)
    // A card that is held stays where the pointer is.
    const position = old?.dragging ? old.position : (places.get(id) ?? { x: 0, y: 0 })
    if (old === undefined) return newNode(position, data)
    return isSame(old, position, data) ? old : { ...old, position, data }
  })
}

const CLICKABLE = { pointerEvents: 'all' } as const

const newNode = (position: CardPlace, data: CardData): CardNode => ({
  id: data.workspace.id,
  type: 'card',
  position,
  initialWidth: CARD_WIDTH,
  initialHeight: estimateHeight(data.workspace),
  // The map takes no pointer for a node that can be neither dragged nor selected, but a card can always be clicked.
  style: CLICKABLE,
  data,
})

const isSame = (old: CardNode, position: CardPlace, data: CardData): boolean =>
  old.position.x === position.x &&
  old.position.y === position.y &&
  Object.entries(data).every(([key, value]) => old.data[key] === value)

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
