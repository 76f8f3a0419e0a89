/** `GET /messages`: a text in every stored message and answer, with the place of each message. */
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import type { MessageHit } from '../../../inbox/message-search.ts'
import { readQueryNumber } from '../server/query.ts'
import { requireOwnWorkspace } from '../server/reach.ts'
import { readSearch, senderSchema } from './conversations.ts'
import { route } from './route.ts'

const HITS_MAX = 50
const HITS_DEFAULT = 20

const hitsSchema = z.strictObject({
  messages: z.array(
    z.strictObject({
      id: z.string(),
      task_id: z.string(),
      workspace_id: z.string(),
      conversation_id: z.string(),
      context_id: z.string(),
      principal: z.string(),
      n: z.number().describe('Its number in the conversation, from 1.'),
      sender: senderSchema,
      sent_at: z.string(),
      found_in: z.enum(['message', 'answer']),
      excerpt: z.string().describe('The words around the text.'),
    }),
  ),
  next: z.string().optional().describe('There may be more, also where this page is empty.'),
})

export const messageRoutes = [
  route({
    method: 'get',
    path: '/messages',
    access: 'activity.read',
    summary:
      'The messages that contain "search", or whose answers do, the newest first; "workspace_id", "limit" and "after" read a part',
    success: [200, 'The messages, and "next" where there may be more'],
    answer: hitsSchema,
    async handle({ context, identity }, { conversations }) {
      const limit = readQueryNumber(context, 'limit', { min: 1, max: HITS_MAX }) ?? HITS_DEFAULT
      const text = readSearch(context.req.query('search'))
      if (text === undefined) throw invalid('search', 'search must be the text that is looked for')
      // An agent finds only the messages of its own workspace.
      const workspaceId = context.req.query('workspace_id') ?? identity.workspaceId
      if (workspaceId !== undefined) requireOwnWorkspace(identity, workspaceId)
      const after = context.req.query('after')
      if (after !== undefined && !/^[\w-]{1,64}$/.test(after)) {
        throw invalid('after', 'after must be the "next" of an earlier page')
      }
      const { hits, next } = await conversations.search({
        text,
        limit,
        ...(workspaceId !== undefined && { workspaceId }),
        ...(after !== undefined && { after }),
      })
      const answer = { messages: hits.map(viewHit), ...(next !== undefined && { next }) }
      return context.json(answer satisfies z.input<typeof hitsSchema>)
    },
  }),
]

const invalid = (path: string, text: string) => new MoleculeError('invalid_request', text, { details: { path } })

const viewHit = (hit: MessageHit) => ({
  id: hit.messageId,
  task_id: hit.taskId,
  workspace_id: hit.workspaceId,
  n: hit.n,
  conversation_id: hit.conversationId,
  context_id: hit.contextId,
  principal: hit.principal,
  sender: { ...hit.sender },
  sent_at: new Date(hit.atMs).toISOString(),
  found_in: hit.place,
  excerpt: hit.excerpt,
})
