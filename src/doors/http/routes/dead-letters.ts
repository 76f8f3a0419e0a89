/** Dead letters over HTTP: what has failed for good in a workspace, to be sent again or let go. */
import { Hono } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import type { DeadLetter, DeadLetters } from '../../../inbox/owners.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import type { HttpAuth } from '../server/auth.ts'
import { allow, type HttpEnv } from '../server/guard.ts'
import { seesConfig } from '../server/reach.ts'

export interface DeadLetterRouteOptions {
  readonly deadLetters: DeadLetters
  readonly workspaces: Workspaces
  readonly auth: HttpAuth
}

export function deadLetterRoutes({ deadLetters, workspaces, auth }: DeadLetterRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  const at = '/workspaces/:id/dead-letters'
  routes.get(at, allow(auth, 'dead-letter.read'), async (context) => {
    const id = context.req.param('id')
    if ((await workspaces.get(id)) === undefined) throw new MoleculeError('not_found', `there is no workspace ${id}`)
    const dead = await deadLetters.list(id)
    const detail = seesConfig(context.get('identity'))
    return context.json({ dead_letters: dead.map((one) => viewDeadLetter(one, detail)) })
  })
  routes.post(`${at}/:message/replay`, allow(auth, 'dead-letter.handle'), async (context) => {
    const { id, message } = context.req.param()
    return context.json({ task_id: await deadLetters.replay(id, message) })
  })
  routes.delete(`${at}/:message`, allow(auth, 'dead-letter.handle'), async (context) => {
    const { id, message } = context.req.param()
    await deadLetters.discard(id, message)
    return context.body(null, 204)
  })
  return routes
}

function viewDeadLetter(dead: DeadLetter, detail: boolean) {
  return {
    id: dead.id,
    task_id: dead.taskId,
    context_id: dead.contextId,
    code: dead.code,
    reason: dead.reason,
    ...(detail && dead.detail !== undefined && { detail: dead.detail }),
    failures: dead.failures,
    losses: dead.losses,
    sender: dead.sender,
    message: dead.message,
    at: new Date(dead.atMs).toISOString(),
  }
}
