/**
 * The workspaces of the map, for its cards. A card follows its own workspace here and not in the data of its node: on a
 * change of one node React Flow compares all its nodes and wires.
 */
import { createContext, use, useLayoutEffect, useState, useSyncExternalStore } from 'react'
import type { WorkspaceMap } from '../api/queries.ts'
import type { ShownWorkspace } from '../api/shown-workspace.ts'

interface CardSource {
  readonly read: (id: string) => ShownWorkspace | undefined
  readonly write: (workspaces: WorkspaceMap) => void
  readonly subscribe: (listener: () => void) => () => void
}

function createCardSource(): CardSource {
  const listeners = new Set<() => void>()
  let current: WorkspaceMap = new Map()
  return {
    read: (id) => current.get(id),
    write(workspaces) {
      current = workspaces
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export const CardSourceContext = createContext(createCardSource())

/** The source for the cards below, always with these workspaces. */
export function useCardSource(workspaces: WorkspaceMap): CardSource {
  const [source] = useState(createCardSource)
  useLayoutEffect(() => source.write(workspaces), [source, workspaces])
  return source
}

/** Undefined when the workspace was deleted. */
export function useCardWorkspace(id: string): ShownWorkspace | undefined {
  const { subscribe, read } = use(CardSourceContext)
  return useSyncExternalStore(subscribe, () => read(id))
}
