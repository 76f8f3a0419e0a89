import assert from 'node:assert/strict'
import test from 'node:test'
import { createFakePlatform, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import { MoleculeError } from '../../../errors.ts'
import type { NewToken } from '../../../workspaces/tokens.ts'
import type { WorkspaceLifecycle, Workspaces } from '../../../workspaces/workspace.ts'

const PATH = `/workspaces/${WORKSPACE_ID}`
const known = async () => {
  const found = await createFakePlatform().workspaces.get(WORKSPACE_ID)
  assert.ok(found)
  return found
}
const VIEW = {
  id: WORKSPACE_ID,
  name: 'echo',
  role: '',
  runtime: 'exec',
  status: 'online',
  queue_depth: 0,
  running: 0,
  current_task: null,
  tier: 2,
  max_concurrent_tasks: 1,
  max_attempts: 4,
  working_dir: '/work',
  runtime_config: {},
  created_at: '2023-11-14T22:13:20.000Z',
}

test('PL-2 a dry run only checks a new workspace or a change, and answers with its warnings', async (t) => {
  const { workspaces } = createFakePlatform()
  const checks = recordPart<Pick<Workspaces, 'check'>>({ check: { ok: true, warnings: ['no effect'] } })
  const lifecycle = recordPart<WorkspaceLifecycle>({ checkChange: { ok: false, reason: 'no program' } })
  const call = await openRoutes(t, {
    workspaces: { ...workspaces, ...checks.part, create: () => assert.fail('nothing is created') },
    lifecycle: lifecycle.part,
  })
  const created = await call('POST /workspaces?dry_run=true', { body: { name: 'new' } })
  assert.deepEqual([created.status, created.json], [200, { ok: true, warnings: ['no effect'] }])
  assert.deepEqual(checks.take(), [['check', { name: 'new' }]])
  const changed = await call(`PATCH ${PATH}?dry_run=true`, { body: { name: 'new' } })
  assert.deepEqual([changed.status, changed.json], [200, { ok: false, reason: 'no program', warnings: [] }])
  assert.deepEqual(lifecycle.take(), [['checkChange', WORKSPACE_ID, { name: 'new' }]])
})

test('CN-1 a new external workspace comes with the token and the command of its bridge; any other without', async (t) => {
  const { workspaces, tokens } = createFakePlatform()
  const warned: Workspaces = {
    ...workspaces,
    create: async (input) => ({ ...(await workspaces.create(input)), warnings: ['the name is taken'] }),
  }
  const made: unknown[] = []
  const recording = {
    ...tokens,
    create(input: NewToken) {
      made.push(input)
      return tokens.create(input)
    },
  }
  const call = await openRoutes(t, { workspaces: warned, tokens: recording })
  const headers = { host: 'localhost:1' }
  const { json } = await call('POST /workspaces', { headers, body: { name: 'far', runtime: 'external' } })
  assert.deepEqual(made, [{ name: 'bridge of far', role: 'workspace', workspaceId: json.id }])
  assert.equal(json.connect, `molecule connect ${json.id} --token ${json.auth_token} --api-url http://localhost:1`)
  assert.deepEqual(json.warnings, ['the name is taken'])
  const plain = await (await openRoutes(t, {}))('POST /workspaces', { body: { name: 'near' } })
  assert.deepEqual([plain.json.auth_token, plain.json.connect, plain.json.warnings], [undefined, undefined, undefined])
})

test('PL-2 a workspace is changed, restarted, paused, resumed and stopped by its id', async (t) => {
  const workspace = await known()
  const lifecycle = recordPart<WorkspaceLifecycle>({
    change: workspace,
    restart: workspace,
    pause: workspace,
    resume: workspace,
    stop: { workspace, canceled: ['t_1'] },
  })
  const call = await openRoutes(t, { lifecycle: lifecycle.part })
  const change = { name: 'new', model: null, parent_id: null, permission: null, url: 'https://a.test/' }
  assert.deepEqual((await call(`PATCH ${PATH}`, { body: change })).json, VIEW)
  for (const action of ['restart', 'pause', 'pause?now=true', 'resume'])
    assert.deepEqual((await call(`POST ${PATH}/${action}`)).json, VIEW, action)
  assert.deepEqual((await call(`POST ${PATH}/stop`)).json, { ...VIEW, canceled: ['t_1'] })
  const wanted = {
    name: 'new',
    model: null,
    parentId: null,
    permission: null,
    runtimeConfig: { url: 'https://a.test/' },
  }
  assert.deepEqual(lifecycle.take(), [
    ['change', WORKSPACE_ID, wanted],
    ['restart', WORKSPACE_ID],
    ['pause', WORKSPACE_ID, { now: false }],
    ['pause', WORKSPACE_ID, { now: true }],
    ['resume', WORKSPACE_ID],
    ['stop', WORKSPACE_ID],
  ])
})

test('PL-2 a workspace is deleted only when its name or id is repeated, and those below it only with cascade', async (t) => {
  const lifecycle = recordPart<WorkspaceLifecycle>({ remove: [WORKSPACE_ID] })
  const call = await openRoutes(t, { lifecycle: lifecycle.part })
  const needs = 'confirm=<the name or id of the workspace> in the query'
  const refused = async (query: string) => {
    const { status, json } = await call(`DELETE ${PATH}${query}`)
    return [status, json.error.message]
  }
  assert.deepEqual(await refused(''), [400, `deleting needs ${needs}`])
  assert.deepEqual(await refused('?confirm=other'), [400, `"other" is not its name: ${needs}`])
  assert.deepEqual(lifecycle.calls, [])
  const byName = await call(`DELETE ${PATH}?confirm=echo`)
  assert.deepEqual([byName.status, byName.json], [200, { deleted: [WORKSPACE_ID] }])
  await call(`DELETE ${PATH}?confirm=${WORKSPACE_ID}&cascade=true`)
  assert.deepEqual(lifecycle.take(), [
    ['remove', WORKSPACE_ID, { cascade: false }],
    ['remove', WORKSPACE_ID, { cascade: true }],
  ])
})

test('TW-9 stop-all stops the busy workspaces first; one that fails is named, and one that is gone is not', async (t) => {
  const workspace = await known()
  const named = (name: string, running: number) => ({ ...workspace, id: `ws_${name}`, name, running })
  const all = [named('idle', 0), named('busy', 2), named('gone', 1), named('broken', 1)]
  const order: string[] = []
  const stop: WorkspaceLifecycle['stop'] = async (id) => {
    order.push(id)
    if (id === 'ws_gone') throw new MoleculeError('not_found', 'it is deleted')
    if (id === 'ws_broken') throw new MoleculeError('store_unavailable', 'the store is away')
    return { workspace: { ...workspace, queueDepth: 3 }, canceled: [`t_${id}`] }
  }
  const fakePlatform = createFakePlatform()
  const workspaces = { ...fakePlatform.workspaces, all: async () => all }
  const call = await openRoutes(t, { workspaces, lifecycle: { ...fakePlatform.lifecycle, stop } })
  const { json } = await call('POST /stop', { role: 'member' })
  assert.deepEqual(json, {
    stopped: [
      { id: 'ws_busy', name: 'busy', canceled: ['t_ws_busy'], queue_depth: 3 },
      { id: 'ws_idle', name: 'idle', canceled: ['t_ws_idle'], queue_depth: 3 },
    ],
    failed: [{ id: 'ws_broken', name: 'broken', message: 'the store is away' }],
  })
  assert.deepEqual(order, ['ws_busy', 'ws_gone', 'ws_broken', 'ws_idle'])
})
