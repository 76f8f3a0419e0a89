/** The calls of the platform client that the side panel of the web page needs: dead letters. */
import { allPages, type Paged, withAfter } from './pages.ts'

export interface DeadLetterView {
  readonly id: string
  readonly task_id: string
  readonly context_id: string
  readonly code: string
  readonly reason: string
  readonly detail?: string
  readonly failures: number
  readonly losses: number
  readonly sender: { readonly kind: string; readonly name: string; readonly door: string }
  readonly message: { readonly parts: readonly { readonly text?: string }[] }
  readonly at: string
}

export interface PanelCalls {
  listDeadLetters(workspaceId: string): Promise<DeadLetterView[]>
  /** The id of the new task. */
  replayDeadLetter(workspaceId: string, id: string): Promise<string>
  discardDeadLetter(workspaceId: string, id: string): Promise<void>
}

interface PanelRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
}

export function panelCalls(call: (request: PanelRequest) => Promise<unknown>): PanelCalls {
  const at = (id: string, below: string) => `/workspaces/${encodeURIComponent(id)}${below}`
  const get = async <T>(path: string): Promise<T> => (await call({ method: 'GET', path })) as T
  const send = async <T>(method: 'POST' | 'DELETE', path: string): Promise<T> => (await call({ method, path })) as T
  const letterAt = (workspaceId: string, id: string) => at(workspaceId, `/dead-letters/${encodeURIComponent(id)}`)
  return {
    async listDeadLetters(id) {
      const pages = await allPages((next) =>
        get<{ dead_letters: DeadLetterView[] } & Paged>(withAfter(at(id, '/dead-letters'), next)),
      )
      return pages.flatMap((page) => page.dead_letters)
    },
    replayDeadLetter: async (workspaceId, id) =>
      (await send<{ task_id: string }>('POST', `${letterAt(workspaceId, id)}/replay`)).task_id,
    discardDeadLetter: (workspaceId, id) => send('DELETE', letterAt(workspaceId, id)),
  }
}
