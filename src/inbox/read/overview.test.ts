import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { NOON_MS, openStoredRows } from '../../../test/fakes/stored-rows.ts'
import { reportLoad } from './load-report.ts'
import { createOverview } from './overview.ts'

const MIDNIGHT_MS = NOON_MS - 12 * 3600_000
const NOTHING = {
  turns: 0,
  unknownTurns: 0,
  unknownCostTurns: 0,
  inputTokens: null,
  outputTokens: null,
  costUsd: null,
  durationMs: null,
}

async function openOverview(t: TestContext) {
  const rows = await openStoredRows(t)
  const overview = createOverview(rows.store)
  const attention = async () => {
    const { workspaces } = await overview.read({ limit: 10 })
    return workspaces.map(({ id, deadLetters, questions }) => [id, deadLetters, questions])
  }
  return { ...rows, overview, attention }
}

test('CL-7 the overview counts the dead letters of each workspace that no person has handled', async (t) => {
  const { add, attention } = await openOverview(t)
  const dead = (id: string, more: object = {}) => ({ id, conversation_id: id, state: 'dead', ...more })
  await add({
    workspace_load: ['ws_1', 'ws_2', 'ws_3'].map((id) => ({ workspace_id: id })),
    messages: [
      ...[dead('a'), dead('b'), dead('c'), dead('replayed', { replayed_as: 'x' })],
      ...[dead('discarded', { discarded_at: NOON_MS }), dead('done', { state: 'done' })],
      dead('d', { workspace_id: 'ws_2' }),
    ],
  })
  assert.deepEqual(await attention(), [
    ['ws_1', 3, 0],
    ['ws_2', 1, 0],
    ['ws_3', 0, 0],
  ])
})

test('CL-7 the overview counts the questions to people among the last 100 tasks of each workspace', async (t) => {
  const { add, attention } = await openOverview(t)
  const asking = { state: 'TASK_STATE_INPUT_REQUIRED' }
  const ask = (taskId: string, more: object = {}) => ({ message_id: taskId, task_id: taskId, tool: 'Bash', ...more })
  const plain = (workspaceId: string, count: number) =>
    Array.from({ length: count }, (_, n) => ({ id: `${workspaceId}-${n}`, workspace_id: workspaceId }))
  await add({
    workspace_load: ['ws_1', 'ws_2', 'ws_3'].map((id) => ({ workspace_id: id })),
    tasks: [
      { id: 'q1', ...asking },
      { id: 'q2', state: 'TASK_STATE_AUTH_REQUIRED', updated_at: NOON_MS - 1 },
      { id: 'q3', ...asking },
      { id: 'permission', ...asking },
      { id: 'second permission', ...asking },
      { id: 'of a program', ...asking, principal: 'token:1' },
      ...plain('ws_1', 4),
      { id: 'q4', ...asking, workspace_id: 'ws_2', updated_at: NOON_MS - 1 },
      ...plain('ws_2', 99),
      { id: 'q5', ...asking, workspace_id: 'ws_3', updated_at: NOON_MS - 1 },
      ...plain('ws_3', 100),
    ],
    asks: [
      ask('permission'),
      ask('second permission'),
      ask('q1', { state: 'answered' }),
      ask('q2', { tool: null }),
      ask('of a program', { state: 'denied' }),
    ],
  })
  assert.deepEqual(await attention(), [
    ['ws_1', 0, 3],
    ['ws_2', 0, 1],
    ['ws_3', 0, 0],
  ])
})

