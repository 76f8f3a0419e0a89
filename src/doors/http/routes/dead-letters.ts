/** Dead letters over HTTP: list the messages of a workspace that have failed for good, replay one, discard one. */
import type { z } from 'zod'
import type { Frozen } from '../../../api/endpoint.ts'
import { type deadLetterSchema, discardDeadLetter, listDeadLetters, replayDeadLetter } from '../../../api/needs.ts'
import type { DeadLetter } from '../../../inbox/owners.ts'
import { requireWorkspace, seesConfig } from '../server/reach.ts'
import { serve } from './route.ts'

export const deadLetterRoutes = [
  serve(listDeadLetters, async ({ params, query, identity }, { deadLetters, workspaces }) => {
    const { id } = await requireWorkspace(workspaces, params.id)
    const { rows, next } = await deadLetters.list(id, query.after)
    const withDetail = seesConfig(identity)
    return { dead_letters: rows.map((letter) => viewDeadLetter(letter, withDetail)), next }
  }),
  serve(replayDeadLetter, async ({ params }, { deadLetters }) => ({
    task_id: await deadLetters.replay(params.id, params.message),
  })),
  serve(discardDeadLetter, async ({ params }, { deadLetters }) => {
    await deadLetters.discard(params.id, params.message)
  }),
]

const viewDeadLetter = (dead: DeadLetter, withDetail: boolean): Frozen<z.output<typeof deadLetterSchema>> => ({
  id: dead.id,
  task_id: dead.taskId,
  context_id: dead.contextId,
  code: dead.code,
  reason: dead.reason,
  detail: withDetail ? dead.detail : undefined,
  failures: dead.failures,
  losses: dead.losses,
  sender: dead.sender,
  message: dead.message,
  at: new Date(dead.atMs).toISOString(),
})
