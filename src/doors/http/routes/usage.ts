/** What the turns of a workspace used, over HTTP: in total, by day, by message. A value that is not known is null, never 0. */
import { USAGE_DAYS_MAX, type UsageSum } from '../../../inbox/readers.ts'
import { readQueryNumber } from '../server/query.ts'
import { route } from './route.ts'

const DAYS_DEFAULT = 7
const MESSAGES_DEFAULT = 20
const MESSAGES_MAX = 500

export const usageRoutes = [
  route({
    method: 'get',
    path: '/workspaces/:id/usage',
    access: 'activity.read',
    reach: 'own',
    summary: 'What the turns used, by day and by message',
    success: [200, 'Turns, tokens, cost and duration'],
    async handle({ context }, { usage }) {
      const workspaceId = context.req.param('id')
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
    },
  }),
]

const viewSum = (sum: UsageSum) => ({
  turns: sum.turns,
  unknown_turns: sum.unknownTurns,
  input_tokens: sum.inputTokens,
  output_tokens: sum.outputTokens,
  cost_usd: sum.costUsd,
  duration_ms: sum.durationMs,
})
