/** What the turns used over HTTP, by workspace and on the whole platform, and what is going on in all workspaces. */
import {
  readOverview as overview,
  readPlatformUsage as platformUsage,
  readWorkspaceUsage as workspaceUsage,
} from '../../../api/usage.ts'
import { readOverview } from '../../../views/overview.ts'
import { readPlatformUsage, readUsage } from '../../../views/usage.ts'
import { serve } from './route.ts'

export const usageRoutes = [
  serve(overview, ({ query }, { store }) => readOverview(store, query)),
  serve(platformUsage, ({ query }, { store }) => readPlatformUsage(store, query.days)),
  serve(workspaceUsage, ({ params, query }, { store }) => readUsage(store, { workspaceId: params.id, ...query })),
]
