/** The memory of a workspace over HTTP. A viewer does not see it. */
import type { z } from 'zod'
import { commitMemory, forgetMemory, listMemories, type memorySchema } from '../../../api/memories.ts'
import { MoleculeError } from '../../../errors.ts'
import type { Memory } from '../../../workspaces/memories.ts'
import { serve } from './route.ts'

export const memoryRoutes = [
  serve(commitMemory, async ({ params, identity, body }, { memories }) => {
    const namespace = await memories.resolveNamespace(params.id, body.namespace)
    const writtenBy = identity.workspaceId ?? identity.name
    return viewMemory(await memories.commit({ ...body, namespace, writtenBy }))
  }),
  serve(listMemories, async ({ params, query: { query, limit, cursor, ...given } }, { memories }) => {
    const namespace = await memories.resolveNamespace(params.id, given.namespace)
    if (query !== undefined) {
      return { memories: (await memories.search(namespace, query, limit)).map(viewMemory), next: null }
    }
    const page = await memories.list(namespace, { limit, cursor })
    return { memories: page.memories.map(viewMemory), next: page.nextCursor ?? null }
  }),
  serve(forgetMemory, async ({ params: { id, memory }, query }, { memories }) => {
    const namespace = await memories.resolveNamespace(id, query.namespace)
    if (await memories.forget(namespace, memory)) return
    throw new MoleculeError('not_found', `${namespace} has no memory ${memory}`, { details: { memory } })
  }),
]

const viewMemory = (memory: Memory): z.output<typeof memorySchema> => ({
  id: memory.id,
  namespace: memory.namespace,
  kind: memory.kind,
  text: memory.text,
  written_by: memory.writtenBy,
  created_at: new Date(memory.createdAtMs).toISOString(),
  expires_at: memory.expiresAtMs === undefined ? null : new Date(memory.expiresAtMs).toISOString(),
})
