/** What the turns of a workspace used, over HTTP: in total, by day, by message. */
import type { z } from 'zod'
import {
  readPlatformUsage as platformUsage,
  type usageSumSchema,
  readWorkspaceUsage as workspaceUsage,
} from '../../../api/usage.ts'
import type { UsageSum } from '../../../inbox/readers.ts'
import { readPlatformUsage, readUsage } from '../../../views/usage.ts'
import { serve } from './route.ts'

export const usageRoutes = [
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
