/** What the turns of a workspace used, over HTTP: in total, by day, by message. */
import type { z } from 'zod'
import { readPlatformUsage, readWorkspaceUsage, type usageSumSchema } from '../../../api/usage.ts'
import type { UsageSum } from '../../../inbox/readers.ts'
import { serve } from './route.ts'

export const usageRoutes = [
  serve(readPlatformUsage, async ({ query }, { usage }) => {
    const report = await usage.readAll(query.days)
    return {
      total: viewSum(report.total),
      days: report.days.map((each) => ({ day: each.day, ...viewSum(each) })),
      workspaces: report.workspaces.map((each) => ({
        workspace_id: each.workspaceId,
        name: each.name ?? null,
        ...viewSum(each),
      })),
    }
  }),
  serve(readWorkspaceUsage, async ({ params, query }, { usage }) => {
    const report = await usage.read({ workspaceId: params.id, ...query })
    return {
      total: viewSum(report.total),
      days: report.days.map((each) => ({ day: each.day, ...viewSum(each) })),
      conversations: report.conversations.map((each) => ({
        conversation_id: each.conversationId,
        context_id: each.contextId,
        ...viewSum(each),
      })),
      messages: report.messages.map((each) => ({
        message_id: each.messageId,
        task_id: each.taskId,
        ...viewSum(each),
      })),
    }
  }),
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
