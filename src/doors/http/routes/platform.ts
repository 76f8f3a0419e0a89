/**
 * The platform itself: health, readiness, version, API document, metrics, and its machine: the agents that it can run, and
 * the folders from which an admin picks the working folder of a workspace.
 */
import {
  listAgents,
  listFolders,
  readApiDocument,
  readHealth,
  readMetrics,
  readReadiness,
  readVersion,
} from '../../../api/platform.ts'
import { readLoad } from '../../../views/load.ts'
import { metricsText } from '../server/metrics-text.ts'
import { readFolders } from '../server/read-folders.ts'
import { type FoundAgent, serve } from './route.ts'

export const platformRoutes = [
  serve(readHealth, (_call, { version }) => ({ status: 'ok', name: 'molecule', version, pid: process.pid })),
  serve(readReadiness, async ({ context }, { unready }) => {
    const reason = await unready()
    if (reason === undefined) return { status: 'ready' }
    context.status(503)
    return { status: 'not_ready', reason }
  }),
  serve(readVersion, (_call, { version, addresses: { publicUrl } }) => ({
    name: 'molecule',
    version,
    node: process.version,
    a2a: ['1.0', '0.3'],
    public_url: publicUrl,
  })),
  serve(readApiDocument, ({ context }, { openApi, addresses }) =>
    context.body(openApi(addresses.baseUrl(context.env.incoming)), 200, { 'Content-Type': 'application/json' }),
  ),
  serve(readMetrics, async ({ context }, { metrics, store }) => {
    const text = metricsText(metrics, await readLoad(store))
    return context.body(text, 200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' })
  }),
  serve(listAgents, async (_call, { agents }) => ({ agents: (await agents.list()).map(agentAnswer) })),
  serve(listFolders, ({ query }) => readFolders(query.path)),
]

const agentAnswer = ({ backend, program, path, version, problem, remedy, pays, ...agent }: FoundAgent) => ({
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
