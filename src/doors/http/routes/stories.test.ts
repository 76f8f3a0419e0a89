import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes } from '../../../../test/harness/clients/route-calls.ts'
import { openDoor, sendParams } from '../../../../test/harness/open-door.ts'
import { openTestStore } from '../../../../test/harness/stores/sqlite-store.ts'
import { withBudget } from '../../../protocol/delegation.ts'

const AT = 1_700_000_000_000
const at = (seconds: number) => new Date(AT + seconds * 1000).toISOString()
const SENDER = { kind: 'person', id: 'a', name: 'ana', door: 'http' } as const
const PEER = 'ws_peer'

/** A store with a task that delegated to a peer, and its budget. */
async function openTree(t: TestContext) {
  const opened = openTestStore(t)
  const { insert } = opened
  await opened.addWorkspace({ id: WORKSPACE_ID, name: 'first' })
  const add = async (id: string, row: { readonly workspace_id: string; readonly root_id: string | null }) => {
    const { workspace_id } = row
    const place = { workspace_id, conversation_id: `c_${id}` }
    const principal = row.root_id === null ? 'people' : `ws:${WORKSPACE_ID}/c`
    await insert('tasks', { ...place, id, principal, state: 'TASK_STATE_WORKING', updated_at: AT })
    const parts = [{ text: `Hello ${id}` }]
    const message = { messageId: `s_${id}`, role: 'ROLE_USER', parts, ...withBudget(5) }
    const envelope = JSON.stringify({ method: 'SendMessage', params: { message } })
    const sent = { envelope, sender: JSON.stringify(SENDER), admitted_at: AT, leased_at: AT + 1000, state: 'leased' }
    await insert('messages', { ...place, ...sent, id, task_id: id, root_id: row.root_id, parent_id: row.root_id })
  }
  await add('t_0', { workspace_id: WORKSPACE_ID, root_id: null })
  await add('t_1', { workspace_id: PEER, root_id: 't_0' })
  await insert('budgets', {
    id: 't_0',
    workspace_id: WORKSPACE_ID,
    root_id: 't_0',
    task_id: 't_0',
    limit_usd: 5,
    state: 'open',
  })
  await opened.run('update messages set delegation = $1', JSON.stringify({ budgets: ['t_0'] }))
  return opened
}

const TASK = {
  state: 'TASK_STATE_WORKING',
  turns: 1,
  sent_at: at(0),
  started_at: at(1),
}
const ROOT = {
  ...TASK,
  task_id: 't_0',
  parent_task_id: null,
  depth: 0,
  workspace_id: WORKSPACE_ID,
  workspace_name: 'first',
  text: 'Hello t_0',
}
const CHILD = {
  ...TASK,
  task_id: 't_1',
  parent_task_id: 't_0',
  depth: 1,
  workspace_id: PEER,
  workspace_name: null,
  text: 'Hello t_1',
}
const BUDGET = { max_cost_usd: 5, cost_usd: 0, unknown_turns: 0, state: 'open', task_id: 't_0' }
const TREE = { tasks: [ROOT, CHILD], hidden: 0, cost_usd: 0, unknown_turns: 0, budget: BUDGET }

test('CV-4 the delegation trees of a workspace are read in pages of 10, within what the caller may see', async (t) => {
  const { store } = await openTree(t)
  const call = await openRoutes(t, { store })
  const path = `/workspaces/${WORKSPACE_ID}/delegations`
  assert.deepEqual((await call(`GET ${path}`)).json, { trees: [TREE] })
  assert.deepEqual((await call(`GET ${path}?limit=1`)).json, { trees: [TREE], next: `${AT}.t_0` })
  assert.deepEqual((await call(`GET ${path}?limit=20&after=${AT}.t_0`)).json, { trees: [] })
  const { trees } = (await call(`GET ${path}`, { role: 'workspace' })).json
  assert.deepEqual(trees, [{ tasks: [ROOT, CHILD], hidden: 0 }])
  for (const limit of [0, 21]) assert.equal((await call(`GET ${path}?limit=${limit}`)).status, 400)
})

test('CL-1 the story of a message has its steps, deliveries, tree and budgets, within what the caller may see', async (t) => {
  const { store } = await openTree(t)
  const call = await openRoutes(t, { store })
  const { steps, ...story } = (await call('GET /messages/t_0/story')).json
  assert.deepEqual(steps[0], { at: at(0), type: 'admitted', text: 'admitted from person "ana" through http' })
  assert.deepEqual(story, {
    message_id: 't_0',
    task_id: 't_0',
    workspace_id: WORKSPACE_ID,
    context_id: 'c',
    sender: SENDER,
    sender_message_id: 's_t_0',
    text: 'Hello t_0',
    task_state: 'TASK_STATE_WORKING',
    deliveries: [],
    tree: TREE,
    budgets: [BUDGET],
  })
  const later = (await call('GET /messages/t_0/story?after=0.0.0.0')).json
  assert.deepEqual([later.tree, later.budgets], [undefined, undefined])
  const missing = await call('GET /messages/m_1/story')
  assert.deepEqual([missing.status, missing.json.error.message], [404, 'there is no message or task m_1'])
  assert.equal((await call('GET /messages/t_0/story', { role: 'caller' })).status, 404)
  assert.equal((await call('GET /messages/t_0/story?after=x')).status, 400)
})

test('TW-3 a workspace that reads the result of its delegation has received it', async (t) => {
  const opened = await openDoor(t)
  const sibling = await opened.fakePlatform.workspaces.create({ name: 'near' })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: sendParams('delegated') })
  const token = 'conversation-secret'
  const sent = await opened.sendRequest(`/workspaces/${sibling.id}/a2a`, { method: 'POST', token, body })
  const { id } = sent.json.result.task
  const before = opened.fakePlatform.readResults.length
  await opened.sendRequest(`/tasks/${id}`, { token })
  const marked = opened.fakePlatform.readResults.slice(before)
  assert.deepEqual(
    marked.map(([taskId]) => taskId),
    [id],
  )
})
