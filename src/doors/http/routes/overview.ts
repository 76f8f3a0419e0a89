/**
 * What is going on in all workspaces: what each used today and what in it waits for a person, and which workspaces work for
 * which others now.
 */
import { listOpenDelegations } from '../../../api/tasks.ts'
import { readOverview } from '../../../api/usage.ts'
import { serve } from './route.ts'
import { viewSum } from './usage.ts'

export const overviewRoutes = [
  serve(listOpenDelegations, async (_call, { overview }) => ({ delegations: await overview.openDelegations() })),
  serve(readOverview, async ({ query: { limit, after } }, { overview }) => {
    const { workspaces, next } = await overview.read({ limit, ...(after !== undefined && { after }) })
    return {
      workspaces: workspaces.map(({ id, deadLetters, questions, today }) => ({
        id,
        dead_letters: deadLetters,
        questions,
        today: viewSum(today),
      })),
      next,
    }
  }),
]
