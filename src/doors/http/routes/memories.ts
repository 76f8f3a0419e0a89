/**
 * The memory of a workspace over HTTP. The agent of the workspace uses it with its own token; people with the role member
 * read and change it too. A viewer does not see it.
 */
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import {
  MEMORIES_PAGE_MAX,
  MEMORY_CHARACTERS_MAX,
  type Memory,
  QUERY_CHARACTERS_MAX,
} from '../../../workspaces/memories.ts'
import { readQueryNumber } from '../server/query.ts'
import { route } from './route.ts'

const LIMIT_DEFAULT = 20
const NAMESPACE_CHARACTERS_MAX = 100

const memorySchema = z.strictObject({
  text: z.string().trim().min(1).max(MEMORY_CHARACTERS_MAX),
  namespace: z.string().max(NAMESPACE_CHARACTERS_MAX).default('workspace'),
  kind: z.enum(['memory', 'summary']).default('memory'),
})

export const memoryRoutes = [
  route({
    method: 'post',
    path: '/workspaces/:id/memories',
    access: 'memory.write',
    reach: 'own',
    body: { schema: memorySchema, name: 'a memory' },
    summary: 'Remember a text; a summary is forgotten after 30 days',
    success: [201, 'The memory; the same text is one memory'],
    async handle({ context, identity, body }, { memories }) {
      const namespace = await memories.resolveNamespace(context.req.param('id'), body.namespace)
      const writtenBy = identity.workspaceId ?? identity.name
      return context.json(viewMemory(await memories.commit({ ...body, namespace, writtenBy })), 201)
    },
  }),
  route({
    method: 'get',
    path: '/workspaces/:id/memories',
    access: 'memory.read',
    reach: 'own',
    summary: 'The memories that match `query`, the best first; without it all of them, the newest first',
    success: [200, 'The memories; `next` is the cursor of the next page'],
    async handle({ context }, { memories }) {
      const { query, namespace: given = 'workspace', cursor } = context.req.query()
      const limit = readQueryNumber(context, 'limit', { min: 1, max: MEMORIES_PAGE_MAX }) ?? LIMIT_DEFAULT
      const namespace = await memories.resolveNamespace(context.req.param('id'), given)
      if (query === undefined) {
        const page = await memories.list(namespace, { limit, cursor })
        return context.json({ memories: page.memories.map(viewMemory), next: page.nextCursor ?? null })
      }
      if (query.length > QUERY_CHARACTERS_MAX) throw tooLong()
      return context.json({ memories: (await memories.search(namespace, query, limit)).map(viewMemory), next: null })
    },
  }),
  route({
    method: 'delete',
    path: '/workspaces/:id/memories/:memory',
    access: 'memory.write',
    reach: 'own',
    summary: 'Forget a memory',
    success: [204, 'It is forgotten'],
    async handle({ context }, { memories }) {
      const { namespace: given = 'workspace' } = context.req.query()
      const namespace = await memories.resolveNamespace(context.req.param('id'), given)
      const memoryId = context.req.param('memory')
      if (await memories.forget(namespace, memoryId)) return context.body(null, 204)
      throw new MoleculeError('not_found', `${namespace} has no memory ${memoryId}`, { details: { memory: memoryId } })
    },
  }),
]

const tooLong = () =>
  new MoleculeError('invalid_request', `query must have at most ${QUERY_CHARACTERS_MAX} characters`, {
    details: { path: 'query' },
  })

const viewMemory = (memory: Memory) => ({
  id: memory.id,
  namespace: memory.namespace,
  kind: memory.kind,
  text: memory.text,
  written_by: memory.writtenBy,
  created_at: new Date(memory.createdAtMs).toISOString(),
  expires_at: memory.expiresAtMs === undefined ? null : new Date(memory.expiresAtMs).toISOString(),
})
