/**
 * Tasks and messages by id alone, for a caller that does not know the workspace: the task, an artifact of it as a file, the
 * story of a message. Who may see the task over A2A may see its artifacts; other callers receive `not_found`.
 */
import {
  listDelegations,
  listOpenDelegations,
  readArtifact,
  readStory as readStoryEndpoint,
  readTask,
} from '../../../api/tasks.ts'
import { MoleculeError } from '../../../errors.ts'
import type { Reception } from '../../../inbox/reception.ts'
import type { Artifact } from '../../../protocol/a2a.ts'
import { readOpenDelegations } from '../../../views/overview.ts'
import { readStory } from '../../../views/story/story.ts'
import { readTrees } from '../../../views/trees.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { taskScope, taskViewsOf } from '../server/auth.ts'
import { sendArtifact } from '../server/download.ts'
import { requireWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'

export const taskRoutes = [
  serve(listOpenDelegations, (_call, { store }) => readOpenDelegations(store)),
  serve(listDelegations, async ({ params, query, identity }, { store, workspaces }) => {
    await requireWorkspace(workspaces, params.id)
    return await readTrees(store, { ...query, workspaceId: params.id, scopeOf: (id) => taskScope(identity, id) })
  }),
  serve(readTask, async ({ context, params: { id }, identity }, { reception }) => {
    for (const view of taskViewsOf(identity)) {
      const task = await reception.task(id, view)
      if (task === undefined) continue
      await reception.markRead(task, identity, context.env.outgoing)
      return task
    }
    throw new MoleculeError('not_found', `there is no task ${id}`)
  }),
  serve(readArtifact, async ({ context, params, query, identity }, { reception }) =>
    sendArtifact(context, await findArtifact(reception, identity, params), query.part),
  ),
  serve(readStoryEndpoint, ({ params: { id }, query: { after }, identity }, { store }) =>
    readStory(store, { id, after, scopeOf: (workspaceId) => taskScope(identity, workspaceId) }),
  ),
]

async function findArtifact(
  reception: Reception,
  identity: Identity,
  { id, artifact: artifactId }: { readonly id: string; readonly artifact: string },
): Promise<Artifact> {
  let problem = `there is no task ${id}`
  for (const view of taskViewsOf(identity)) {
    const artifact = await reception.artifact(id, artifactId, view)
    if (artifact !== undefined) return artifact
    const task = await reception.task(id, { ...view, historyLength: 0, artifacts: false })
    if (task !== undefined) problem = `the task has no artifact ${artifactId}`
  }
  throw new MoleculeError('not_found', problem)
}
