/**
 * Live data over the one socket of the page. It follows the platform and keeps the cache of workspaces current. A view
 * that shows the events of one workspace follows its log too, with `useWorkspaceEvents`.
 */
import { useEffect, useRef, useSyncExternalStore } from 'react'
import { PLATFORM_STREAM } from '../../../src/client/live-socket.ts'
import type { ActivityView } from '../../../src/client/views.ts'
import { type LiveSocket, type LiveState, openLiveSocket } from './live-socket.ts'
import { createLogSubscriptions, type LiveMessage } from './log-subscriptions.ts'
import { applyPlatformMessages } from './platform-changes.ts'
import { forgetSession, keys, queryClient, type WorkspaceMap } from './queries.ts'

/** Lists that are derived from the workspaces are read again at most this often. */
const REFRESH_MS_MIN = 1000

const listeners = new Set<() => void>()
let state: LiveState = { kind: 'connecting' }

function setState(next: LiveState): void {
  state = next
  for (const listener of listeners) listener()
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => state,
  )
}

let socket: LiveSocket | undefined
const logs = createLogSubscriptions((subscription) => socket?.send(subscription))

/** Follows the platform while the page is logged in. */
export function useLivePlatform(): void {
  useEffect(() => {
    let pending: LiveMessage[] = []
    let frame: ReturnType<typeof setTimeout> | undefined
    const needs = createRefresh(keys.needs)
    const wires = createRefresh(keys.wires)
    /** Workspaces that changed since the wires were read: a delegation changes two. */
    const changed = new Set<string>()
    // Many changes within a frame become one update of the page.
    const flush = () => {
      frame = undefined
      const messages = pending
      pending = []
      queryClient.setQueryData<WorkspaceMap>(keys.workspaces, (before) => applyPlatformMessages(before, messages))
      const isSnapshot = messages.some(({ type }) => type === 'snapshot')
      if (isSnapshot || messages.some(({ type }) => type === 'needs_you')) needs.soon()
      for (const { type, id } of messages) if (type !== 'needs_you' && type !== 'snapshot') changed.add(String(id))
      const hasWires = (queryClient.getQueryData<readonly unknown[]>(keys.wires)?.length ?? 0) > 0
      if (!isSnapshot && changed.size < 2 && !(hasWires && changed.size > 0)) return
      changed.clear()
      wires.soon()
    }
    const opened = openLiveSocket({
      subscription: () => ({ subscribe: { [PLATFORM_STREAM]: null, ...logs.all() } }),
      onMessage: (message) => {
        if (message.workspace !== PLATFORM_STREAM) return logs.take(message)
        pending.push(message)
        frame ??= setTimeout(flush, 16)
      },
      onState: setState,
      onLoggedOut: forgetSession,
    })
    socket = opened
    return () => {
      clearTimeout(frame)
      needs.stop()
      wires.stop()
      opened.close()
      socket = undefined
    }
  }, [])
}

function createRefresh(queryKey: readonly string[]) {
  let timer: ReturnType<typeof setTimeout> | undefined
  return {
    soon() {
      timer ??= setTimeout(() => {
        timer = undefined
        void queryClient.invalidateQueries({ queryKey })
      }, REFRESH_MS_MIN)
    },
    stop: () => clearTimeout(timer),
  }
}

export interface WorkspaceEventsOptions {
  readonly workspaceId: string
  /** The number to begin after; undefined = do not follow yet. */
  readonly since: number | undefined
  readonly onEvents: (events: readonly ActivityView[]) => void
  /** Events before the oldest kept one are gone: read the history again. */
  readonly onGap: () => void
}

/** Calls back with every event of a workspace after `since`, each once, also across reconnects. */
export function useWorkspaceEvents({ workspaceId, since, onEvents, onGap }: WorkspaceEventsOptions): void {
  const callbacks = useRef({ onEvents, onGap })
  callbacks.current = { onEvents, onGap }
  const isFollowing = since !== undefined
  const start = useRef(since)
  start.current = since
  useEffect(() => {
    if (!isFollowing) return
    return logs.follow(workspaceId, start.current ?? 0, {
      onEvents: (events) => callbacks.current.onEvents(events),
      onGap: () => callbacks.current.onGap(),
    })
  }, [workspaceId, isFollowing])
}
