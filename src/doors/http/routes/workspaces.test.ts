import assert from 'node:assert/strict'
import test from 'node:test'
import { createFakePlatform, secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import { type OpenDoor, openDoor } from '../../../../test/harness/open-door.ts'
import { MoleculeError } from '../../../errors.ts'
import type { NewToken } from '../../../workspaces/tokens.ts'
import type { WorkspaceLifecycle, Workspaces } from '../../../workspaces/workspace.ts'

const create = ({ sendRequest }: OpenDoor, input: unknown) =>
  sendRequest('/workspaces', { method: 'POST', token: secretOf('admin'), body: JSON.stringify(input) })

test('PL-2 a workspace is created with every field, answered with 201 and found again', async (t) => {
  const opened = await openDoor(t)
  const input = {
    name: 'Ada',
    role: 'Backend engineer',
    runtime: 'exec',
    model: 'large',
    parent_id: WORKSPACE_ID,
    tier: 2,
    max_concurrent_tasks: 8,
    max_attempts: 2,
    working_dir: '/srv/ada',
    runtime_config: { cmd: 'cat', timeout: 5, list: ['a', { b: null }] },
  }
  const { status, json, headers } = await create(opened, input)
  assert.equal(status, 201)
  assert.deepEqual(json, {
    ...input,
    id: json.id,
    status: 'online',
    current_task: null,
    created_at: '2023-11-14T22:13:20.000Z',
  })
  assert.equal(headers.location, `/workspaces/${json.id}`)
  const found = await opened.sendRequest(`/workspaces/${json.id}`, { token: secretOf('admin') })
  assert.deepEqual(found.json, { ...json, queue_depth: 0, running: 0 })
})

test('PL-2 the list shows every workspace with its status and queue depth', async (t) => {
  const opened = await openDoor(t)
  await create(opened, { name: 'second' })
  const { json } = await opened.sendRequest('/workspaces', { token: secretOf('viewer') })
  assert.deepEqual(
    json.workspaces
      .map(({ name, status, queue_depth }: Record<string, unknown>) => [name, status, queue_depth])
      .toSorted(),
    [
      ['echo', 'online', 0],
      ['second', 'online', 0],
    ],
  )
})

test('PL-2 template and team are chosen when a workspace is created, and a change of them is refused', async (t) => {
  const { sendRequest } = await openDoor(t)
  const path = `/workspaces/${WORKSPACE_ID}`
  for (const field of ['template', 'team']) {
    const body = JSON.stringify({ [field]: 'other' })
    const { status, json } = await sendRequest(path, { method: 'PATCH', token: secretOf('admin'), body })
    assert.equal(status, 400, field)
    assert.match(json.error.message, new RegExp(`^"${field}" is not a field`))
  }
})

test('PL-23 the list has pages of 100, of any number up to 1,000, and a cursor, for people and for agents', async (t) => {
  const opened = await openDoor(t)
  for (let count = 1; count < 120; count++) await create(opened, { name: `n${count}`, parent_id: WORKSPACE_ID })
  const read = async (query: string, role: 'viewer' | 'workspace' = 'viewer') =>
    (await opened.sendRequest(`/workspaces${query}`, { token: secretOf(role) })).json
  for (const role of ['viewer', 'workspace'] as const) {
    const first = await read('', role)
    assert.equal(first.workspaces.length, 100)
    const rest = await read(`?after=${first.next}`, role)
    const ids = [...first.workspaces, ...rest.workspaces].map(({ id }: { id: string }) => id)
    assert.deepEqual([ids.length, new Set(ids).size, rest.next], [120, 120, undefined])
  }
  assert.deepEqual(
    [(await read('?limit=7')).workspaces.length, (await read('?limit=1000')).workspaces.length],
    [7, 120],
  )
  for (const wrong of ['?limit=0', '?limit=1001', '?limit=x'])
    assert.equal((await read(wrong)).error.code, 'invalid_request')
})

test('PL-2 invalid fields are refused by name', async (t) => {
  const opened = await openDoor(t)
  const wrong: readonly [string, unknown][] = [
    ['name', {}],
    ['name', { name: '' }],
    ['name', { name: '   ' }],
    ['name', { name: 'x'.repeat(101) }],
    ['name', { name: 7 }],
    ['role', { name: 'a', role: 'x'.repeat(2001) }],
    ['runtime', { name: 'a', runtime: '' }],
    ['model', { name: 'a', model: 3 }],
    ['tier', { name: 'a', tier: 3 }],
    ['tier', { name: 'a', tier: 1 }],
    ['max_concurrent_tasks', { name: 'a', max_concurrent_tasks: 0 }],
    ['max_concurrent_tasks', { name: 'a', max_concurrent_tasks: 1.5 }],
    ['max_concurrent_tasks', { name: 'a', max_concurrent_tasks: 1001 }],
    ['max_attempts', { name: 'a', max_attempts: 101 }],
    ['working_dir', { name: 'a', working_dir: 'relative' }],
    ['runtime_config', { name: 'a', runtime_config: [] }],
    ['maxAttempts', { name: 'a', maxAttempts: 3 }],
    ['__proto__', JSON.parse('{"name":"a","__proto__":{"x":1}}')],
  ]
  for (const [field, input] of wrong) {
    const { status, json } = await create(opened, input)
    assert.equal(status, 400, JSON.stringify(input))
    assert.equal(json.error.code, 'invalid_request')
    assert.ok(json.error.message.includes(`"${field}"`), json.error.message)
  }
  for (const body of [[], 'text', null, 7]) assert.equal((await create(opened, body)).status, 400)
})

test('a body that is not JSON, not UTF-8 or too deep is 400', async (t) => {
  const { sendRequest } = await openDoor(t)
  const deep = `{"name":"a","runtime_config":{"x":${'['.repeat(70)}${']'.repeat(70)}}}`
  const strings = `{"name":"a","runtime_config":{"x":"${'[\\"'.repeat(200)}"}}`
  const post = (body: string | Buffer) => sendRequest('/workspaces', { method: 'POST', token: secretOf('admin'), body })
  for (const body of ['', '{', 'name=x', Buffer.from('{"name":"\xff"}', 'latin1'), deep]) {
    const { status, json } = await post(body)
    assert.equal(status, 400, String(body).slice(0, 40))
    assert.equal(json.error.code, 'invalid_request')
  }
  assert.equal((await post(strings)).status, 201, 'brackets inside a text are not depth')
})

test('option values that look secret are not shown', async (t) => {
  const opened = await openDoor(t)
  const { json } = await create(opened, {
    name: 'a',
    runtime_config: {
      api_key: 'sk-1',
      nested: { PASSWORD: 'p', list: [{ authToken: 't' }] },
      max_tokens: 4096,
      cmd: 'cat',
    },
  })
  const hidden = '[hidden]'
  assert.deepEqual(json.runtime_config, {
    api_key: hidden,
    nested: { PASSWORD: hidden, list: [{ authToken: hidden }] },
    max_tokens: 4096,
    cmd: 'cat',
  })
})

test('an unknown workspace and an unknown path are 404 with code, message and id', async (t) => {
  const { sendRequest } = await openDoor(t)
  for (const path of ['/workspaces/ws_nobody', '/workspaces/%E0%A4%A', '/nowhere']) {
    const { status, json, headers } = await sendRequest(path, { token: secretOf('admin') })
    assert.equal(status, 404, path)
    assert.equal(json.error.code, 'not_found')
    assert.equal(json.error.id, headers['x-request-id'])
  }
})

test('a defect in a route shows its id and nothing internal; the log has the whole error', async (t) => {
  const opened = await openDoor(t)
  const { status, json, text } = await create(opened, { name: 'defect' })
  assert.equal(status, 500)
  assert.equal(json.error.code, 'internal')
  assert.doesNotMatch(text, /inside|TypeError/)
  const line = opened.fakePlatform.logged.find(({ requestId }) => requestId === json.error.id)
  assert.match(JSON.stringify(line), /cannot read \\"inside/)
})

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

test('PL-9 PL-2 the texts and numbers of a workspace are accepted up to their limits', async (t) => {
  const opened = await openDoor(t)
  const statusOf = async (fields: object) => (await create(opened, { name: 'n', runtime: 'mock', ...fields })).status
  const edges: readonly (readonly [string, object, object])[] = [
    ['name', { name: 'n'.repeat(100) }, { name: 'n'.repeat(101) }],
    ['role', { role: 'r'.repeat(2000) }, { role: 'r'.repeat(2001) }],
    ['model', { model: 'm'.repeat(200) }, { model: 'm'.repeat(201) }],
    ['max_attempts', { max_attempts: 100 }, { max_attempts: 101 }],
    ['max_concurrent_tasks', { max_concurrent_tasks: 1000 }, { max_concurrent_tasks: 1001 }],
    ['tier', { tier: 2 }, { tier: 1 }],
  ]
  for (const [field, accepted, refused] of edges)
    assert.deepEqual([await statusOf(accepted), await statusOf(refused)], [201, 400], field)
})

test('AG-17 a secret in the settings is shown as [hidden]', async (t) => {
  const { json } = await create(await openDoor(t), { name: 'n', runtime_config: { api_key: 'secret', max_tokens: 5 } })
  assert.deepEqual(json.runtime_config, { api_key: '[hidden]', max_tokens: 5 })
})
