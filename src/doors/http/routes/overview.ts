/**
 * What is going on in all workspaces: what each used today and what in it waits for a person, and which workspaces work for
 * which others now.
 */
import { z } from 'zod'
import { readQueryNumber } from '../server/query.ts'
import { route } from './route.ts'
import { viewSum } from './usage.ts'

/** Workspaces of one page: some 20,000 rows are read for them at most. */
const WORKSPACES_LISTED_MAX = 200

const openDelegationsSchema = z.strictObject({
  delegations: z.array(z.strictObject({ from: z.string(), to: z.string(), count: z.number() })),
})

export const overviewRoutes = [
  route({
    method: 'get',
    path: '/delegations/open',
    access: 'dead-letter.read',
    summary: 'Which workspaces work for which others now: pairs of ids with the number of unfinished delegations',
    success: [200, 'The pairs, at most 500, the most delegations first'],
    answer: openDelegationsSchema,
    async handle({ context }, { overview }) {
      const delegations = [...(await overview.openDelegations())]
      return context.json({ delegations } satisfies z.input<typeof openDelegationsSchema>)
    },
  }),
  route({
    method: 'get',
    path: '/overview',
    access: 'dead-letter.read',
    summary: 'What each workspace used today (UTC) and what needs a person; "after" reads the next page',
    success: [200, 'The workspaces, and "next" where there are more'],
    async handle({ context }, { overview }) {
      const limit = readQueryNumber(context, 'limit', { min: 1, max: WORKSPACES_LISTED_MAX }) ?? WORKSPACES_LISTED_MAX
      const after = context.req.query('after')
      const { workspaces, next } = await overview.read({ limit, ...(after !== undefined && { after }) })
      return context.json({
        workspaces: workspaces.map(({ id, deadLetters, questions, today }) => ({
          id,
          dead_letters: deadLetters,
          questions,
          today: viewSum(today),
        })),
        ...(next !== undefined && { next }),
      })
    },
  }),
]
