import assert from 'node:assert/strict'
import test from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import type { BudgetAsk, Budgets, PendingAsk, PendingAsks, Rule, Rules } from '../../../inbox/owners.ts'

const ASK: PendingAsk = {
  id: 'a_1',
  workspaceId: WORKSPACE_ID,
  taskId: 't_1',
  messageId: 'm_1',
  tool: 'Bash',
  subject: 'ls',
  askedAtMs: 1_700_000_000_000,
  expiresInMs: 1001,
}
const ASK_VIEW = {
  id: 'a_1',
  workspace_id: WORKSPACE_ID,
  task_id: 't_1',
  tool: 'Bash',
  subject: 'ls',
  asked_at: '2023-11-14T22:13:20.000Z',
  expires_in: 2,
}
const EXACT = { tool: 'Bash', scope: 'exact', pattern: 'ls', sentence: 'only ls' } as const
const WIDER = { tool: 'Bash', scope: 'prefix', pattern: 'ls *', sentence: 'ls with anything' } as const
const BUDGET: BudgetAsk = {
  id: 'b_1',
  workspaceId: WORKSPACE_ID,
  limitUsd: 3,
  spentUsd: 3.02,
  unknownTurns: 1,
  waiting: 2,
  text: 'spent',
  askedAtMs: 1_700_000_000_000,
}
const BUDGET_VIEW = {
  id: 'b_1',
  workspace_id: WORKSPACE_ID,
  task_id: null,
  max_cost_usd: 3,
  cost_usd: 3.02,
  unknown_turns: 1,
  waiting: 2,
  text: 'spent',
  asked_at: '2023-11-14T22:13:20.000Z',
}
const RULE: Rule = {
  id: 'r_1',
  workspaceId: WORKSPACE_ID,
  tool: 'Bash',
  scope: 'exact',
  pattern: 'ls',
  used: 0,
  maker: { name: 'Ana', principal: 'user:ana', door: 'http' },
  madeAtMs: 1_700_000_000_000,
}
const RULE_VIEW = {
  id: 'r_1',
  workspace_id: WORKSPACE_ID,
  tool: 'Bash',
  scope: 'exact',
  pattern: 'ls',
  made_by: 'Ana',
  made_at: '2023-11-14T22:13:20.000Z',
  used: 0,
}
const MEMBER = { name: 'member', principal: 'people', door: 'http' }

test('GW-9 the list has the pending asks of one workspace or of all, and the spent budgets on its first page', async (t) => {
  const rows = [ASK, { ...ASK, wouldCover: EXACT, wouldCoverMore: WIDER }]
  const pending = recordPart<PendingAsks>({ list: { rows, next: 'n_1' } })
  const budgets = recordPart<Budgets>({ list: [BUDGET, { ...BUDGET, taskId: 't_1' }] })
  const call = await openRoutes(t, { pending: pending.part, budgets: budgets.part })
  const first = await call(`GET /pending?workspace_id=${WORKSPACE_ID}`, { role: 'member' })
  assert.deepEqual(first.json, {
    pending: [ASK_VIEW, { ...ASK_VIEW, would_cover: EXACT, would_cover_more: WIDER }],
    budgets: [BUDGET_VIEW, { ...BUDGET_VIEW, task_id: 't_1' }],
    next: 'n_1',
  })
  assert.deepEqual((await call('GET /pending?after=n_1')).json.budgets, [])
  await call('GET /pending')
  const lists = [{ workspaceId: WORKSPACE_ID }, { after: 'n_1' }, {}]
  assert.deepEqual(
    pending.take(),
    lists.map((query) => ['list', query]),
  )
  assert.deepEqual(budgets.take(), [
    ['list', { workspaceId: WORKSPACE_ID }],
    ['list', {}],
  ])
  const last = await openRoutes(t, { pending: recordPart<PendingAsks>({ list: { rows: [] } }).part })
  assert.deepEqual((await last('GET /pending')).json, { pending: [], budgets: [] })
})

