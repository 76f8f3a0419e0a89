/** The memory of a workspace. Its agent uses it with its own token; people with the role member read and change it too. */
import { z } from 'zod'
import { MEMORIES_PAGE_MAX, MEMORY_CHARACTERS_MAX, QUERY_CHARACTERS_MAX } from '../workspaces/memories.ts'
import { endpoint, nothing } from './endpoint.ts'

const MEMORIES_LISTED = 20
export const NAMESPACE_CHARACTERS_MAX = 100

const kindSchema = z.enum(['memory', 'summary'])

const memorySchema = z.strictObject({
  id: z.string(),
  namespace: z.string().describe('In full: "workspace:<id>" or "team:<id>".'),
  kind: kindSchema,
  text: z.string(),
  written_by: z.string().describe('The id of a workspace, or the name of the token of a person.'),
  created_at: z.string(),
  expires_at: z.string().nullable(),
})

export const commitMemory = endpoint('POST /workspaces/{id}/memories', {
  access: 'memory.write',
  reach: 'own',
  body: {
    schema: z.strictObject({
      text: z.string().trim().min(1).max(MEMORY_CHARACTERS_MAX),
      namespace: z.string().max(NAMESPACE_CHARACTERS_MAX).default('workspace'),
      kind: kindSchema.default('memory'),
    }),
    name: 'a memory',
  },
  summary: 'Remember a text; a summary is forgotten after 30 days',
  success: [201, 'The memory; the same text is one memory'],
  answer: memorySchema,
})

const namespaceSchema = z.string().default('workspace').describe('"workspace", "team", or one of them in full.')

export const listMemories = endpoint('GET /workspaces/{id}/memories', {
  access: 'memory.read',
  reach: 'own',
  summary: 'The memories that match `query`, the best first; without it all of them, the newest first',
  query: z.object({
    query: z.string().max(QUERY_CHARACTERS_MAX, `must have at most ${QUERY_CHARACTERS_MAX} characters`).optional(),
    namespace: namespaceSchema,
    limit: z.int().min(1).max(MEMORIES_PAGE_MAX).default(MEMORIES_LISTED),
    cursor: z.string().optional(),
  }),
  success: [200, 'The memories; `next` is the cursor of the next page'],
  answer: z.strictObject({
    memories: z.array(memorySchema),
    next: z.string().nullable().describe('Null on the last page, and always with `query`.'),
  }),
})

export const forgetMemory = endpoint('DELETE /workspaces/{id}/memories/{memory}', {
  access: 'memory.write',
  reach: 'own',
  summary: 'Forget a memory',
  query: z.object({ namespace: namespaceSchema }),
  success: [204, 'It is forgotten'],
  answer: nothing,
})

export const memoryEndpoints = [commitMemory, listMemories, forgetMemory] as const
