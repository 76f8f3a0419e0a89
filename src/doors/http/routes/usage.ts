/** What the turns of a workspace used, over HTTP: in total, by day, by message. A value that is not known is null, never 0. */
import { z } from 'zod'
import { USAGE_DAYS_MAX, type UsageSum } from '../../../inbox/readers.ts'
import { readQueryNumber } from '../server/query.ts'
import { route } from './route.ts'

const DAYS_DEFAULT = 7
const MESSAGES_DEFAULT = 20
const MESSAGES_MAX = 500

export const usageSchema = z.strictObject({
  turns: z.number(),
  unknown_turns: z.number().describe('Turns that did not report all tokens.'),
  unknown_cost_turns: z.number().describe('Turns that did not report their cost.'),
  input_tokens: z.number().nullable(),
  output_tokens: z.number().nullable(),
  cost_usd: z.number().nullable(),
  duration_ms: z.number().nullable(),
})

const days = z.array(usageSchema.extend({ day: z.string() })).describe('UTC days that had turns, the latest first.')

const workspaceUsageSchema = z.strictObject({
  total: usageSchema,
  days,
  conversations: z.array(usageSchema.extend({ conversation_id: z.string(), context_id: z.string() })),
  messages: z.array(usageSchema.extend({ message_id: z.string(), task_id: z.string() })),
})

const platformUsageSchema = z.strictObject({
  total: usageSchema,
  days,
  workspaces: z.array(usageSchema.extend({ workspace_id: z.string(), name: z.string().nullable() })),
})

const PLATFORM_DAYS_DEFAULT = 30

export const usageRoutes = [
  route({
    method: 'get',
    path: '/usage',
    access: 'dead-letter.read',
    summary: 'What the turns of all workspaces used, by day and by workspace; "days" is 30 by default',
    success: [200, 'Turns, tokens, cost and duration; the name is null when the workspace is deleted'],
    answer: platformUsageSchema,
    async handle({ context }, { usage }) {
      const wanted = readQueryNumber(context, 'days', { min: 1, max: USAGE_DAYS_MAX }) ?? PLATFORM_DAYS_DEFAULT
      const report = await usage.readAll(wanted)
      return context.json({
        total: viewSum(report.total),
        days: report.days.map((each) => ({ day: each.day, ...viewSum(each) })),
        workspaces: report.workspaces.map((each) => ({
          workspace_id: each.workspaceId,
          name: each.name ?? null,
          ...viewSum(each),
        })),
      } satisfies z.input<typeof platformUsageSchema>)
    },
  }),
  route({
    method: 'get',
    path: '/workspaces/:id/usage',
    access: 'activity.read',
    reach: 'own',
    summary: 'What the turns used, by day, by conversation and by message; "days" is 7 by default',
    success: [200, 'Turns, tokens, cost and duration'],
    answer: workspaceUsageSchema,
    async handle({ context }, { usage }) {
      const workspaceId = context.req.param('id')
      const wanted = readQueryNumber(context, 'days', { min: 1, max: USAGE_DAYS_MAX }) ?? DAYS_DEFAULT
      const messages = readQueryNumber(context, 'messages', { min: 0, max: MESSAGES_MAX }) ?? MESSAGES_DEFAULT
      const report = await usage.read({ workspaceId, days: wanted, messages })
      return context.json({
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
      })
    },
  }),
]

export const viewSum = (sum: UsageSum) => ({
  turns: sum.turns,
  unknown_turns: sum.unknownTurns,
  unknown_cost_turns: sum.unknownCostTurns,
  input_tokens: sum.inputTokens,
  output_tokens: sum.outputTokens,
  cost_usd: sum.costUsd,
  duration_ms: sum.durationMs,
})
