import assert from 'node:assert/strict'
import test from 'node:test'
import { createFakePlatform, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes } from '../../../../test/harness/clients/route-calls.ts'
import { openTestStore, START_MS } from '../../../../test/harness/stores/sqlite-store.ts'
import { newWorkspaceSchema, workspaceChangeSchema } from '../../../api/workspaces.ts'
import type { Workspace, WorkspaceLoad } from '../../../workspaces/workspace.ts'
import { toNewWorkspace, toWorkspaceChange } from './workspace-body.ts'

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
  }
  const { store, insert } = openTestStore(t)
  const own = { workspace_id: WORKSPACE_ID }
  await insert('workspace_load', { ...own, slots: 1, hosted: 1 })
  await insert('tasks', { ...own, state: 'TASK_STATE_COMPLETED', updated_at: atMs })
  for (const cost_usd of [0.25, 0.25, null]) await insert('turn_usage', { ...own, cost_usd, ended_at: START_MS })
  const call = await openRoutes(t, { store, workspaces: { ...fakePlatform.workspaces, get: async () => workspace } })
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

test('PL-8 a viewer sees that nothing waits, and a workspace that is gone has no card', async (t) => {
  const { store, insert } = openTestStore(t)
  const { workspaces } = createFakePlatform()
  const call = await openRoutes(t, { store, workspaces: { ...workspaces, get: async () => WORKSPACE } })
  const read = async () => (await call(`GET /workspaces/${WORKSPACE_ID}`, { role: 'viewer' })).json
  assert.equal('needs_you' in (await read()), false)
  await insert('workspace_load', { workspace_id: WORKSPACE_ID, slots: 1, hosted: 1 })
  const quiet = await read()
  assert.deepEqual([quiet.needs_you, quiet.last_answered_at, quiet.status_reason], [null, undefined, undefined])
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
