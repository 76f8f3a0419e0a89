import assert from 'node:assert/strict'
import test from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { type OpenDoor, openDoor } from '../../../../test/harness/open-door.ts'

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
