/** `GET /messages`: a text in every stored message and answer, with the place of each message. */
import { searchMessages as endpoint } from '../../../api/conversations.ts'
import { searchMessages } from '../../../views/message-search.ts'
import { requireOwnWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'

export const messageRoutes = [
  serve(endpoint, async ({ query: { limit, search: text, after, workspace_id }, identity }, { store }) => {
    // An agent finds only the messages of its own workspace.
    const workspaceId = workspace_id ?? identity.workspaceId
    if (workspaceId !== undefined) requireOwnWorkspace(identity, workspaceId)
    return await searchMessages(store, { workspaceId, text, limit, after })
  }),
]
