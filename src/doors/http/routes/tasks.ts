/**
 * Tasks and messages by their id alone, for whoever does not know the workspace: a task as it is, and the story of a
 * message. Both are seen by whoever sees the task (`taskScope`); for everybody else they do not exist.
 */
import { Hono } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import type { Reception, TaskView } from '../../../inbox/inbox.ts'
import type { Stories, Story } from '../../../inbox/readers.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { type HttpAuth, taskScope } from '../server/auth.ts'
import { allow, type HttpEnv } from '../server/guard.ts'

export interface TaskRouteOptions {
  readonly reception: Reception
  readonly stories: Stories
  readonly auth: HttpAuth
}

export function taskRoutes({ reception, stories, auth }: TaskRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.get('/tasks/:id', allow(auth, 'task.read'), async (context) => {
    const id = context.req.param('id')
    for (const view of viewsOf(context.get('identity'))) {
      const task = await reception.task(id, view)
      if (task !== undefined) return context.json(task)
    }
    throw new MoleculeError('not_found', `there is no task ${id}`)
  })
  routes.get('/messages/:id/story', allow(auth, 'task.read'), async (context) => {
    const id = context.req.param('id')
    const identity = context.get('identity')
    const story = await stories.find({ id, scopeOf: (workspaceId) => taskScope(identity, workspaceId) })
    if (story === undefined) throw new MoleculeError('not_found', `there is no message or task ${id}`)
    return context.json(viewStory(story))
  })
  return routes
}

/** The ways in which this caller may see a task: what it sent itself, and for a workspace also what was sent to it. */
function viewsOf(identity: Identity): readonly TaskView[] {
  const { workspaceId: own } = identity
  const sent = taskScope(identity, '')
  if (own === undefined) return [sent]
  const received = taskScope(identity, own)
  return received.principal === undefined ? [sent, { ...received, workspaceId: own }] : [sent]
}

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
  }
}
