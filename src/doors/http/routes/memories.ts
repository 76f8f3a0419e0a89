/** The memory of a workspace over HTTP. A viewer does not see it. */
import { commitMemory, forgetMemory, listMemories } from '../../../api/memories.ts'
import { MoleculeError } from '../../../errors.ts'
import { readMemories, readMemory, searchMemories } from '../../../views/memories.ts'
import { serve } from './route.ts'

export const memoryRoutes = [
  serve(commitMemory, async ({ params, identity, body }, { memories, store }) => {
    const namespace = await memories.resolveNamespace(params.id, body.namespace)
    const writtenBy = identity.workspaceId ?? identity.name
    return await readMemory(store, namespace, await memories.commit({ ...body, namespace, writtenBy }))
  }),
  serve(listMemories, async ({ params, query: { query, limit, cursor, ...given } }, { memories, store }) => {
    const namespace = await memories.resolveNamespace(params.id, given.namespace)
    if (query === undefined) return await readMemories(store, { namespace, limit, cursor })
    return { memories: await searchMemories(store, { namespace, query, limit }), next: null }
  }),
  serve(forgetMemory, async ({ params: { id, memory }, query }, { memories }) => {
    const namespace = await memories.resolveNamespace(id, query.namespace)
    if (await memories.forget(namespace, memory)) return
    throw new MoleculeError('not_found', `${namespace} has no memory ${memory}`, { details: { memory } })
  }),
]
