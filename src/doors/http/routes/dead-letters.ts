/** Dead letters over HTTP: list the messages of a workspace that have failed for good, replay one, discard one. */
import type { DeadLetter } from '../../../inbox/owners.ts'
import { requireWorkspace, seesConfig } from '../server/reach.ts'
import { route } from './route.ts'

export const deadLetterRoutes = [
  route({
    method: 'get',
    path: '/workspaces/:id/dead-letters',
    access: 'dead-letter.read',
    summary: 'The messages that have failed for good, the newest first; "after" reads the next page',
    success: [200, 'The dead letters, and "next" where there are more'],
    async handle({ context, identity }, { deadLetters, workspaces }) {
      const { id } = await requireWorkspace(workspaces, context.req.param('id'))
      const { rows, next } = await deadLetters.list(id, context.req.query('after'))
      const withDetail = seesConfig(identity)
      return context.json({
        dead_letters: rows.map((letter) => viewDeadLetter(letter, withDetail)),
        ...(next !== undefined && { next }),
      })
    },
  }),
  route({
    method: 'post',
    path: '/workspaces/:id/dead-letters/:message/replay',
    access: 'dead-letter.handle',
    summary: 'Send a dead letter again',
    success: [200, 'The new task'],
    async handle({ context }, { deadLetters }) {
      const { id, message } = context.req.param()
      return context.json({ task_id: await deadLetters.replay(id, message) })
    },
  }),
  route({
    method: 'delete',
    path: '/workspaces/:id/dead-letters/:message',
    access: 'dead-letter.handle',
    summary: 'Discard a dead letter',
    success: [204, 'Done'],
    async handle({ context }, { deadLetters }) {
      const { id, message } = context.req.param()
      await deadLetters.discard(id, message)
      return context.body(null, 204)
    },
  }),
]

function viewDeadLetter(dead: DeadLetter, withDetail: boolean) {
  return {
    id: dead.id,
    task_id: dead.taskId,
    context_id: dead.contextId,
    code: dead.code,
    reason: dead.reason,
    ...(withDetail && dead.detail !== undefined && { detail: dead.detail }),
    failures: dead.failures,
    losses: dead.losses,
    sender: dead.sender,
    message: dead.message,
    at: new Date(dead.atMs).toISOString(),
  }
}
