/**
 * `GET /needs-you`: everything that waits for a person, each with its reason and its ways out as calls of this API.
 * `POST /deliveries/:id` decides about an answer that may not have arrived, `DELETE /damaged-replies/:message` dismisses one
 * that was changed on the disk.
 */
import { z } from 'zod'
import type { NeedKind } from '../../../inbox/owners.ts'
import { TURNS_PER_HOUR_DEFAULT } from '../../../workspaces/workspace.ts'
import { type NamedNeed, raiseSuggestion } from '../../needs-you.ts'
import { budgetAskSchema, viewBudgetAsk } from './budgets.ts'
import { pendingAskSchema, viewPendingAsk } from './pending-asks.ts'
import { route } from './route.ts'

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

const deliverySchema = z.strictObject({ decision: z.enum(['arrived', 'resend']) })

export const needsYouRoutes = [
  route({
    method: 'get',
    path: '/needs-you',
    access: 'pending.read',
    summary: 'Everything that waits for a person; "workspace_id" filters, "after" reads the next page',
    success: [200, 'What waits, how many there are on all pages, and "next" where there are more'],
    answer: z.strictObject({ needs_you: z.array(needSchema), count: z.number(), next: z.string().optional() }),
    async handle({ context }, { needsYou, clock }) {
      const { workspace_id: workspaceId, after } = context.req.query()
      const page = await needsYou.list({
        ...(workspaceId !== undefined && { workspaceId }),
        ...(after !== undefined && { after }),
      })
      return context.json({
        needs_you: page.needs.map((need) => viewNeed(need, clock.nowMs())),
        count: page.count,
        ...(page.next !== undefined && { next: page.next }),
      })
    },
  }),
  route({
    method: 'post',
    path: '/deliveries/:id',
    access: 'pending.answer',
    body: { schema: deliverySchema, name: 'a decision' },
    summary: 'Decide about an answer that may not have arrived, or could not be sent: it arrived, or send it again',
    success: [200, 'The decision'],
    async handle({ context, identity, body: { decision } }, { deliveries }) {
      const id = context.req.param('id')
      await deliveries.resolve(id, decision === 'resend' ? 'resend' : 'dismiss', identity.name)
      return context.json({ id, decision })
    },
  }),
  route({
    method: 'delete',
    path: '/damaged-replies/:message',
    access: 'pending.answer',
    summary: 'Note that a person has seen a reply that was changed on the disk',
    success: [204, 'Done'],
    async handle({ context }, { damagedReplies }) {
      await damagedReplies.dismiss(context.req.param('message'))
      return context.body(null, 204)
    },
  }),
]

type NeedAction = z.output<typeof actionSchema>

function viewNeed(need: NamedNeed, nowMs: number): z.output<typeof needSchema> {
  const { kind, id, reason, sinceMs, expiresInMs, taskId, contextId, text, to, ask, budget } = need
  return {
    kind,
    id,
    workspace_id: need.workspaceId,
    workspace_name: need.workspaceName ?? null,
    since: sinceMs === undefined ? null : new Date(sinceMs).toISOString(),
    reason,
    ...(expiresInMs !== undefined && { expires_at: new Date(nowMs + expiresInMs).toISOString() }),
    ...(taskId !== undefined && { task_id: taskId }),
    ...(contextId !== undefined && { context_id: contextId }),
    ...(text !== undefined && { text }),
    ...(to !== undefined && { to }),
    ...(ask !== undefined && { permission: viewPendingAsk(ask) }),
    ...(budget !== undefined && { budget: viewBudgetAsk(budget) }),
    actions: ACTIONS[kind](need),
  }
}

const post = (
  names: readonly [name: string, label: string],
  path: string,
  body?: Record<string, unknown>,
): NeedAction => ({
  name: names[0],
  label: names[1],
  method: 'POST',
  path,
  ...(body !== undefined && { body }),
})

/** The ways out of each kind. A new kind does not compile without its own. */
const ACTIONS: Readonly<Record<NeedKind, (need: NamedNeed) => NeedAction[]>> = {
  permission({ id, ask }) {
    const path = `/pending/${encodeURIComponent(id)}`
    const always = post(['always', 'Always allow'], path, { decision: 'allow', always: true })
    return [
      post(['allow', 'Allow once'], path, { decision: 'allow' }),
      ...(ask?.wouldCover === undefined ? [] : [always]),
      post(['deny', 'Deny'], path, { decision: 'deny' }),
    ]
  },
  question: ({ workspaceId }) => [post(['answer', 'Send'], `/workspaces/${workspaceId}/a2a`)],
  dead_letter({ id, workspaceId }) {
    const path = `/workspaces/${workspaceId}/dead-letters/${id}`
    return [
      post(['replay', 'Run again'], `${path}/replay`),
      { name: 'discard', label: 'Discard', method: 'DELETE', path },
    ]
  },
  delivery: ({ id }) => [
    post(['arrived', 'It arrived'], `/deliveries/${id}`, { decision: 'arrived' }),
    post(['resend', 'Send again'], `/deliveries/${id}`, { decision: 'resend' }),
  ],
  damaged_reply: ({ id }) => [
    { name: 'discard', label: 'Dismiss', method: 'DELETE', path: `/damaged-replies/${encodeURIComponent(id)}` },
  ],
  budget({ id, budget }) {
    const path = `/budgets/${encodeURIComponent(id)}`
    const toUsd = raiseSuggestion(budget ?? { limitUsd: 0, spentUsd: 0 })
    const raised = { decision: 'raise', max_cost_usd: toUsd }
    return [post(['raise', `Raise to $${toUsd}`], path, raised), post(['stop', 'Stop'], path, { decision: 'stop' })]
  },
  turn_limit({ workspaceId, turnsPerHourMax = TURNS_PER_HOUR_DEFAULT }) {
    const body = { runtime_config: { max_turns_per_hour: 2 * turnsPerHourMax } }
    const label = `Allow ${2 * turnsPerHourMax} an hour`
    return [{ name: 'more', label, method: 'PATCH', path: `/workspaces/${workspaceId}`, body }]
  },
  pairing: ({ id }) => [
    post(['approve', 'Approve'], `/pairings/${id}/approve`),
    post(['refuse', 'Deny'], `/pairings/${id}/deny`),
  ],
  schedule({ id }) {
    const path = `/schedules/${id}`
    const resumed = { name: 'resume', label: 'Resume', method: 'PATCH', body: { paused: false } } as const
    return [
      { ...resumed, path },
      { name: 'discard', label: 'Delete', method: 'DELETE', path },
    ]
  },
  login: ({ workspaceId }) => [post(['check', 'Check again'], `/workspaces/${workspaceId}/restart`)],
  workspace: ({ workspaceId }) => [post(['check', 'Check again'], `/workspaces/${workspaceId}/restart`)],
}
