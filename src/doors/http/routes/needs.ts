/**
 * What waits for a person: `GET /needs-you` is the one list of all, each need with its reason and its ways out as calls of
 * this API. Pending asks, budgets that are spent and dead letters also have lists of their own.
 */
import type { z } from 'zod'
import type { Frozen } from '../../../api/endpoint.ts'
import {
  answerAsk,
  answerBudget,
  type budgetAskSchema,
  type deadLetterSchema,
  decideDelivery,
  discardDeadLetter,
  dismissDamagedReply,
  listDeadLetters,
  listNeeds,
  listPendingAsks,
  type needSchema,
  type pendingAskSchema,
  replayDeadLetter,
} from '../../../api/needs.ts'
import { MoleculeError } from '../../../errors.ts'
import type { BudgetAsk, DeadLetter, NeedKind, PendingAsk } from '../../../inbox/owners.ts'
import { TURNS_PER_HOUR_DEFAULT } from '../../../workspaces/workspace.ts'
import { type NamedNeed, raiseSuggestion } from '../../needs-you.ts'
import { requireWorkspace, seesConfig } from '../server/reach.ts'
import { serve } from './route.ts'
import { answererOf, viewRule } from './rules.ts'

const AMOUNT_MISSING = { details: { path: 'max_cost_usd' } }

export const needRoutes = [
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
  serve(listPendingAsks, async ({ query: { workspace_id: workspaceId, after } }, { pending, budgets }) => {
    const only = workspaceId === undefined ? {} : { workspaceId }
    const { rows, next } = await pending.list({ ...only, ...(after !== undefined && { after }) })
    const spent = after === undefined ? await budgets.list(only) : []
    return { pending: rows.map(viewPendingAsk), budgets: spent.map(viewBudgetAsk), next }
  }),
  serve(answerAsk, async ({ params: { id }, identity, body }, { pending }) => {
    const { decision, always = false, pattern } = body
    if (always ? decision === 'deny' : pattern !== undefined) throw contradiction()
    const answerer = answererOf(identity)
    if (always) return { id, decision, rule: viewRule(await pending.allowAlways(id, answerer, pattern)) }
    await pending.answer(id, decision === 'allow' ? 'allowed' : 'denied', answerer)
    return { id, decision }
  }),
  serve(answerBudget, async ({ params: { id }, identity, body }, { budgets }) => {
    const { decision, max_cost_usd: maxCostUsd } = body
    if (decision === 'stop') await budgets.stop(id, answererOf(identity))
    else if (maxCostUsd !== undefined) await budgets.raise(id, maxCostUsd, answererOf(identity))
    else throw new MoleculeError('invalid_request', 'to raise a budget, say to what: max_cost_usd', AMOUNT_MISSING)
    return { id, ...body }
  }),
  serve(listDeadLetters, async ({ params, query, identity }, { deadLetters, workspaces }) => {
    const { id } = await requireWorkspace(workspaces, params.id)
    const { rows, next } = await deadLetters.list(id, query.after)
    const withDetail = seesConfig(identity)
    return { dead_letters: rows.map((letter) => viewDeadLetter(letter, withDetail)), next }
  }),
  serve(replayDeadLetter, async ({ params }, { deadLetters }) => ({
    task_id: await deadLetters.replay(params.id, params.message),
  })),
  serve(discardDeadLetter, async ({ params }, { deadLetters }) => {
    await deadLetters.discard(params.id, params.message)
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

const contradiction = () =>
  new MoleculeError('invalid_request', '"always" goes with the decision "allow", and "pattern" with "always"', {
    details: { path: 'always' },
  })

const viewPendingAsk = (ask: PendingAsk): z.output<typeof pendingAskSchema> => ({
  id: ask.id,
  workspace_id: ask.workspaceId,
  task_id: ask.taskId,
  tool: ask.tool,
  subject: ask.subject,
  asked_at: new Date(ask.askedAtMs).toISOString(),
  expires_in: Math.ceil(ask.expiresInMs / 1000),
  would_cover: ask.wouldCover,
  would_cover_more: ask.wouldCoverMore,
})

const viewBudgetAsk = (ask: BudgetAsk): z.output<typeof budgetAskSchema> => ({
  id: ask.id,
  workspace_id: ask.workspaceId,
  task_id: ask.taskId ?? null,
  max_cost_usd: ask.limitUsd,
  cost_usd: ask.spentUsd,
  unknown_turns: ask.unknownTurns,
  waiting: ask.waiting,
  text: ask.text,
  asked_at: new Date(ask.askedAtMs).toISOString(),
})

const viewDeadLetter = (dead: DeadLetter, withDetail: boolean): Frozen<z.output<typeof deadLetterSchema>> => ({
  id: dead.id,
  task_id: dead.taskId,
  context_id: dead.contextId,
  code: dead.code,
  reason: dead.reason,
  detail: withDetail ? dead.detail : undefined,
  failures: dead.failures,
  losses: dead.losses,
  sender: dead.sender,
  message: dead.message,
  at: new Date(dead.atMs).toISOString(),
})
