/**
 * The peer of `bench/canvas.ts`: React Flow alone with 200 of its own nodes, one update of one node at a time. `?nodes` and
 * `?rate` come from the benchmark.
 */
import { type Node, ReactFlow, useNodesState } from '@xyflow/react'
import { createElement, useEffect } from 'react'
import { createRoot } from 'react-dom/client'
import '@xyflow/react/dist/style.css'

const query = new URLSearchParams(location.search)
const count = Number(query.get('nodes'))
const rate = Number(query.get('rate'))

const first: Node[] = Array.from({ length: count }, (_, index) => ({
  id: String(index),
  position: { x: (index % 20) * 264, y: Math.floor(index / 20) * 140 },
  data: { label: `Workspace ${index}` },
}))

function Bare() {
  const [nodes, setNodes, onNodesChange] = useNodesState(first)
  useEffect(() => {
    let at = 0
    const timer = setInterval(() => {
      at += 1
      const id = String(at % count)
      setNodes((before) =>
        before.map((node) => (node.id === id ? { ...node, data: { label: `Workspace ${id}: step ${at}` } } : node)),
      )
    }, 1000 / rate)
    return () => clearInterval(timer)
  }, [setNodes])
  return createElement(
    'div',
    { style: { width: '100vw', height: '100vh' } },
    createElement(ReactFlow, { nodes, edges: [], onNodesChange, fitView: true, minZoom: 0.1 }),
  )
}

const root = document.getElementById('root')
if (root !== null) createRoot(root).render(createElement(Bare))