test('GW-9 an ask is allowed or denied once, in the name of the person who answers', async (t) => {
  const pending = recordPart<PendingAsks>({ answer: undefined, allowAlways: RULE })
  const call = await openRoutes(t, { pending: pending.part })
  const decide = (body: object) => call('POST /pending/a_1', { role: 'member', body })
  assert.deepEqual((await decide({ decision: 'allow' })).json, { id: 'a_1', decision: 'allow' })
  assert.deepEqual((await decide({ decision: 'deny', always: false })).json, { id: 'a_1', decision: 'deny' })
  assert.deepEqual(pending.take(), [
    ['answer', 'a_1', 'allowed', MEMBER],
    ['answer', 'a_1', 'denied', MEMBER],
  ])
  const exact = await decide({ decision: 'allow', always: true })
  assert.deepEqual(exact.json, { id: 'a_1', decision: 'allow', rule: RULE_VIEW })
  await decide({ decision: 'allow', always: true, pattern: 'x'.repeat(4096) })
  assert.deepEqual(pending.take(), [
    ['allowAlways', 'a_1', MEMBER, undefined],
    ['allowAlways', 'a_1', MEMBER, 'x'.repeat(4096)],
  ])
})

test('PL-24 an answer that contradicts itself is refused, and decides nothing', async (t) => {
  const pending = recordPart<PendingAsks>({ answer: undefined, allowAlways: RULE })
  const call = await openRoutes(t, { pending: pending.part })
  const wrong = [
    { decision: 'deny', always: true },
    { decision: 'allow', pattern: 'ls' },
    { decision: 'deny', pattern: 'ls' },
    { decision: 'allow', always: true, pattern: '' },
    { decision: 'allow', always: true, pattern: 'x'.repeat(4097) },
    { decision: 'maybe' },
  ]
  for (const body of wrong)
    assert.equal((await call('POST /pending/a_1', { body })).status, 400, JSON.stringify(body).slice(0, 80))
  const { json } = await call('POST /pending/a_1', { body: wrong[0] })
  assert.equal(json.error.message, '"always" goes with the decision "allow", and "pattern" with "always"')
  assert.deepEqual(pending.calls, [])
})

test('TW-10 a budget is raised to an amount, or stopped, in the name of the person who answers', async (t) => {
  const budgets = recordPart<Budgets>({ raise: undefined, stop: undefined })
  const call = await openRoutes(t, { budgets: budgets.part })
  const decide = (body: object) => call('POST /budgets/b_1', { role: 'member', body })
  const raised = await decide({ decision: 'raise', max_cost_usd: 5 })
  assert.deepEqual([raised.status, raised.json], [200, { id: 'b_1', decision: 'raise', max_cost_usd: 5 }])
  assert.deepEqual((await decide({ decision: 'stop' })).json, { id: 'b_1', decision: 'stop' })
  assert.deepEqual(budgets.take(), [
    ['raise', 'b_1', 5, MEMBER],
    ['stop', 'b_1', MEMBER],
  ])
  const missing = await decide({ decision: 'raise' })
  assert.deepEqual([missing.status, missing.json.error.code], [400, 'invalid_request'])
  assert.match(missing.json.error.message, /max_cost_usd/)
  for (const max_cost_usd of [0, -1, 1e12])
    assert.equal((await decide({ decision: 'raise', max_cost_usd })).status, 400)
  assert.equal((await decide({ decision: 'more', max_cost_usd: 5 })).status, 400)
  assert.deepEqual(budgets.calls, [])
})

test('PL-24 the rules of a workspace are listed in pages, and revoked by their id', async (t) => {
  const used = { ...RULE, used: 3, lastUsedAtMs: 1_700_000_001_000 }
  const rules = recordPart<Rules>({ list: { rows: [RULE, used], next: 'r_2' }, revoke: undefined })
  const call = await openRoutes(t, { rules: rules.part })
  const path = `/workspaces/${WORKSPACE_ID}/rules`
  const { json } = await call(`GET ${path}?after=r_0`, { role: 'member' })
  const last = { used: 3, last_used_at: '2023-11-14T22:13:21.000Z' }
  assert.deepEqual(json, { rules: [RULE_VIEW, { ...RULE_VIEW, ...last }], next: 'r_2' })
  assert.equal((await call(`DELETE ${path}/r_1`, { role: 'member' })).status, 204)
  assert.deepEqual(rules.take(), [
    ['list', WORKSPACE_ID, 'r_0'],
    ['revoke', WORKSPACE_ID, 'r_1', MEMBER],
  ])
  const whole = await openRoutes(t, { rules: recordPart<Rules>({ list: { rows: [] } }).part })
  assert.deepEqual((await whole(`GET ${path}`)).json, { rules: [] })
})
