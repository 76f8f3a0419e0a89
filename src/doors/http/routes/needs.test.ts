import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { createFakePlatform, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openWaitingStore, SENDER } from '../../../../test/fakes/platform/waiting-rows.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import { openTestStore, START_MS } from '../../../../test/harness/stores/sqlite-store.ts'
import type { Deliveries } from '../../../inbox/delivery.ts'
import type { Budgets, DeadLetters, PendingAsks, Rule } from '../../../inbox/owners.ts'
import type { Store } from '../../../store/store.ts'
import type { NeedyWorkspace } from '../../../views/needs/workspace-need.ts'

const post = (name: string, label: string, ...[path, body]: [path: string, body?: object]) => ({
  name,
  label,
  method: 'POST',
  path,
  ...(body && { body }),
})
const NOW = '2026-01-15T12:00:00.000Z'
const MEMBER = { name: 'member', principal: 'people', door: 'http' }
const RULE: Rule = { id: 'r_1', tool: 'Bash', scope: 'exact', pattern: 'ls', maker: MEMBER }
const RULE_VIEW = {
  id: 'r_1',
  workspace_id: WORKSPACE_ID,
  tool: 'Bash',
  scope: 'exact',
  pattern: 'ls',
  made_by: 'Ana',
  made_at: NOW,
  used: 0,
}

/** A door on the store whose one workspace is in this state. */
function openNeeds(t: TestContext, { store }: { readonly store: Store }, state: Partial<NeedyWorkspace> = {}) {
  const { workspaces } = createFakePlatform()
  const read = async (id: string) => {
    const found = await workspaces.get(id)
    return found && { ...found, name: 'shop', ...state }
  }
  const all = async () => [await read(WORKSPACE_ID)].filter((each) => each !== undefined)
  return openRoutes(t, { store, workspaces: { ...workspaces, get: read, all } })
}

