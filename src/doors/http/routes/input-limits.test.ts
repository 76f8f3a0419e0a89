import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor } from '../../../../test/harness/open-door.ts'
import { openTestStore } from '../../../../test/harness/stores/sqlite-store.ts'
import { createMemories } from '../../../workspaces/memories.ts'
import { createWorkspaceRegistry } from '../../../workspaces/registry.ts'

test('PL-9 PL-2 the texts and numbers of a workspace are accepted up to their limits', async (t) => {
  const { sendRequest } = await openDoor(t)
  const create = async (fields: object) => {
    const body = JSON.stringify({ name: 'n', runtime: 'mock', ...fields })
    return (await sendRequest('/workspaces', { method: 'POST', token: secretOf('admin'), body })).status
  }
  const edges: readonly (readonly [string, object, object])[] = [
    ['name', { name: 'n'.repeat(100) }, { name: 'n'.repeat(101) }],
    ['role', { role: 'r'.repeat(2000) }, { role: 'r'.repeat(2001) }],
    ['model', { model: 'm'.repeat(200) }, { model: 'm'.repeat(201) }],
    ['max_attempts', { max_attempts: 100 }, { max_attempts: 101 }],
    ['max_concurrent_tasks', { max_concurrent_tasks: 1000 }, { max_concurrent_tasks: 1001 }],
    ['tier', { tier: 2 }, { tier: 1 }],
  ]
  for (const [field, accepted, refused] of edges)
    assert.deepEqual([await create(accepted), await create(refused)], [201, 400], field)
})

test('AG-17 a secret in the settings is shown as [hidden]', async (t) => {
  const { sendRequest } = await openDoor(t)
  const body = JSON.stringify({ name: 'n', runtime_config: { api_key: 'secret', max_tokens: 5 } })
  const { json } = await sendRequest('/workspaces', { method: 'POST', token: secretOf('admin'), body })
  assert.deepEqual(json.runtime_config, { api_key: '[hidden]', max_tokens: 5 })
})

test('PL-9 TW-7 a memory, a query and a page have limits', async (t) => {
  const { store } = openTestStore(t)
  const memories = createMemories({ store, find: async (id) => ({ id }) })
  const { sendRequest } = await openDoor(t, { memories })
  const path = `/workspaces/${WORKSPACE_ID}/memories`
  const token = secretOf('admin')
  const remember = async (length: number) => {
    const body = JSON.stringify({ text: 'x'.repeat(length) })
    return (await sendRequest(path, { method: 'POST', token, body })).status
  }
  const find = async (query: string) => (await sendRequest(`${path}?${query}`, { token })).status
  assert.deepEqual([await remember(16_000), await remember(16_001)], [201, 400])
  assert.deepEqual([await find('limit=100'), await find('limit=101')], [200, 400])
  assert.deepEqual([await find(`query=${'x'.repeat(1000)}`), await find(`query=${'x'.repeat(1001)}`)], [200, 400])
})

test('PL-4 a heartbeat is answered with the 30 s until the next one, so that two lost ones do no harm', async (t) => {
  const { store, addWorkspace } = openTestStore(t)
  await addWorkspace({ id: WORKSPACE_ID, hosted: 0 })
  const { sendRequest } = await openDoor(t, { registry: createWorkspaceRegistry(store) })
  const body = JSON.stringify({ workspace_id: WORKSPACE_ID })
  const { json } = await sendRequest('/registry/heartbeat', { method: 'POST', token: secretOf('workspace'), body })
  assert.deepEqual([json.status, json.heartbeat_seconds], ['online', 30])
})
