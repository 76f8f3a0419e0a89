import assert from 'node:assert/strict'
import test from 'node:test'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import type { Deliveries } from '../../../inbox/delivery.ts'
import type { BudgetAsk, NeedKind, PendingAsk } from '../../../inbox/owners.ts'
import { usdText } from '../../../usd.ts'
import { type NamedNeed, type NeedsYou, raiseSuggestion } from '../../needs-you.ts'

const need = (kind: NeedKind, more: Partial<NamedNeed> = {}): NamedNeed => ({
  kind,
  id: 'n_1',
  workspaceId: WORKSPACE_ID,
  reason: 'a person decides',
  ...more,
})
const VIEW = { id: 'n_1', workspace_id: WORKSPACE_ID, workspace_name: null, since: null, reason: 'a person decides' }
const post = (name: string, label: string, ...[path, body]: [path: string, body?: object]) => ({
  name,
  label,
  method: 'POST',
  path,
  ...(body && { body }),
})
const ASK: PendingAsk = {
  id: 'a_1',
  workspaceId: WORKSPACE_ID,
  taskId: 't_1',
  messageId: 'm_1',
  tool: 'Bash',
  subject: 'ls',
  askedAtMs: 1_700_000_000_000,
  expiresInMs: 60_000,
}
const BUDGET: BudgetAsk = {
  id: 'b_1',
  workspaceId: WORKSPACE_ID,
  limitUsd: 3,
  spentUsd: 3.02,
  unknownTurns: 0,
  waiting: 1,
  text: 'spent',
  askedAtMs: 1_700_000_000_000,
}

test('CV-6 the list shows what waits, with every field that is known, of one workspace or of all', async (t) => {
  const full = need('question', {
    workspaceName: 'shop',
    sinceMs: 1_700_000_000_000,
    expiresInMs: 60_000,
    taskId: 't_1',
    contextId: 'c_1',
    text: 'Which one?',
    to: 'discord',
  })
  const needsYou = recordPart<NeedsYou>({ list: { needs: [full, need('login')], count: 7, next: 'budget' } })
  const clock = manualClock()
  const call = await openRoutes(t, { needsYou: needsYou.part, clock })
  const { json } = await call(`GET /needs-you?workspace_id=${WORKSPACE_ID}&after=login`, { role: 'member' })
  const [first, second] = json.needs_you
  const { actions, ...rest } = first
  assert.deepEqual(rest, {
    kind: 'question',
    id: 'n_1',
    workspace_id: WORKSPACE_ID,
    workspace_name: 'shop',
    reason: 'a person decides',
    since: '2023-11-14T22:13:20.000Z',
    expires_at: new Date(clock.nowMs() + 60_000).toISOString(),
    task_id: 't_1',
    context_id: 'c_1',
    text: 'Which one?',
    to: 'discord',
  })
  assert.deepEqual(actions, [post('answer', 'Send', `/workspaces/${WORKSPACE_ID}/a2a`)])
  const again = [post('check', 'Check again', `/workspaces/${WORKSPACE_ID}/restart`)]
  assert.deepEqual(second, { ...VIEW, kind: 'login', actions: again })
  assert.deepEqual([json.count, json.next], [7, 'budget'])
  await call('GET /needs-you')
  assert.deepEqual(needsYou.take(), [
    ['list', { workspaceId: WORKSPACE_ID, after: 'login' }],
    ['list', {}],
  ])
  const nothing = recordPart<NeedsYou>({ list: { needs: [], count: 0 } })
  const quiet = await openRoutes(t, { needsYou: nothing.part })
  assert.deepEqual((await quiet('GET /needs-you')).json, { needs_you: [], count: 0 })
})

