/** `GET /agents`: the agents that Molecule knows, and which of them this machine can run: for the page and for programs. */
import { listAgents } from '../../../api/platform.ts'
import { type FoundAgent, serve } from './route.ts'

export const agentRoutes = [
  serve(listAgents, async (_call, { agents }) => ({ agents: (await agents.list()).map(viewAgent) })),
]

const viewAgent = ({ backend, program, path, version, problem, remedy, pays, ...agent }: FoundAgent) => ({
  backend,
  program,
  installed: path !== undefined,
  path,
  version,
  problem,
  logged_in: agent.isLoggedIn,
  pays,
  remedy,
  warm: agent.isKeptWarm,
})
