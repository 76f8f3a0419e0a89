/**
 * `GET /needs-you`: everything that waits for a person, each with its reason and its ways out as calls of this API.
 * `POST /deliveries/:id` decides about an answer that may not have arrived, `DELETE /damaged-replies/:message` dismisses one
 * that was changed on the disk.
 */
import type { z } from 'zod'
import { decideDelivery, dismissDamagedReply, listNeeds, type needSchema } from '../../../api/needs.ts'
import type { NeedKind } from '../../../inbox/owners.ts'
import { TURNS_PER_HOUR_DEFAULT } from '../../../workspaces/workspace.ts'
import { type NamedNeed, raiseSuggestion } from '../../needs-you.ts'
import { viewBudgetAsk } from './budgets.ts'
import { viewPendingAsk } from './pending-asks.ts'
import { serve } from './route.ts'

export const needsYouRoutes = [
  serve(listNeeds, async ({ query: { workspace_id: workspaceId, after } }, { needsYou, clock }) => {
    const { needs, count, next } = await needsYou.list({
      ...(workspaceId !== undefined && { workspaceId }),
      ...(after !== undefined && { after }),
    })
    return { needs_you: needs.map((need) => viewNeed(need, clock.nowMs())), count, next }
  }),
  serve(decideDelivery, async ({ params: { id }, identity, body: { decision } }, { deliveries }) => {
    await deliveries.resolve(id, decision === 'resend' ? 'resend' : 'dismiss', identity.name)
    return { id, decision }
  }),
  serve(dismissDamagedReply, async ({ params }, { damagedReplies }) => {
    await damagedReplies.dismiss(params.message)
  }),
]

type NeedView = z.output<typeof needSchema>
type NeedAction = NeedView['actions'][number]

function viewNeed(need: NamedNeed, nowMs: number): NeedView {
  const { kind, id, reason, sinceMs, expiresInMs, taskId, contextId, text, to, ask, budget } = need
  return {
    kind,
    id,
    workspace_id: need.workspaceId,
    workspace_name: need.workspaceName ?? null,
    since: sinceMs === undefined ? null : new Date(sinceMs).toISOString(),
    reason,
    expires_at: expiresInMs === undefined ? undefined : new Date(nowMs + expiresInMs).toISOString(),
    task_id: taskId,
    context_id: contextId,
    text,
    to,
    permission: ask && viewPendingAsk(ask),
    budget: budget && viewBudgetAsk(budget),
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
  body,
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
