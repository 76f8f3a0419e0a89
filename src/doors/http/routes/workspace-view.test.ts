import assert from 'node:assert/strict'
import test from 'node:test'
import { createFakePlatform, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes } from '../../../../test/harness/clients/route-calls.ts'
import { newWorkspaceSchema, workspaceChangeSchema } from '../../../api/workspaces.ts'
import type { CardFacts, Workspace, WorkspaceLoad } from '../../../workspaces/workspace.ts'
import { toNewWorkspace, toWorkspaceChange, viewWorkspace } from './workspace-view.ts'

const QUIET: CardFacts = {
  deadLetters: 0,
  questions: 0,
  deliveries: 0,
  damagedReplies: 0,
  budgets: 0,
  today: { turns: 3, unknownTurns: 1, costUsd: 0.5 },
}
const WORKSPACE: Workspace & WorkspaceLoad = {
  id: WORKSPACE_ID,
  name: 'shop',
  role: 'sells',
  runtime: 'exec',
  tier: 2,
  maxConcurrentTasks: 1,
  maxAttempts: 4,
  workingDir: '/work',
  runtimeConfig: { cmd: 'cat' },
  status: 'online',
  createdAtMs: 1_700_000_000_000,
  queueDepth: 0,
  running: 0,
}
const AT = '2023-11-14T22:13:20.000Z'

/** What the card of the workspace says about the need for a person. */
const needsYou = (facts: Partial<CardFacts>, more: Partial<typeof WORKSPACE> = {}) =>
  viewWorkspace({ ...WORKSPACE, ...more, card: { ...QUIET, ...facts } }).needs_you

test('CV-1 a card says how many things wait for a person, and names the most urgent one', () => {
  assert.equal(needsYou({}), null)
  const urgent: [facts: Partial<CardFacts>, more: Partial<typeof WORKSPACE>, one: string, two: string][] = [
    [{}, { permissionsAsked: 1 }, 'a turn waits for your permission', '2 turns wait for your permission'],
    [{ questions: 1 }, {}, 'a message asks you a question', '2 messages ask you a question'],
    [{ budgets: 1 }, {}, 'a budget is spent', '2 budgets are spent'],
    [{ deadLetters: 1 }, {}, 'a message failed for good', '2 messages failed for good'],
    [{ deliveries: 1 }, {}, 'an answer may not have arrived', '2 answers may not have arrived'],
  ]
  const twice = (ones: object) => Object.fromEntries(Object.keys(ones).map((name) => [name, 2]))
  for (const [facts, more, one, two] of urgent) {
    assert.deepEqual(needsYou(facts, more), { count: 1, reason: one })
    assert.deepEqual(needsYou(twice(facts), twice(more)), { count: 2, reason: two })
  }
  const failed = { status: 'failed', statusReason: 'no program' } as const
  assert.deepEqual(needsYou({}, failed), { count: 1, reason: 'no program' })
  const counts = { questions: 1, budgets: 1, deadLetters: 1, deliveries: 1 }
  const reasons = [
    needsYou(counts, { ...failed, permissionsAsked: 1 }),
    needsYou(counts, failed),
    needsYou({ ...counts, questions: 0 }, failed),
    needsYou({ deadLetters: 1, deliveries: 1 }, failed),
    needsYou({ deadLetters: 1, deliveries: 1 }),
  ]
  assert.deepEqual(reasons, [
    { count: 6, reason: 'a turn waits for your permission' },
    { count: 5, reason: 'a message asks you a question' },
    { count: 4, reason: 'a budget is spent' },
    { count: 3, reason: 'no program' },
    { count: 2, reason: 'a message failed for good' },
  ])
})

test('PL-8 each role sees of a workspace what its work needs, and no more', async (t) => {
  const atMs = 1_700_000_000_000
  const fakePlatform = createFakePlatform()
  const workspace: typeof WORKSPACE = {
    ...WORKSPACE,
    statusReason: 'missing "/home/ana/agent"',
    status: 'failed',
    model: 'large',
    parentId: 'p',
    permission: 'ask',
    team: 'shop',
    currentTask: 'Hello',
    currentSinceMs: atMs,
    statusText: { text: 'busy', atMs },
    card: { ...QUIET, lastAnsweredAtMs: atMs },
  }
  const call = await openRoutes(t, { workspaces: { ...fakePlatform.workspaces, get: async () => workspace } })
  const seen = async (role: 'member' | 'viewer' | 'caller' | 'workspace') =>
    (await call(`GET /workspaces/${WORKSPACE_ID}`, { role })).json
  const base = {
    id: WORKSPACE_ID,
    name: 'shop',
    role: 'sells',
    runtime: 'exec',
    status: 'failed',
    queue_depth: 0,
    running: 0,
    model: 'large',
    parent_id: 'p',
    tier: 2,
    max_concurrent_tasks: 1,
    max_attempts: 4,
    permission: 'ask',
    team: 'shop',
    created_at: AT,
  }
  const work = {
    current_task: 'Hello',
    current_since: AT,
    last_answered_at: AT,
    today: { turns: 3, unknown_turns: 1, cost_usd: 0.5 },
  }
  const text = { status_text: 'busy', status_text_at: AT }
  const reason = 'missing "/home/ana/agent"'
  assert.deepEqual(await seen('member'), {
    ...base,
    ...work,
    ...text,
    status_reason: reason,
    needs_you: { count: 1, reason },
    working_dir: '/work',
    runtime_config: { cmd: 'cat' },
  })
  const shown = { ...base, status_reason: 'missing "agent"' }
  const needs = { needs_you: { count: 1, reason: 'missing "agent"' } }
  assert.deepEqual(await seen('viewer'), { ...shown, ...work, ...text, ...needs })
  assert.deepEqual(await seen('caller'), shown)
  assert.deepEqual(await seen('workspace'), { ...shown, ...text })
})

