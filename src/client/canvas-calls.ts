/** The calls of the platform client that the web page needs beside those of the commands. Their types are generated. */
import type { ApiAnswers } from './api-types.ts'

export type ConversationView = ApiAnswers['GET /workspaces/{id}/conversations']['conversations'][number]
export type ChatView = ApiAnswers['GET /workspaces/{id}/conversations/{conversation}']
export type MessageHitView = ApiAnswers['GET /messages']['messages'][number]
export type WorkspaceUsageView = ApiAnswers['GET /workspaces/{id}/usage']
export type PlatformUsageView = ApiAnswers['GET /usage']
export type DelegationsView = ApiAnswers['GET /workspaces/{id}/delegations']
export type OpenDelegationView = ApiAnswers['GET /delegations/open']['delegations'][number]

export interface CanvasCalls {
  /** A page of conversations, the last changed first. Read on with `next`: a page may be empty and still have one. */
  listConversations(id: string, query?: ConversationsQuery): Promise<ConversationsView>
  /** The newest messages of a conversation, or those before a number. Follow the events from its `seq`. */
  readConversation(id: string, conversation: string, query?: ChatViewQuery): Promise<ChatView>
  /** A page of the messages with a text, the newest first. Read on with `next`, as of conversations. */
  searchMessages(query: MessageSearchQuery): Promise<ApiAnswers['GET /messages']>
  workspaceUsage(
    id: string,
    query?: { readonly days?: number; readonly messages?: number },
  ): Promise<WorkspaceUsageView>
  /** Of all workspaces, by day and by workspace. */
  platformUsage(days?: number): Promise<PlatformUsageView>
  /** A page of the trees of delegations that the workspace is in. */
  listDelegations(id: string, query?: { readonly after?: string; readonly limit?: number }): Promise<DelegationsView>
  /** Which workspaces work for which others now. */
  listOpenDelegations(): Promise<readonly OpenDelegationView[]>
}

export interface ConversationsQuery {
  readonly search?: string
  readonly after?: string
  readonly limit?: number
}

export interface ChatViewQuery {
  readonly before?: number
  readonly limit?: number
  /** A message, or a task: the page around it. */
  readonly at?: string
}

export interface MessageSearchQuery {
  readonly search: string
  /** Absent: in all workspaces. */
  readonly workspace_id?: string
  readonly after?: string
  readonly limit?: number
}

interface ConversationsView {
  readonly conversations: readonly ConversationView[]
  readonly next?: string
}

type CanvasRequest = { readonly method: 'GET'; readonly path: string }

export function canvasCalls(call: (request: CanvasRequest) => Promise<unknown>): CanvasCalls {
  const send = async <Route extends keyof ApiAnswers>(route: Route, path?: string): Promise<ApiAnswers[Route]> => {
    const [method, ownPath = ''] = route.split(' ')
    return (await call({ method: method as CanvasRequest['method'], path: path ?? ownPath })) as ApiAnswers[Route]
  }
  return {
    listConversations: (id, query = {}) =>
      send('GET /workspaces/{id}/conversations', withQuery(`${workspaceAt(id)}/conversations`, { ...query })),
    readConversation: (id, conversation, query = {}) =>
      send(
        'GET /workspaces/{id}/conversations/{conversation}',
        withQuery(`${workspaceAt(id)}/conversations/${encodeURIComponent(conversation)}`, { ...query }),
      ),
    searchMessages: (query) => send('GET /messages', withQuery('/messages', { ...query })),
    workspaceUsage: (id, query = {}) =>
      send('GET /workspaces/{id}/usage', withQuery(`${workspaceAt(id)}/usage`, query)),
    platformUsage: (days) => send('GET /usage', withQuery('/usage', { days })),
    listDelegations: (id, query = {}) =>
      send('GET /workspaces/{id}/delegations', withQuery(`${workspaceAt(id)}/delegations`, query)),
    listOpenDelegations: async () => (await send('GET /delegations/open')).delegations,
  }
}

const workspaceAt = (id: string): string => `/workspaces/${encodeURIComponent(id)}`

function withQuery(path: string, query: Readonly<Record<string, unknown>>): string {
  const known = Object.entries(query).filter(([, value]) => value !== undefined)
  const text = new URLSearchParams(known.map(([key, value]): [string, string] => [key, String(value)])).toString()
  return text === '' ? path : `${path}?${text}`
}