test('CV-6 GW-9 everything that waits is listed with its fields and its ways out, the most urgent kind first', async (t) => {
  const { store, insert } = await openWaitingStore(t)
  await insert('messages', {
    id: 'waits',
    workspace_id: WORKSPACE_ID,
    state: 'queued',
    waits_for: 'turns_per_hour',
    admitted_at: START_MS,
    ready_at: START_MS + 60_000,
  })
  const limit = { runtimeConfig: { max_turns_per_hour: 10 } }
  const call = await openNeeds(t, { store }, { ...limit, status: 'failed', statusReason: 'no program' })
  const { json } = await call(`GET /needs-you?workspace_id=${WORKSPACE_ID}`, { role: 'member' })
  const common = { workspace_id: WORKSPACE_ID, workspace_name: 'shop', since: NOW }
  const exact = { tool: 'Bash', scope: 'exact', pattern: 'npm test' }
  const [allowId, hideId] = ['asks.1.1', 'hides.1.2']
  const once = (id: string) => post('allow', 'Allow once', `/pending/${id}`, { decision: 'allow' })
  const deny = (id: string) => post('deny', 'Deny', `/pending/${id}`, { decision: 'deny' })
  const always = post('always', 'Always allow', `/pending/${allowId}`, { decision: 'allow', always: true })
  const letter = `/workspaces/${WORKSPACE_ID}/dead-letters/fails`
  const budget = json.needs_you.find(({ kind }: { kind: string }) => kind === 'budget')
  const expected = [
    {
      kind: 'permission',
      id: allowId,
      reason: 'it wants to use Bash',
      expires_at: '2026-01-15T12:01:00.000Z',
      task_id: 'asks',
      actions: [once(allowId), always, deny(allowId)],
    },
    {
      kind: 'permission',
      id: hideId,
      reason: 'it wants to use Write',
      expires_at: '2026-01-15T12:01:00.000Z',
      task_id: 'hides',
      actions: [once(hideId), deny(hideId)],
    },
    {
      kind: 'question',
      id: 'questions',
      reason: 'the agent asks: which one?',
      task_id: 'questions',
      context_id: 'x',
      text: 'which one?',
      actions: [post('answer', 'Send', `/workspaces/${WORKSPACE_ID}/a2a`)],
    },
    {
      kind: 'budget',
      id: 'b_1',
      reason: "today's budget of this workspace, $3.00, is spent ($3.02); 1 message waits",
      actions: [
        post('raise', 'Raise to $5', '/budgets/b_1', { decision: 'raise', max_cost_usd: 5 }),
        post('stop', 'Stop', '/budgets/b_1', { decision: 'stop' }),
      ],
    },
    {
      kind: 'turn_limit',
      id: `${WORKSPACE_ID}.turns`,
      reason:
        'its turns of this hour are used up (max_turns_per_hour): 1 message waits; the next one goes on in 1 min, or at once with a higher limit',
      actions: [
        {
          name: 'more',
          label: 'Allow 20 an hour',
          method: 'PATCH',
          path: `/workspaces/${WORKSPACE_ID}`,
          body: { runtime_config: { max_turns_per_hour: 20 } },
        },
      ],
    },
    {
      kind: 'dead_letter',
      id: 'fails',
      reason: 'a message failed on all 5 attempts: it broke',
      task_id: 'fails',
      context_id: 'y',
      text: 'back up',
      actions: [
        post('replay', 'Run again', `${letter}/replay`),
        { name: 'discard', label: 'Discard', method: 'DELETE', path: letter },
      ],
    },
    {
      kind: 'delivery',
      id: 'd_1',
      reason: 'an answer to chat:bot may not have arrived',
      task_id: 't',
      text: 'the answer',
      to: 'chat:bot p',
      actions: [
        post('arrived', 'It arrived', '/deliveries/d_1', { decision: 'arrived' }),
        post('resend', 'Send again', '/deliveries/d_1', { decision: 'resend' }),
      ],
    },
    {
      kind: 'damaged_reply',
      id: 'broken',
      reason:
        'the stored reply was changed on the disk, so it is not shown: check this disk, then restore a backup or send the message again',
      task_id: 'broken',
      actions: [{ name: 'discard', label: 'Dismiss', method: 'DELETE', path: '/damaged-replies/broken' }],
    },
    {
      kind: 'pairing',
      id: 'CODE',
      reason: 'Eve wants to talk to the bot "bot"; 0 messages are held',
      to: 'bot',
      actions: [post('approve', 'Approve', '/pairings/CODE/approve'), post('refuse', 'Deny', '/pairings/CODE/deny')],
    },
    {
      kind: 'schedule',
      id: 'sch_1',
      reason: 'the schedule "nightly" is paused: no token',
      actions: [
        { name: 'resume', label: 'Resume', method: 'PATCH', path: '/schedules/sch_1', body: { paused: false } },
        { name: 'discard', label: 'Delete', method: 'DELETE', path: '/schedules/sch_1' },
      ],
    },
    {
      kind: 'workspace',
      id: WORKSPACE_ID,
      since: null,
      reason: 'no program',
      actions: [post('check', 'Check again', `/workspaces/${WORKSPACE_ID}/restart`)],
    },
  ]
  const shown = json.needs_you.map(({ permission: _ask, budget: _budget, ...need }: Record<string, unknown>) => need)
  assert.deepEqual(
    shown,
    expected.map((need) => ({ ...common, ...need })),
  )
  assert.equal(json.count, expected.length)
  assert.deepEqual([budget.budget.max_cost_usd, budget.budget.cost_usd, budget.budget.task_id], [3, 3.02, null])
  const [{ permission }] = json.needs_you
  assert.deepEqual([permission.subject, permission.expires_in], ['npm test', 60])
  assert.deepEqual({ ...permission.would_cover, sentence: undefined }, { ...exact, sentence: undefined })
  const later = (await call('GET /needs-you?after=schedule')).json
  assert.deepEqual(
    later.needs_you.map(({ kind }: { kind: string }) => kind),
    ['schedule', 'workspace'],
  )
  assert.equal((await call('GET /needs-you?after=x')).status, 400)
})