test('PL-8 a viewer sees that nothing waits, and a card without facts shows none', async (t) => {
  const fakePlatform = createFakePlatform()
  const open = async (workspace: typeof WORKSPACE) => {
    const call = await openRoutes(t, { workspaces: { ...fakePlatform.workspaces, get: async () => workspace } })
    return (await call(`GET /workspaces/${WORKSPACE_ID}`, { role: 'viewer' })).json
  }
  const quiet = await open({ ...WORKSPACE, card: QUIET })
  assert.deepEqual([quiet.needs_you, quiet.last_answered_at, quiet.status_reason], [null, undefined, undefined])
  assert.equal('needs_you' in (await open(WORKSPACE)), false)
})

test('PL-2 a change keeps a secret that comes back hidden, and refuses one that is hidden in part', () => {
  const stored = { env: { API_KEY: 'k' }, cmd: 'run --token t' }
  const change = (runtime_config?: object) =>
    toWorkspaceChange(workspaceChangeSchema.parse(runtime_config === undefined ? {} : { runtime_config }), stored)
  assert.deepEqual(change(), {})
  assert.deepEqual(change({}), { runtimeConfig: {} })
  assert.deepEqual(change({ api_key: '[hidden]', cmd: 'cat' }), { runtimeConfig: { cmd: 'cat' } })
  assert.deepEqual(change({ env: { API_KEY: '[hidden]' }, cmd: 'run --token [hidden]' }), { runtimeConfig: {} })
  const withUrl = { url: 'https://[hidden]@a.test' }
  assert.throws(() => toWorkspaceChange(withUrl, stored), { code: 'invalid_request' })
  assert.throws(() => toNewWorkspace({ name: 'x', ...withUrl }), { code: 'invalid_request' })
  assert.throws(() => change({ cmd: 'walk --token [hidden]' }), { code: 'invalid_request' })
  assert.throws(() => change({ env: { OTHER_KEY: '[hidden]' } }), {
    code: 'invalid_request',
    message: 'runtime_config.env holds a secret as "[hidden]": send the secret itself, or leave the key out',
  })
})

test('PL-2 each field of a workspace has its range: its ends pass, one more is refused', () => {
  const accepts = (fields: object) => newWorkspaceSchema.safeParse({ name: 'x', ...fields }).success
  const within = [
    ...[{ max_attempts: 1 }, { max_attempts: 100 }, { max_concurrent_tasks: 1 }, { max_concurrent_tasks: 1000 }],
    ...[{ working_dir: `/${'x'.repeat(4095)}` }, { url: 'u' }, { url: 'u'.repeat(2048) }, { runtime: 'r'.repeat(200) }],
    ...['ask', 'allowed_tools', 'bypass'].map((permission) => ({ permission })),
    { tier: 2 },
  ]
  for (const fields of within) assert.ok(accepts(fields), JSON.stringify(fields).slice(0, 60))
  const outside = [
    ...[{ max_attempts: 0 }, { max_attempts: 101 }, { max_concurrent_tasks: 0 }, { max_concurrent_tasks: 1001 }],
    ...[{ working_dir: `/${'x'.repeat(4096)}` }, { url: ' ' }, { url: 'u'.repeat(2049) }, { runtime: 'r'.repeat(201) }],
    ...[{ permission: 'never' }, { tier: 1 }, { tier: 3 }],
  ]
  for (const fields of outside) assert.ok(!accepts(fields), JSON.stringify(fields).slice(0, 60))
  const reason = (tier: number) => newWorkspaceSchema.safeParse({ name: 'x', tier }).error?.issues[0]?.message
  assert.equal(reason(3), 'must be 2')
  assert.match(String(reason(1)), /sandbox/)
})
