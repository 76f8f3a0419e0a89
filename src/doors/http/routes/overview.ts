/**
 * What is going on in all workspaces: what each used today and what in it waits for a person, and which workspaces work for
 * which others now.
 */
import { listOpenDelegations } from '../../../api/tasks.ts'
import { readOverview as overview } from '../../../api/usage.ts'
import { readOpenDelegations, readOverview } from '../../../views/overview.ts'
import { serve } from './route.ts'

export const overviewRoutes = [
  serve(listOpenDelegations, (_call, { store }) => readOpenDelegations(store)),
  serve(overview, ({ query }, { store }) => readOverview(store, query)),
]