test('CV-6 a workspace that works and has nothing to decide needs no person', async (t) => {
  const { store } = openTestStore(t)
  const call = await openNeeds(t, { store })
  assert.deepEqual((await call('GET /needs-you')).json, { needs_you: [], count: 0 })
  assert.deepEqual((await call('GET /pending')).json, { pending: [], budgets: [] })
  assert.deepEqual((await call(`GET /workspaces/${WORKSPACE_ID}/dead-letters`)).json, { dead_letters: [] })
  assert.deepEqual((await call(`GET /workspaces/${WORKSPACE_ID}/rules`)).json, { rules: [] })
  const offline = await openNeeds(t, { store }, { status: 'offline', queueDepth: 2, statusReason: 'it left' })
  const [{ kind, reason }] = (await offline('GET /needs-you')).json.needs_you
  assert.deepEqual([kind, reason], ['workspace', 'it is offline and 2 messages wait: it left'])
})

test('GW-9 the list has the pending asks of one workspace or of all, and the spent budgets on its first page', async (t) => {
  const { store } = await openWaitingStore(t)
  const call = await openNeeds(t, { store })
  const { json } = await call(`GET /pending?workspace_id=${WORKSPACE_ID}`, { role: 'member' })
  const [asked, hidden] = json.pending
  assert.deepEqual(hidden, {
    id: 'hides.1.2',
    workspace_id: WORKSPACE_ID,
    task_id: 'hides',
    tool: 'Write',
    subject: '(no input)',
    asked_at: NOW,
    expires_in: 60,
  })
  assert.deepEqual([asked.would_cover.pattern, asked.would_cover_more.pattern], ['npm test', 'npm test *'])
  assert.deepEqual(json.budgets, [
    {
      id: 'b_1',
      workspace_id: WORKSPACE_ID,
      task_id: null,
      max_cost_usd: 3,
      cost_usd: 3.02,
      unknown_turns: 0,
      waiting: 1,
      text: "today's budget of this workspace, $3.00, is spent ($3.02); 1 message waits",
      asked_at: NOW,
    },
  ])
  const rest = (await call(`GET /pending?after=${START_MS}.asks`)).json
  assert.deepEqual([rest.pending, rest.budgets], [[hidden], []])
  const elsewhere = (await call('GET /pending?workspace_id=ws_other')).json
  assert.deepEqual(elsewhere, { pending: [], budgets: [] })
})

test('GW-9 an ask is allowed or denied once, in the name of the person who answers', async (t) => {
  const pending = recordPart<PendingAsks>({ answer: undefined, allowAlways: RULE })
  const { store, insert } = openTestStore(t)
  const { made_by, workspace_id, id, tool, scope, pattern } = RULE_VIEW
  const maker = { made_by, made_principal: 'user:ana', made_door: 'http' }
  await insert('permission_rules', { id, workspace_id, tool, scope, pattern, ...maker, made_at: START_MS })
  const call = await openRoutes(t, { pending: pending.part, store })
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

test('CL-7 the dead letters of a workspace are listed, replayed and discarded; only owners see what the program printed', async (t) => {
  const { store } = await openWaitingStore(t)
  const deadLetters = recordPart<DeadLetters>({ replay: 't_2', discard: undefined })
  const call = await openRoutes(t, { store, deadLetters: deadLetters.part })
  const path = `/workspaces/${WORKSPACE_ID}/dead-letters`
  const view = {
    id: 'fails',
    task_id: 'fails',
    context_id: 'y',
    code: 'exit',
    reason: 'it broke',
    failures: 4,
    losses: 1,
    sender: SENDER,
    message: { messageId: 's', role: 'ROLE_USER', parts: [{ text: 'back up' }] },
    at: NOW,
  }
  const owners = (await call(`GET ${path}`, { role: 'member' })).json
  assert.deepEqual(owners, { dead_letters: [{ ...view, detail: 'stderr' }] })
  assert.deepEqual((await call(`GET ${path}`, { role: 'viewer' })).json, { dead_letters: [view] })
  assert.deepEqual((await call(`GET ${path}?after=${START_MS}.fails`)).json, { dead_letters: [] })
  const replayed = await call(`POST ${path}/d_1/replay`)
  assert.deepEqual([replayed.status, replayed.json], [200, { task_id: 't_2' }])
  assert.equal((await call(`DELETE ${path}/d_1`)).status, 204)
  assert.deepEqual(deadLetters.take(), [
    ['replay', WORKSPACE_ID, 'd_1'],
    ['discard', WORKSPACE_ID, 'd_1'],
  ])
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
