/**
 * Tasks and messages by id alone, for a caller that does not know the workspace: the task, and the story of a message.
 * A caller that may not see the task receives `not_found`.
 */
import { listDelegations, readStory as readStoryEndpoint, readTask } from '../../../api/tasks.ts'
import { MoleculeError } from '../../../errors.ts'
import { readStory } from '../../../views/story.ts'
import { readTrees } from '../../../views/trees.ts'
import { markRead } from '../../mark-read.ts'
import { taskScope, taskViewsOf } from '../server/auth.ts'
import { requireWorkspace } from '../server/reach.ts'
import { serve } from './route.ts'

export const taskRoutes = [
  serve(listDelegations, async ({ params, query, identity }, { store, workspaces }) => {
    await requireWorkspace(workspaces, params.id)
    return await readTrees(store, { ...query, workspaceId: params.id, scopeOf: (id) => taskScope(identity, id) })
  }),
  serve(readTask, async ({ context, params: { id }, identity }, { reception }) => {
    for (const view of taskViewsOf(identity)) {
      const task = await reception.task(id, view)
      if (task === undefined) continue
      await markRead(reception, { identity, response: context.env.outgoing }, task)
      return task
    }
    throw new MoleculeError('not_found', `there is no task ${id}`)
  }),
  serve(readStoryEndpoint, ({ params: { id }, query: { after }, identity }, { store }) =>
    readStory(store, { id, after, scopeOf: (workspaceId) => taskScope(identity, workspaceId) }),
  ),
]
