import assert from 'node:assert/strict'
import test from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes } from '../../../../test/harness/clients/route-calls.ts'
import { openTestStore, START_MS } from '../../../../test/harness/stores/sqlite-store.ts'

const DAY_MS = 24 * 3600_000
const SUM = {
  turns: 1,
  unknown_turns: 0,
  unknown_cost_turns: 0,
  input_tokens: 30,
  output_tokens: 40,
  cost_usd: 0.5,
  duration_ms: 6,
}
const NOTHING = { turns: 0, unknown_turns: 0, unknown_cost_turns: 0 }
const UNKNOWN = { input_tokens: null, output_tokens: null, cost_usd: null, duration_ms: null }

/** A store with turns of a workspace, each so many days ago. */
async function storeWithTurns(t: test.TestContext, daysAgo: readonly number[]) {
  const { store, insert, addWorkspace } = openTestStore(t)
  await addWorkspace({ id: WORKSPACE_ID, name: 'shop' })
  await insert('tasks', { id: 't', workspace_id: WORKSPACE_ID, conversation_id: 'c', context_id: 'x', state: 'done' })
  for (const [index, days] of daysAgo.entries()) {
    const used = { duration_ms: 6, input_tokens: 30, output_tokens: 40, cost_usd: 0.5 }
    const turn = { message_id: `m_${index}`, workspace_id: WORKSPACE_ID, ended_at: START_MS - days * DAY_MS }
    await insert('turn_usage', { ...turn, ...used })
  }
  return { store, insert }
}

test('RT-13 the usage of a workspace is shown by day, conversation and message, of 7 days and 20 messages', async (t) => {
  const { store } = await storeWithTurns(t, [6, 7, ...Array(20).fill(0)])
  const call = await openRoutes(t, { store })
  const path = `/workspaces/${WORKSPACE_ID}/usage`
  const { json } = await call(`GET ${path}`)
  assert.deepEqual([json.total.turns, json.messages.length], [21, 20])
  assert.deepEqual(json.days.at(-1), { day: '2026-01-09', ...SUM })
  assert.deepEqual(
    json.conversations.map((one: { turns: number; context_id: string }) => [one.context_id, one.turns]),
    [['x', 21]],
  )
  assert.deepEqual((await call(`GET ${path}?days=8&messages=500`)).json.messages.at(-1), {
    message_id: 'm_1',
    task_id: 't',
    ...SUM,
  })
  assert.deepEqual((await call(`GET ${path}?days=1&messages=0`)).json.messages, [])
  for (const wrong of ['days=0', 'messages=501', 'messages=x', 'days=100000'])
    assert.equal((await call(`GET ${path}?${wrong}`)).status, 400, wrong)
})

test('RT-13 the usage of all workspaces is shown for 30 days, with the names of those that still exist', async (t) => {
  const { store, insert } = await storeWithTurns(t, [29, 30])
  await insert('turn_usage', { message_id: 'm_gone', workspace_id: 'ws_gone', ended_at: START_MS })
  const call = await openRoutes(t, { store })
  const gone = { ...NOTHING, ...UNKNOWN, turns: 1, unknown_turns: 1, unknown_cost_turns: 1 }
  assert.deepEqual((await call('GET /usage', { role: 'viewer' })).json, {
    total: { ...SUM, turns: 2, unknown_turns: 1, unknown_cost_turns: 1 },
    days: [
      { day: '2026-01-15', ...gone },
      { day: '2025-12-17', ...SUM },
    ],
    workspaces: [
      { workspace_id: WORKSPACE_ID, name: 'shop', ...SUM },
      { workspace_id: 'ws_gone', name: null, ...gone },
    ],
  })
  assert.equal((await call('GET /usage?days=1')).json.workspaces.length, 1)
  assert.equal((await call('GET /usage?days=0')).status, 400)
})

test('CL-7 the overview shows what each workspace used today and what in it needs a person, 200 at a time', async (t) => {
  const { store, insert } = await storeWithTurns(t, [0])
  const later = Array.from({ length: 200 }, (_, index) => `ws_${1000 + index}`)
  for (const id of later) await insert('workspace_load', { workspace_id: id, hosted: 1, slots: 1 })
  await insert('messages', { workspace_id: WORKSPACE_ID, state: 'dead' })
  await insert('tasks', { workspace_id: WORKSPACE_ID, state: 'TASK_STATE_INPUT_REQUIRED' })
  for (const n of [1, 2, 3]) await insert('messages', { id: `p${n}`, workspace_id: WORKSPACE_ID, state: 'waiting' })
  for (const n of [1, 2, 3])
    await insert('messages', { workspace_id: 'ws_1000', state: 'queued', parent_id: `p${n}`, child_open: 1 })
  const call = await openRoutes(t, { store })
  const view = { id: WORKSPACE_ID, dead_letters: 1, questions: 1, today: SUM }
  const { json } = await call('GET /overview', { role: 'viewer' })
  assert.deepEqual([json.workspaces.length, json.workspaces[0], json.next], [200, view, 'ws_1198'])
  const idle = { dead_letters: 0, questions: 0, today: { ...NOTHING, ...UNKNOWN } }
  assert.deepEqual((await call('GET /overview?after=ws_1198&limit=1')).json, {
    workspaces: [{ id: 'ws_1199', ...idle }],
  })
  assert.deepEqual((await call('GET /delegations/open')).json, {
    delegations: [{ from: WORKSPACE_ID, to: 'ws_1000', count: 3 }],
  })
  for (const limit of [0, 201]) assert.equal((await call(`GET /overview?limit=${limit}`)).status, 400)
})
