/**
 * One backend for each workspace, built on its first turn and kept, because a backend may hold warm agents. When the
 * workspace's configuration changes, the next turn gets a new backend, and the old one is closed after its last turn.
 */
import type { Backend } from '../backends/backend.ts'
import type { Brief } from '../protocol/brief.ts'

export interface BackendPool {
  /** The workspace's backend, and a function that the caller calls when its turn has ended. */
  take(workspaceId: string, brief: Brief): { backend: Backend; giveBack: () => void }
  /** The next turn of the workspace gets a new backend; the old one is closed after its last turn. */
  retire(workspaceId: string): void
  /** Closes every backend once. */
  close(): Promise<void>
}

interface PooledBackend {
  readonly backend: Backend
  readonly configuration: string
  turns: number
  retired: boolean
  closing?: Promise<void>
}

export function createBackendPool(build: (brief: Brief) => Backend): BackendPool {
  const current = new Map<string, PooledBackend>()
  const all = new Set<PooledBackend>()
  const close = (pooled: PooledBackend) => {
    pooled.closing ??= pooled.backend.close().finally(() => all.delete(pooled))
    return pooled.closing
  }
  return {
    take(workspaceId, brief) {
      const configuration = JSON.stringify([brief.runtime, brief.options])
      let pooled = current.get(workspaceId)
      if (pooled?.configuration !== configuration) {
        const fresh: PooledBackend = { backend: build(brief), configuration, turns: 0, retired: false }
        if (pooled !== undefined) retire(pooled, close)
        pooled = fresh
        current.set(workspaceId, pooled)
        all.add(pooled)
      }
      const taken = pooled
      taken.turns += 1
      const giveBack = () => {
        taken.turns -= 1
        if (taken.retired && taken.turns === 0) void close(taken)
      }
      return { backend: taken.backend, giveBack }
    },
    retire(workspaceId) {
      const pooled = current.get(workspaceId)
      current.delete(workspaceId)
      if (pooled !== undefined) retire(pooled, close)
    },
    async close() {
      await Promise.allSettled([...all].map(close))
      current.clear()
    },
  }
}

function retire(pooled: PooledBackend, close: (pooled: PooledBackend) => Promise<void>): void {
  pooled.retired = true
  if (pooled.turns === 0) void close(pooled)
}