test('CV-6 each thing that waits names its ways out as calls of the API', async (t) => {
  const once = [post('allow', 'Allow once', '/pending/n_1', { decision: 'allow' })]
  const always = post('always', 'Always allow', '/pending/n_1', { decision: 'allow', always: true })
  const deny = post('deny', 'Deny', '/pending/n_1', { decision: 'deny' })
  const letter = `/workspaces/${WORKSPACE_ID}/dead-letters/n_1`
  const covers = { tool: 'Bash', scope: 'exact', pattern: 'ls', sentence: 'only ls' } as const
  const raise = (usd: number) => [
    post('raise', `Raise to $${usd}`, '/budgets/n_1', { decision: 'raise', max_cost_usd: usd }),
    post('stop', 'Stop', '/budgets/n_1', { decision: 'stop' }),
  ]
  const waysOut: [NamedNeed, object[]][] = [
    [need('permission'), [...once, deny]],
    [need('permission', { ask: ASK }), [...once, deny]],
    [need('permission', { ask: { ...ASK, wouldCover: covers } }), [...once, always, deny]],
    [
      need('dead_letter'),
      [
        post('replay', 'Run again', `${letter}/replay`),
        { name: 'discard', label: 'Discard', method: 'DELETE', path: letter },
      ],
    ],
    [
      need('delivery'),
      [
        post('arrived', 'It arrived', '/deliveries/n_1', { decision: 'arrived' }),
        post('resend', 'Send again', '/deliveries/n_1', { decision: 'resend' }),
      ],
    ],
    [need('budget', { budget: BUDGET }), raise(5)],
    [need('budget'), raise(0.01)],
    [
      need('pairing'),
      [post('approve', 'Approve', '/pairings/n_1/approve'), post('refuse', 'Deny', '/pairings/n_1/deny')],
    ],
    [need('workspace'), [post('check', 'Check again', `/workspaces/${WORKSPACE_ID}/restart`)]],
  ]
  const needs = waysOut.map(([each]) => each)
  const call = await openRoutes(t, { needsYou: recordPart<NeedsYou>({ list: { needs, count: 9 } }).part })
  const shown = (await call('GET /needs-you')).json.needs_you
  for (const [index, [{ kind }, actions]] of waysOut.entries()) assert.deepEqual(shown[index].actions, actions, kind)
  assert.equal(shown[0].permission, undefined)
  assert.equal(shown[1].permission.subject, 'ls')
  assert.equal(shown[5].budget.max_cost_usd, 3)
  assert.equal(shown[6].budget, undefined)
})

test('TW-10 the suggested budget is the next of 1, 2 and 5 in the range of what is spent', () => {
  const suggested = [
    ...[0, 0.01, 0.4, 0.5, 0.99].map((spentUsd) => raiseSuggestion({ limitUsd: 0, spentUsd })),
    ...[1, 2, 3.02, 5, 9.5, 10, 20, 60].map((limitUsd) => raiseSuggestion({ limitUsd, spentUsd: 0.5 })),
  ]
  assert.deepEqual(suggested, [0.01, 0.02, 0.5, 1, 1, 2, 5, 5, 10, 10, 20, 50, 100])
  assert.deepEqual([usdText(5), usdText(0.4), usdText(0.0031)], ['$5.00', '$0.40', '$0.0031'])
})

test('GW-6 a person says that an answer arrived, or has it sent again', async (t) => {
  const deliveries = recordPart<Pick<Deliveries, 'resolve'>>({ resolve: undefined })
  const call = await openRoutes(t, { deliveries: deliveries.part })
  const decide = (decision: string) => call('POST /deliveries/d_1', { role: 'member', body: { decision } })
  assert.deepEqual((await decide('arrived')).json, { id: 'd_1', decision: 'arrived' })
  assert.deepEqual((await decide('resend')).json, { id: 'd_1', decision: 'resend' })
  assert.equal((await decide('dismiss')).status, 400)
  assert.deepEqual(deliveries.take(), [
    ['resolve', 'd_1', 'dismiss', 'member'],
    ['resolve', 'd_1', 'resend', 'member'],
  ])
})
