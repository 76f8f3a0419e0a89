/** `GET /agents`: the agents that Molecule knows, and which of them this machine can run: for the page and for programs. */
import { z } from 'zod'
import { type FoundAgent, route } from './route.ts'

const foundAgentsSchema = z.strictObject({
  agents: z.array(
    z.strictObject({
      backend: z.string(),
      program: z.string(),
      installed: z.boolean(),
      path: z.string().optional(),
      version: z.string().optional(),
      problem: z.string().optional(),
      logged_in: z.boolean(),
      pays: z.string().optional().describe('What pays for its model, such as a variable or a log-in.'),
      remedy: z.string().optional(),
      warm: z.boolean(),
    }),
  ),
})

export const agentRoutes = [
  route({
    method: 'get',
    path: '/agents',
    access: 'agent.read',
    summary: 'The agents that Molecule knows: installed, version, logged in, and what to do where something is missing',
    success: [200, 'The agents; one without "version" is still asked for it'],
    answer: foundAgentsSchema,
    async handle({ context }, { agents }) {
      const found = await agents.list()
      return context.json({ agents: found.map(viewAgent) } satisfies z.input<typeof foundAgentsSchema>)
    },
  }),
]

const viewAgent = ({ backend, program, path, version, problem, remedy, pays, ...agent }: FoundAgent) => ({
  backend,
  program,
  installed: path !== undefined,
  logged_in: agent.isLoggedIn,
  warm: agent.isKeptWarm,
  ...(pays !== undefined && { pays }),
  ...(path !== undefined && { path }),
  ...(version !== undefined && { version }),
  ...(problem !== undefined && { problem }),
  ...(remedy !== undefined && { remedy }),
})
