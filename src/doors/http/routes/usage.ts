/** What a workspace's turns used, over HTTP: in all, by day, by message. What is not known is null, never 0. */
import { Hono } from 'hono'
import { USAGE_DAYS_MAX, type UsageReader, type UsageSum } from '../../../inbox/readers.ts'
import type { HttpAuth } from '../server/auth.ts'
import { allow, type HttpEnv } from '../server/guard.ts'
import { requireOwnWorkspace } from '../server/reach.ts'
import { readQueryNumber } from './activity.ts'

const DAYS_DEFAULT = 7
const MESSAGES_DEFAULT = 20
const MESSAGES_MAX = 500

export interface UsageRouteOptions {
  readonly usage: UsageReader
  readonly auth: HttpAuth
}

export function usageRoutes({ usage, auth }: UsageRouteOptions): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  routes.get('/workspaces/:id/usage', allow(auth, 'activity.read'), async (context) => {
    const workspaceId = context.req.param('id')
    requireOwnWorkspace(context.get('identity'), workspaceId)
    const days = readQueryNumber(context, 'days', { min: 1, max: USAGE_DAYS_MAX }) ?? DAYS_DEFAULT
    const messages = readQueryNumber(context, 'messages', { min: 0, max: MESSAGES_MAX }) ?? MESSAGES_DEFAULT
    const report = await usage.read({ workspaceId, days, messages })
    return context.json({
      total: viewSum(report.total),
      days: report.days.map((each) => ({ day: each.day, ...viewSum(each) })),
      messages: report.messages.map((each) => ({
        message_id: each.messageId,
        task_id: each.taskId,
        ...viewSum(each),
      })),
    })
  })
  return routes
}

const viewSum = (sum: UsageSum) => ({
  turns: sum.turns,
  unknown_turns: sum.unknownTurns,
  input_tokens: sum.inputTokens,
  output_tokens: sum.outputTokens,
  cost_usd: sum.costUsd,
  duration_ms: sum.durationMs,
})
