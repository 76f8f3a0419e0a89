/**
 * What needs a person: permissions that agents ask for, budgets that are spent, messages that failed for good, answers that
 * may not have arrived, replies that were changed on the disk. `GET /needs-you` is the one list of all.
 */
import { z } from 'zod'
import { COST_USD_MAX } from '../protocol/delegation.ts'
import { endpoint, nothing } from './endpoint.ts'
import { messageSchema, senderSchema } from './message.ts'
import { rulePatternShape, ruleSchema } from './rules.ts'

const PATTERN_CHARACTERS_MAX = 4096

const ruleChoiceSchema = z.strictObject({ ...rulePatternShape, sentence: z.string() })

const pendingAskSchema = z.strictObject({
  id: z.string(),
  workspace_id: z.string(),
  task_id: z.string(),
  tool: z.string(),
  subject: z.string().describe('Exactly what the agent would do.'),
  asked_at: z.string(),
  expires_in: z.number().describe('In seconds; then it is denied.'),
  would_cover: ruleChoiceSchema.optional().describe('The rule that "always" makes.'),
  would_cover_more: ruleChoiceSchema.optional().describe('A wider rule: "always" with its pattern.'),
})

const budgetAskSchema = z.strictObject({
  id: z.string(),
  workspace_id: z.string(),
  task_id: z.string().nullable().describe('Null for the budget of a day.'),
  max_cost_usd: z.number(),
  cost_usd: z.number(),
  unknown_turns: z.number().describe('Turns that count and whose cost is not known.'),
  waiting: z.number().describe('Messages that wait for it.'),
  text: z.string(),
  asked_at: z.string(),
})

const actionSchema = z.strictObject({
  name: z.string().describe('Also the command: molecule pending <name> <id>.'),
  label: z.string(),
  method: z.enum(['POST', 'PATCH', 'DELETE']),
  path: z.string(),
  body: z.record(z.string(), z.unknown()).optional().describe('Absent where the call needs none, or needs your text.'),
})

const needSchema = z.strictObject({
  kind: z.enum([
    'permission',
    'question',
    'dead_letter',
    'delivery',
    'damaged_reply',
    'login',
    'workspace',
    'budget',
    'turn_limit',
    'pairing',
    'schedule',
  ]),
  id: z.string(),
  workspace_id: z.string().describe('Empty for a pairing with a bot that has no workspace of its own.'),
  workspace_name: z.string().nullable().describe('Null when the workspace is deleted.'),
  since: z.string().nullable(),
  reason: z.string(),
  expires_at: z.string().optional(),
  task_id: z.string().optional(),
  context_id: z.string().optional(),
  text: z
    .string()
    .optional()
    .describe('The question, the message that failed, or the answer that may not have arrived.'),
  to: z.string().optional().describe('Of a delivery: the door and the channel. Of a pairing: the bot.'),
  permission: pendingAskSchema.optional(),
  budget: budgetAskSchema.optional(),
  actions: z.array(actionSchema),
})

const listQuery = z.object({ workspace_id: z.string().optional(), after: z.string().optional() })

export const listNeeds = endpoint('GET /needs-you', {
  access: 'pending.read',
  summary: 'Everything that waits for a person; "workspace_id" filters, "after" reads the next page',
  query: listQuery,
  success: [200, 'What waits, how many there are on all pages, and "next" where there are more'],
  answer: z.strictObject({ needs_you: z.array(needSchema), count: z.number(), next: z.string().optional() }),
})

export const listPendingAsks = endpoint('GET /pending', {
  access: 'pending.read',
  summary: 'The permissions that running turns ask for; "workspace_id" filters, "after" reads the next page',
  query: listQuery,
  success: [200, 'The pending asks, the budgets that are spent on the first page, and "next" where there are more'],
  answer: z.strictObject({
    pending: z.array(pendingAskSchema),
    budgets: z.array(budgetAskSchema),
    next: z.string().optional(),
  }),
})

export const answerAsk = endpoint('POST /pending/{id}', {
  access: 'pending.answer',
  body: {
    schema: z.strictObject({
      decision: z.enum(['allow', 'deny']),
      always: z.boolean().optional(),
      pattern: z.string().min(1).max(PATTERN_CHARACTERS_MAX).optional(),
    }),
    name: 'an answer',
  },
  summary:
    'Allow or deny this one ask, once; "always" also makes a rule: the exact one, or the one with the given "pattern"',
  success: [200, 'The decision, and the rule that was made'],
  answer: z.strictObject({ id: z.string(), decision: z.enum(['allow', 'deny']), rule: ruleSchema.optional() }),
})

export const answerBudget = endpoint('POST /budgets/{id}', {
  access: 'pending.answer',
  body: {
    schema: z.strictObject({
      decision: z.enum(['raise', 'stop']),
      max_cost_usd: z.number().positive().max(COST_USD_MAX).optional(),
    }),
    name: 'an answer',
  },
  summary: 'Raise a budget that is spent to "max_cost_usd", so that its messages go on, or stop it and cancel them',
  success: [200, 'The decision'],
  answer: z.strictObject({
    id: z.string(),
    decision: z.enum(['raise', 'stop']),
    max_cost_usd: z.number().optional().describe('As it was sent.'),
  }),
})

const deadLetterSchema = z.strictObject({
  id: z.string().describe('Of the message.'),
  task_id: z.string(),
  context_id: z.string(),
  code: z.string(),
  reason: z.string(),
  detail: z.string().optional().describe('What the program printed; for admins and members.'),
  failures: z.number().describe('Attempts that failed.'),
  losses: z.number().describe('Attempts whose worker vanished.'),
  sender: senderSchema,
  message: messageSchema,
  at: z.string(),
})

export const listDeadLetters = endpoint('GET /workspaces/{id}/dead-letters', {
  access: 'dead-letter.read',
  summary: 'The messages that have failed for good, the newest first; "after" reads the next page',
  query: z.object({ after: z.string().optional() }),
  success: [200, 'The dead letters, and "next" where there are more'],
  answer: z.strictObject({ dead_letters: z.array(deadLetterSchema), next: z.string().optional() }),
})

export const replayDeadLetter = endpoint('POST /workspaces/{id}/dead-letters/{message}/replay', {
  access: 'dead-letter.handle',
  summary: 'Send a dead letter again',
  success: [200, 'The new task'],
  answer: z.strictObject({ task_id: z.string() }),
})

export const discardDeadLetter = endpoint('DELETE /workspaces/{id}/dead-letters/{message}', {
  access: 'dead-letter.handle',
  summary: 'Discard a dead letter',
  success: [204, 'Done'],
  answer: nothing,
})

const decisionSchema = z.enum(['arrived', 'resend'])

export const decideDelivery = endpoint('POST /deliveries/{id}', {
  access: 'pending.answer',
  body: { schema: z.strictObject({ decision: decisionSchema }), name: 'a decision' },
  summary: 'Decide about an answer that may not have arrived, or could not be sent: it arrived, or send it again',
  success: [200, 'The decision'],
  answer: z.strictObject({ id: z.string(), decision: decisionSchema }),
})

export const dismissDamagedReply = endpoint('DELETE /damaged-replies/{message}', {
  access: 'pending.answer',
  summary: 'Note that a person has seen a reply that was changed on the disk',
  success: [204, 'Done'],
  answer: nothing,
})

export const needEndpoints = [
  listNeeds,
  listPendingAsks,
  answerAsk,
  answerBudget,
  listDeadLetters,
  replayDeadLetter,
  discardDeadLetter,
  decideDelivery,
  dismissDamagedReply,
] as const
