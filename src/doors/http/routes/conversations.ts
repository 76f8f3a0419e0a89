/** The conversations of a workspace over HTTP, as a chat shows them, and a text in every stored message and answer. */
import { listConversations, readConversation, searchMessages as searchEndpoint } from '../../../api/conversations.ts'
import { readChatPage } from '../../../views/chat-page.ts'
import { readConversations } from '../../../views/conversations.ts'
import { searchMessages } from '../../../views/message-search.ts'
import { seesConfig } from '../../../workspaces/may-talk.ts'
import { requireOwnWorkspace, requireWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'

export const conversationRoutes = [
  serve(listConversations, async ({ params, query }, { store, workspaces }) => {
    await requireWorkspace(workspaces, params.id)
    return await readConversations(store, { ...query, workspaceId: params.id })
  }),
  serve(readConversation, ({ params, query, identity }, { store }) =>
    readChatPage(store, {
      ...query,
      workspaceId: params.id,
      conversation: params.conversation,
      detail: seesConfig(identity),
    }),
  ),
  serve(searchEndpoint, async ({ query: { limit, search: text, after, workspace_id }, identity }, { store }) => {
    // An agent finds only the messages of its own workspace.
    const workspaceId = workspace_id ?? identity.workspaceId
    if (workspaceId !== undefined) requireOwnWorkspace(identity, workspaceId)
    return await searchMessages(store, { workspaceId, text, limit, after })
  }),
]
