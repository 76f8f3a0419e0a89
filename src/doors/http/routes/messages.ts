/** `GET /messages`: a text in every stored message and answer, with the place of each message. */
import type { z } from 'zod'
import { type messageHitSchema, searchMessages } from '../../../api/conversations.ts'
import type { MessageHit } from '../../../inbox/message-search.ts'
import { requireOwnWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'

export const messageRoutes = [
  serve(searchMessages, async ({ query, identity }, { conversations }) => {
    const { limit, search: text, after } = query
    // An agent finds only the messages of its own workspace.
    const workspaceId = query.workspace_id ?? identity.workspaceId
    if (workspaceId !== undefined) requireOwnWorkspace(identity, workspaceId)
    const { hits, next } = await conversations.search({
      text,
      limit,
      ...(workspaceId !== undefined && { workspaceId }),
      ...(after !== undefined && { after }),
    })
    return { messages: hits.map(viewHit), next }
  }),
]

const viewHit = (hit: MessageHit): z.output<typeof messageHitSchema> => ({
  id: hit.messageId,
  task_id: hit.taskId,
  workspace_id: hit.workspaceId,
  n: hit.n,
  conversation_id: hit.conversationId,
  context_id: hit.contextId,
  principal: hit.principal,
  sender: hit.sender,
  sent_at: new Date(hit.atMs).toISOString(),
  found_in: hit.place,
  excerpt: hit.excerpt,
})
