/** The calls of the platform client about what workspaces remember. */

interface MemoryRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly body?: string
}

export interface MemoryCalls {
  /** A page of the newest memories, or the best matches of the query. */
  listMemories(workspaceId: string, query: MemoryQuery): Promise<MemoryView[]>
  addMemory(workspaceId: string, memory: NewMemory): Promise<MemoryView>
  forgetMemory(workspaceId: string, id: string, namespace: string): Promise<void>
}

interface MemoryQuery {
  readonly query?: string | undefined
  /** `workspace`, `team`, or a namespace in full. */
  readonly namespace: string
  readonly limit: number
}

interface NewMemory {
  readonly text: string
  readonly namespace: string
  readonly kind: 'memory' | 'summary'
}

export interface MemoryView {
  readonly id: string
  readonly namespace: string
  readonly kind: string
  readonly text: string
  readonly written_by: string
  readonly created_at: string
  readonly expires_at: string | null
}

export function memoryCalls(call: (request: MemoryRequest) => Promise<unknown>): MemoryCalls {
  const at = (workspaceId: string, below = '') => `/workspaces/${encodeURIComponent(workspaceId)}/memories${below}`
  return {
    async listMemories(workspaceId, { query, namespace, limit }) {
      const search = new URLSearchParams({ namespace, limit: String(limit), ...(query !== undefined && { query }) })
      const answer = await call({ method: 'GET', path: at(workspaceId, `?${search}`) })
      return (answer as { memories: MemoryView[] }).memories
    },
    addMemory: async (workspaceId, memory) =>
      (await call({ method: 'POST', path: at(workspaceId), body: JSON.stringify(memory) })) as MemoryView,
    async forgetMemory(workspaceId, id, namespace) {
      const query = new URLSearchParams({ namespace })
      await call({ method: 'DELETE', path: at(workspaceId, `/${encodeURIComponent(id)}?${query}`) })
    },
  }
}
