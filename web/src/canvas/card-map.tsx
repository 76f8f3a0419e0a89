/** The map: cards by parent with wires between them. A card is dragged onto another one to stand below it. */
import {
  Background,
  BackgroundVariant,
  Controls,
  type Edge,
  type NodeTypes,
  ReactFlow,
  ReactFlowProvider,
  useNodesState,
} from '@xyflow/react'
import { memo, useEffect, useMemo, useRef } from 'react'
import { useMay, useOpenDelegations, type WorkspaceMap } from '../api/queries.ts'
import { usePlace } from '../route/route.ts'
import { Card, type CardNode } from './card.tsx'
import { hasSameWires, mergeNodes, wiresOf } from './card-nodes.ts'
import { CardSourceContext, useCardSource } from './card-source.ts'
import { buildFamilies, byAge } from './families.ts'
import { type CardPlaces, hasSamePlaces, layOut } from './layout.ts'
import { useCardDrag } from './use-card-drag.ts'
import { useCardKeys } from './use-card-keys.ts'
import { useSlices } from './use-slices.ts'
import { useRoom, useViewport } from './use-viewport.ts'

const NODE_TYPES: NodeTypes = { card: Card }

export function CardMap({ workspaces }: { readonly workspaces: WorkspaceMap }) {
  return (
    <CardSourceContext value={useCardSource(workspaces)}>
      <ReactFlowProvider>
        <PlacedCards workspaces={workspaces} />
      </ReactFlowProvider>
    </CardSourceContext>
  )
}

/** Most changes of a workspace move no card and no wire, and end here. */
function PlacedCards({ workspaces }: { readonly workspaces: WorkspaceMap }) {
  return <CardFlow places={usePlaces(workspaces)} wires={useWires(workspaces)} />
}

interface CardFlowProps {
  readonly places: CardPlaces
  readonly wires: readonly Edge[]
}

const CardFlow = memo(function Flow({ places, wires }: CardFlowProps) {
  const may = useMay()
  const { workspaceId: chosenId } = usePlace()
  const [nodes, setNodes, onNodesChange] = useNodesState<CardNode>([])
  const mounted = useSlices(places)
  const edges = useMemo(() => wires.filter((wire) => joins(wire, mounted)), [wires, mounted])
  const { focusedId, onKeyDown, onFocus } = useCardKeys(places)
  const { dragged, targetId, drops, ...drag } = useCardDrag()
  const tabStopId = [focusedId, chosenId].find((id) => id !== undefined && places.has(id)) ?? firstOf(places)
  const onMoveStart = useViewport(places, chosenId)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a card that was dropped returns to its place.
  useEffect(
    () => setNodes((before) => mergeNodes(before, mounted, { chosenId, targetId, tabStopId })),
    [mounted, chosenId, targetId, tabStopId, drops, setNodes],
  )
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys and focus of the cards inside bubble up to here.
    <div className="relative h-full" onKeyDown={onKeyDown} onFocus={onFocus}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        onNodesChange={onNodesChange}
        nodesConnectable={false}
        nodesDraggable={may('workspace.change')}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        disableKeyboardA11y
        nodeDragThreshold={6}
        deleteKeyCode={null}
        minZoom={0.2}
        maxZoom={1.5}
        onMoveStart={onMoveStart}
        proOptions={PRO_OPTIONS}
        {...drag}
      >
        <Background
          variant={BackgroundVariant.Dots}
          gap={24}
          size={2}
          color="color-mix(in srgb, var(--color-edge) 30%, transparent)"
        />
        <Controls showInteractive={false} position="bottom-left" />
      </ReactFlow>
      {dragged?.parent_id ? <NoParentZone isOver={targetId === ''} /> : null}
    </div>
  )
})

const PRO_OPTIONS = { hideAttribution: true }

const joins = ({ source, target }: Edge, mounted: CardPlaces): boolean => mounted.has(source) && mounted.has(target)

const NO_PLACES: CardPlaces = new Map()

function usePlaces(workspaces: WorkspaceMap): CardPlaces {
  const room = useRoom()
  const laidOut = useMemo(
    () => (room === undefined ? NO_PLACES : layOut(buildFamilies(workspaces.values(), byAge), room)),
    [workspaces, room],
  )
  return useSame(laidOut, hasSamePlaces)
}

function useWires(workspaces: WorkspaceMap): readonly Edge[] {
  const open = useOpenDelegations()
  const wires = useMemo(() => wiresOf(workspaces, open), [workspaces, open])
  return useSame(wires, hasSameWires)
}

/** The value of an earlier render while it is equal. */
function useSame<T>(value: T, isEqual: (a: T, b: T) => boolean): T {
  const kept = useRef(value)
  if (!isEqual(kept.current, value)) kept.current = value
  return kept.current
}

const firstOf = (places: ReadonlyMap<string, unknown>): string | undefined => places.keys().next().value

/** Where a card is dropped that should have no parent. */
function NoParentZone({ isOver }: { readonly isOver: boolean }) {
  return (
    <p
      data-no-parent
      className={`absolute inset-x-4 top-4 z-10 rounded-box border border-dashed py-3 text-center text-second ${
        isOver ? 'border-accent bg-accent-soft text-accent' : 'border-edge bg-surface text-soft'
      }`}
    >
      Drop here for no parent
    </p>
  )
}
