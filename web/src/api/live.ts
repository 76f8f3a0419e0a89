/**
 * Live data. One socket follows the platform and keeps the cache of workspaces current. A view that shows the events of
 * one workspace opens a second socket with `useWorkspaceEvents` and continues from its last number after a reconnect.
 */
import { useEffect, useRef, useSyncExternalStore } from 'react'
import type { ActivityView } from '../../../src/client/views.ts'
import { type LiveMessage, type LiveState, openLiveSocket } from './live-socket.ts'
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
    const close = openLiveSocket({
      subscription: () => ({ subscribe: { _platform: null } }),
      onMessage: (message) => {
        if (message.type === 'error') return
        pending.push(message)
        frame ??= setTimeout(flush, 16)
      },
      onState: setState,
      onLoggedOut: forgetSession,
    })
    return () => {
      clearTimeout(frame)
      needs.stop()
      wires.stop()
      close()
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
  /** The number to begin after; null = from now on; undefined = do not follow yet. */
  readonly since: number | null | undefined
  readonly onEvents: (events: readonly ActivityView[], seq: number) => void
  /** Events before the oldest kept one are gone: read the history again. */
  readonly onGap?: () => void
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
    let seen: number | null = start.current ?? null
    return openLiveSocket({
      subscription: () => ({ subscribe: { [workspaceId]: seen } }),
      onState: () => undefined,
      onMessage: (message, send) => {
        if (message.type === 'subscribed') seen = Number(message['seq'])
        if (message.type === 'error' && message['status'] === 410) {
          send({ subscribe: { [workspaceId]: null } })
          callbacks.current.onGap?.()
        }
        if (message.type !== 'events') return
        seen = Number(message['seq'])
        callbacks.current.onEvents(message['events'] as readonly ActivityView[], seen)
      },
    })
  }, [workspaceId, isFollowing])
}
