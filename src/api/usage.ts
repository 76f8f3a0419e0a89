/**
 * What turns used: in total, by day, by conversation, by message and by workspace. A value that is not known is null, never
 * 0. With it the overview of all workspaces.
 */
import { z } from 'zod'
import { USAGE_DAYS_MAX } from '../inbox/rows/turn-usage.ts'
import { endpoint } from './endpoint.ts'

/** Workspaces of one page of the overview: some 20,000 rows are read for them at most. */
const OVERVIEW_WORKSPACES_MAX = 200

export const usageSumSchema = z.strictObject({
  turns: z.number(),
  unknown_turns: z.number().describe('Turns that did not report all tokens.'),
  unknown_cost_turns: z.number().describe('Turns that did not report their cost.'),
  input_tokens: z.number().nullable(),
  output_tokens: z.number().nullable(),
  cost_usd: z.number().nullable(),
  duration_ms: z.number().nullable(),
})

const usageDaysSchema = z
  .array(usageSumSchema.extend({ day: z.string() }))
  .describe('UTC days that had turns, the latest first.')

export const readPlatformUsage = endpoint('GET /usage', {
  access: 'dead-letter.read',
  summary: 'What the turns of all workspaces used, by day and by workspace; "days" is 30 by default',
  query: z.object({ days: z.int().min(1).max(USAGE_DAYS_MAX).default(30) }),
  success: [200, 'Turns, tokens, cost and duration; the name is null when the workspace is deleted'],
  answer: z.strictObject({
    total: usageSumSchema,
    days: usageDaysSchema,
    workspaces: z.array(usageSumSchema.extend({ workspace_id: z.string(), name: z.string().nullable() })),
  }),
})

export const readWorkspaceUsage = endpoint('GET /workspaces/{id}/usage', {
  access: 'activity.read',
  reach: 'own',
  summary: 'What the turns used, by day, by conversation and by message; "days" is 7 by default',
  query: z.object({
    days: z.int().min(1).max(USAGE_DAYS_MAX).default(7),
    messages: z.int().min(0).max(500).default(20).describe('How many of the latest messages.'),
  }),
  success: [200, 'Turns, tokens, cost and duration'],
  answer: z.strictObject({
    total: usageSumSchema,
    days: usageDaysSchema,
    conversations: z.array(usageSumSchema.extend({ conversation_id: z.string(), context_id: z.string() })),
    messages: z.array(usageSumSchema.extend({ message_id: z.string(), task_id: z.string() })),
  }),
})

export const readOverview = endpoint('GET /overview', {
  access: 'dead-letter.read',
  summary: 'What each workspace used today (UTC) and what needs a person; "after" reads the next page',
  query: z.object({
    limit: z.int().min(1).max(OVERVIEW_WORKSPACES_MAX).default(OVERVIEW_WORKSPACES_MAX),
    after: z.string().optional(),
  }),
  success: [200, 'The workspaces, and "next" where there are more'],
  answer: z.strictObject({
    workspaces: z.array(
      z.strictObject({
        id: z.string(),
        dead_letters: z.number().describe('Those that no person has handled.'),
        questions: z.number().describe('Tasks of people that ask for an answer or a log-in, among the last 100 tasks.'),
        today: usageSumSchema,
      }),
    ),
    next: z.string().optional(),
  }),
})

export const usageEndpoints = [readPlatformUsage, readWorkspaceUsage, readOverview] as const
