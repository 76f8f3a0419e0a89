/** Dragging a card onto another one puts its workspace below that one; onto the zone at the top, below none. */
import { type OnNodeDrag, useReactFlow } from '@xyflow/react'
import { useRef, useState } from 'react'
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import { readWorkspaces } from '../api/queries.ts'
import type { CardNode } from './card.tsx'
import { nest } from './changes.ts'
import { descendantsOf } from './families.ts'

/** The target of a drop that removes the parent. */
const NO_PARENT = ''

export function useCardDrag() {
  const flow = useReactFlow<CardNode>()
  const [dragged, setDragged] = useState<WorkspaceSummary>()
  const [targetId, setTargetId] = useState<string>()
  const [drops, setDrops] = useState(0)
  const forbidden = useRef<ReadonlySet<string>>(new Set())
  const onNodeDragStart: OnNodeDrag<CardNode> = (_event, { id }) => {
    const workspaces = readWorkspaces()
    // A workspace cannot stand below itself or below one of its own.
    forbidden.current = new Set([id, ...descendantsOf(id, workspaces).map((each) => each.id)])
    setDragged(workspaces.get(id))
  }
  const onNodeDrag: OnNodeDrag<CardNode> = (event, node) => {
    const over = flow.getIntersectingNodes(node, true).find(({ id }) => !forbidden.current.has(id))
    setTargetId(isOverZone(event) ? NO_PARENT : over?.id)
  }
  const onNodeDragStop: OnNodeDrag<CardNode> = (_event, { id }) => {
    const workspace = readWorkspaces().get(id)
    if (workspace && targetId !== undefined) nest(workspace, targetId === NO_PARENT ? null : targetId)
    setDragged(undefined)
    setTargetId(undefined)
    setDrops(drops + 1)
  }
  return { dragged, targetId, drops, onNodeDragStart, onNodeDrag, onNodeDragStop }
}

function isOverZone(event: MouseEvent | TouchEvent): boolean {
  const zone = document.querySelector('[data-no-parent]')?.getBoundingClientRect()
  const point = 'touches' in event ? event.touches[0] : event
  if (zone === undefined || point === undefined) return false
  return point.clientY <= zone.bottom && point.clientX >= zone.left && point.clientX <= zone.right
}