test('CL-7 the overview has what each workspace used since midnight UTC, page by page', async (t) => {
  const { add, overview } = await openOverview(t)
  const used = (workspaceId: string, epoch: number, endedAt: number) => ({
    message_id: workspaceId,
    epoch,
    workspace_id: workspaceId,
    ended_at: endedAt,
    input_tokens: 1,
    output_tokens: 2,
    cost_usd: 3,
    duration_ms: 4,
  })
  await add({
    workspace_load: ['ws_1', 'ws_2', 'ws_3', 'ws_4'].map((id) => ({ workspace_id: id })),
    turn_usage: [
      ...[used('ws_1', 1, MIDNIGHT_MS - 1), used('ws_2', 1, MIDNIGHT_MS), used('ws_2', 2, MIDNIGHT_MS - 1)],
      ...[used('ws_3', 1, NOON_MS), used('ws_4', 1, NOON_MS), used('ws_4', 2, NOON_MS)],
    ],
  })
  const one = { ...NOTHING, turns: 1, inputTokens: 1, outputTokens: 2, costUsd: 3, durationMs: 4 }
  const two = { ...NOTHING, turns: 2, inputTokens: 2, outputTokens: 4, costUsd: 6, durationMs: 8 }
  const shown = (id: string, today: object) => ({ id, deadLetters: 0, questions: 0, today })
  const all = [shown('ws_1', NOTHING), shown('ws_2', one), shown('ws_3', one), shown('ws_4', two)]
  assert.deepEqual(await overview.read({ limit: 4 }), { workspaces: all })
  assert.deepEqual(await overview.read({ limit: 2 }), { workspaces: all.slice(0, 2), next: 'ws_2' })
  assert.deepEqual(await overview.read({ limit: 1, after: 'ws_2' }), { workspaces: all.slice(2, 3), next: 'ws_3' })
  assert.deepEqual(await overview.read({ limit: 2, after: 'ws_2' }), { workspaces: all.slice(2) })
  assert.deepEqual(await overview.read({ limit: 2, after: 'ws_4' }), { workspaces: [] })
})

test('CV-1 open delegations are counted for each pair of workspaces, the most first', async (t) => {
  const { add, overview } = await openOverview(t)
  const message = (id: string, workspaceId: string, more: object = {}) => ({
    id,
    conversation_id: id,
    workspace_id: workspaceId,
    ...more,
  })
  const child = (id: string, workspaceId: string, ...[parentId, more = {}]: [string, object?]) =>
    message(id, workspaceId, { parent_id: parentId, child_open: 1, ...more })
  await add({
    messages: [
      ...[message('p1', 'ws_1'), message('p2', 'ws_2')],
      ...[child('a', 'ws_3', 'p1'), child('b', 'ws_2', 'p1'), child('c', 'ws_1', 'p2'), child('d', 'ws_1', 'p2')],
      ...[child('ended', 'ws_3', 'p1', { settled_at: NOON_MS }), child('handled', 'ws_3', 'p1', { child_open: 0 })],
    ],
  })
  const pairs = [
    { from: 'ws_2', to: 'ws_1', count: 2 },
    { from: 'ws_1', to: 'ws_2', count: 1 },
    { from: 'ws_1', to: 'ws_3', count: 1 },
  ]
  assert.deepEqual(await overview.openDelegations(), pairs)
  await add({ messages: Array.from({ length: 60 }, (_, n) => child(`more-${n}`, `ws_1${n + 10}`, 'p1')) })
  assert.equal((await overview.openDelegations()).length, 63)
})

test('PL-10 the load has the totals, and the busiest workspaces with the wait of their oldest message', async (t) => {
  const { add, store } = await openOverview(t)
  const load = (id: string, waiting: number, running: number) => ({ workspace_id: id, waiting, running })
  const read = () => store.read(reportLoad)
  assert.deepEqual(await read(), { waiting: 0, running: 0, workspaces: [] })
  await add({
    workspace_load: [
      ...[load('ws_1', 2, 0), load('ws_2', 2, 1), load('ws_3', 3, 0), load('ws_4', 0, 1), load('ws_5', 0, 0)],
      load('ws_0', 2, 0),
    ],
    conversations: [
      { id: 'a', ready_at: NOON_MS - 5 },
      { id: 'b', ready_at: NOON_MS - 9 },
      { id: 'c' },
      { id: 'd', workspace_id: 'ws_2', ready_at: NOON_MS + 5 },
      { id: 'e', workspace_id: 'ws_3', ready_at: NOON_MS - 1 },
      { id: 'f', workspace_id: 'ws_9', ready_at: NOON_MS - 99 },
    ],
  })
  const shown = (id: string, ...[waiting, running, oldestWaitingMs]: [number, number, number]) => ({
    id,
    waiting,
    running,
    oldestWaitingMs,
  })
  assert.deepEqual(await read(), {
    waiting: 9,
    running: 2,
    workspaces: [
      ...[shown('ws_3', 3, 0, 1), shown('ws_2', 2, 1, 0), shown('ws_0', 2, 0, 0), shown('ws_1', 2, 0, 9)],
      shown('ws_4', 0, 1, 0),
    ],
  })
  await add({ workspace_load: Array.from({ length: 100 }, (_, n) => load(`ws_x${n}`, 1, 0)) })
  const busy = await read()
  assert.deepEqual([busy.waiting, busy.workspaces.length], [109, 100])
})
