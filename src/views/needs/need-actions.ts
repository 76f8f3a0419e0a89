/** The ways out of a need, as calls of the API. A new kind does not compile without its own. */
import { raiseSuggestion } from './budget-asks.ts'
import type { FoundNeed, NeedAnswer } from './need-rows.ts'

type NeedAction = NeedAnswer['actions'][number]

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

/** By kind. */
export const NEED_ACTIONS: Readonly<
  Record<FoundNeed['kind'], (need: FoundNeed, turnsPerHourMax: number) => NeedAction[]>
> = {
  permission({ id, permission }) {
    const path = `/pending/${encodeURIComponent(id)}`
    const always = post(['always', 'Always allow'], path, { decision: 'allow', always: true })
    return [
      post(['allow', 'Allow once'], path, { decision: 'allow' }),
      ...(permission?.would_cover === undefined ? [] : [always]),
      post(['deny', 'Deny'], path, { decision: 'deny' }),
    ]
  },
  question: ({ workspace_id }) => [post(['answer', 'Send'], `/workspaces/${workspace_id}/a2a`)],
  dead_letter({ id, workspace_id }) {
    const path = `/workspaces/${workspace_id}/dead-letters/${id}`
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
    const toUsd = raiseSuggestion(budget ?? { max_cost_usd: 0, cost_usd: 0 })
    const raised = { decision: 'raise', max_cost_usd: toUsd }
    return [post(['raise', `Raise to $${toUsd}`], path, raised), post(['stop', 'Stop'], path, { decision: 'stop' })]
  },
  turn_limit({ workspace_id }, turnsPerHourMax) {
    const body = { runtime_config: { max_turns_per_hour: 2 * turnsPerHourMax } }
    const label = `Allow ${2 * turnsPerHourMax} an hour`
    return [{ name: 'more', label, method: 'PATCH', path: `/workspaces/${workspace_id}`, body }]
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
  login: ({ workspace_id }) => [post(['check', 'Check again'], `/workspaces/${workspace_id}/restart`)],
  workspace: ({ workspace_id }) => [post(['check', 'Check again'], `/workspaces/${workspace_id}/restart`)],
}
