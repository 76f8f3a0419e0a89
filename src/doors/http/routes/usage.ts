/** What the turns used over HTTP, by workspace and on the whole platform, and what is going on in all workspaces. */
import type { z } from 'zod'
import {
  readOverview as overview,
  readPlatformUsage as platformUsage,
  type usageSumSchema,
  readWorkspaceUsage as workspaceUsage,
} from '../../../api/usage.ts'
import type { UsageSum } from '../../../inbox/readers.ts'
import { readOverview } from '../../../views/overview.ts'
import { readPlatformUsage, readUsage } from '../../../views/usage.ts'
import { serve } from './route.ts'

export const usageRoutes = [
  serve(overview, ({ query }, { store }) => readOverview(store, query)),
  serve(platformUsage, ({ query }, { store }) => readPlatformUsage(store, query.days)),
  serve(workspaceUsage, ({ params, query }, { store }) => readUsage(store, { workspaceId: params.id, ...query })),
]

export const viewSum = (sum: UsageSum): z.output<typeof usageSumSchema> => ({
  turns: sum.turns,
  unknown_turns: sum.unknownTurns,
  unknown_cost_turns: sum.unknownCostTurns,
  input_tokens: sum.inputTokens,
  output_tokens: sum.outputTokens,
  cost_usd: sum.costUsd,
  duration_ms: sum.durationMs,
})
