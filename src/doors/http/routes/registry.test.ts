import assert from 'node:assert/strict'
import test from 'node:test'
import { createFakePlatform, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import type { WorkspaceRegistry } from '../../../workspaces/registry.ts'

const known = async () => {
  const found = await createFakePlatform().workspaces.get(WORKSPACE_ID)
  assert.ok(found)
  return found
}
const REPORT = {
  current_task: 'x',
  active_tasks: 2,
  error_rate: 0.5,
  runtime_state: 'ok',
  uptime_seconds: 3,
  problem: 'none',
}

test('PL-4 a report is stored as it was sent, and answered with the status and the time of the next one', async (t) => {
  const workspace = { ...(await known()), queueDepth: 3 }
  const registry = recordPart<WorkspaceRegistry>({
    register: workspace,
    heartbeat: { ...workspace, status: 'degraded', statusReason: 'it failed' },
  })
  const call = await openRoutes(t, { registry: registry.part })
  const body = { workspace_id: WORKSPACE_ID, ...REPORT }
  const registered = await call('POST /registry/register', { role: 'workspace', body })
  const view = { id: WORKSPACE_ID, status: 'online', status_reason: null, queue_depth: 3, heartbeat_seconds: 30 }
  assert.deepEqual([registered.status, registered.json], [200, view])
  const beat = await call('POST /registry/heartbeat', { body: { workspace_id: WORKSPACE_ID } })
  assert.deepEqual(beat.json, { ...view, status: 'degraded', status_reason: 'it failed' })
  assert.deepEqual(registry.take(), [
    ['register', WORKSPACE_ID, REPORT],
    ['heartbeat', WORKSPACE_ID, {}],
  ])
  const other = await call('POST /registry/heartbeat', { role: 'workspace', body: { workspace_id: 'ws_other' } })
  assert.deepEqual([other.status, registry.calls], [403, []])
})

test('PL-4 each field of a report has its range: its ends pass, one more is refused by name', async (t) => {
  const registry = recordPart<WorkspaceRegistry>({ heartbeat: await known() })
  const call = await openRoutes(t, { registry: registry.part })
  const beat = (fields: object) => call('POST /registry/heartbeat', { body: { workspace_id: WORKSPACE_ID, ...fields } })
  const ranges: [field: string, within: unknown[], outside: unknown[]][] = [
    ['workspace_id', ['w', 'w'.repeat(200)], ['', 'w'.repeat(201)]],
    ['current_task', ['', 'x'.repeat(500)], ['x'.repeat(501)]],
    ['active_tasks', [0, 100_000], [-1, 100_001, 1.5]],
    ['error_rate', [0, 1], [-0.1, 1.1]],
    ['runtime_state', ['x'.repeat(200)], ['x'.repeat(201)]],
    ['uptime_seconds', [0], [-1]],
    ['problem', ['x'.repeat(500)], ['x'.repeat(501)]],
  ]
  for (const [field, within, outside] of ranges) {
    for (const value of within) assert.equal((await beat({ [field]: value })).status, 200, `${field} ${value}`)
    for (const value of outside) {
      const { status, json } = await beat({ [field]: value })
      assert.equal(status, 400, `${field} ${value}`)
      assert.ok(json.error.message.includes(`"${field}"`), json.error.message)
    }
  }
})

test('PL-4 a workspace finds another one, and its peers, with their addresses and without paths', async (t) => {
  const workspace = await known()
  const peer = { ...workspace, parentId: 'ws_parent', statusReason: 'missing "/home/ana/agent"' }
  const registry = recordPart<WorkspaceRegistry>({ peers: [peer] })
  const call = await openRoutes(t, { registry: registry.part })
  const headers = { host: 'localhost:1' }
  const found = await call(`GET /registry/discover/${WORKSPACE_ID}`, { headers, role: 'workspace' })
  const url = `http://localhost:1/workspaces/${WORKSPACE_ID}/a2a`
  const view = {
    id: WORKSPACE_ID,
    name: 'echo',
    role: '',
    runtime: 'exec',
    status: 'online',
    status_reason: null,
    parent_id: null,
    url,
    card_url: `${url}/.well-known/agent-card.json`,
  }
  assert.deepEqual([found.status, found.json], [200, view])
  const { json } = await call(`GET /registry/${WORKSPACE_ID}/peers`, { headers, role: 'workspace' })
  assert.deepEqual(json, { peers: [{ ...view, parent_id: 'ws_parent', status_reason: 'missing "agent"' }] })
  assert.deepEqual(registry.take(), [['peers', WORKSPACE_ID]])
})
