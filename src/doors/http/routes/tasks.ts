/**
 * Tasks and messages by id alone, for a caller that does not know the workspace: the task, and the story of a message.
 * A caller that may not see the task receives `not_found`.
 */
import { MoleculeError } from '../../../errors.ts'
import type { Story } from '../../../inbox/readers.ts'
import { taskScope, taskViewsOf } from '../server/auth.ts'
import { route } from './route.ts'

export const taskRoutes = [
  route({
    method: 'get',
    path: '/tasks/:id',
    access: 'task.read',
    summary: 'A task by its id alone',
    success: [200, 'The task'],
    async handle({ context, identity }, { reception }) {
      const id = context.req.param('id')
      for (const view of taskViewsOf(identity)) {
        const task = await reception.task(id, view)
        if (task !== undefined) return context.json(task)
      }
      throw new MoleculeError('not_found', `there is no task ${id}`)
    },
  }),
  route({
    method: 'get',
    path: '/messages/:id/story',
    access: 'task.read',
    summary:
      'The story of a message, found by its id, its task id or the id that its sender gave it; "after" reads the next part',
    success: [200, 'The story, and "next" where it goes on'],
    async handle({ context, identity }, { stories }) {
      const id = context.req.param('id')
      const after = context.req.query('after')
      const story = await stories.find({
        id,
        scopeOf: (workspaceId) => taskScope(identity, workspaceId),
        ...(after !== undefined && { after }),
      })
      if (story === undefined) throw new MoleculeError('not_found', `there is no message or task ${id}`)
      return context.json(viewStory(story))
    },
  }),
]

function viewStory({ steps, ...story }: Story) {
  return {
    message_id: story.messageId,
    task_id: story.taskId,
    workspace_id: story.workspaceId,
    context_id: story.contextId,
    sender: story.sender,
    sender_message_id: story.senderMessageId,
    text: story.text,
    task_state: story.taskState,
    steps: steps.map(({ atMs, ...step }) => ({ at: new Date(atMs).toISOString(), ...step })),
    deliveries: story.deliveries,
    ...(story.next !== undefined && { next: story.next }),
  }
}
