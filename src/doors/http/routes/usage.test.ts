import assert from 'node:assert/strict'
import test from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/route-calls.ts'
import type { Overview } from '../../../inbox/load-readers.ts'
import type { DeadLetters } from '../../../inbox/owners.ts'
import type { UsageReader, UsageSum } from '../../../inbox/readers.ts'
import type { FoundAgents } from './route.ts'

const SUM: UsageSum = {
  turns: 7,
  unknownTurns: 1,
  unknownCostTurns: 2,
  inputTokens: 30,
  outputTokens: 40,
  costUsd: 0.5,
  durationMs: 6,
}
const SUM_VIEW = {
  turns: 7,
  unknown_turns: 1,
  unknown_cost_turns: 2,
  input_tokens: 30,
  output_tokens: 40,
  cost_usd: 0.5,
  duration_ms: 6,
}

test('RT-13 the usage of a workspace is shown by day, conversation and message', async (t) => {
  const usage = recordPart<UsageReader>({
    read: {
      total: SUM,
      days: [{ ...SUM, day: '2026-01-02' }],
      conversations: [{ ...SUM, conversationId: 'c', contextId: 'x' }],
      messages: [{ ...SUM, messageId: 'm', taskId: 't' }],
    },
  })
  const call = await openRoutes(t, { usage: usage.part })
  const path = `/workspaces/${WORKSPACE_ID}/usage`
  assert.deepEqual((await call(`GET ${path}`)).json, {
    total: SUM_VIEW,
    days: [{ day: '2026-01-02', ...SUM_VIEW }],
    conversations: [{ conversation_id: 'c', context_id: 'x', ...SUM_VIEW }],
    messages: [{ message_id: 'm', task_id: 't', ...SUM_VIEW }],
  })
  await call(`GET ${path}?days=1&messages=0`)
  await call(`GET ${path}?messages=500`)
  const queries = [
    { days: 7, messages: 20 },
    { days: 1, messages: 0 },
    { days: 7, messages: 500 },
  ]
  assert.deepEqual(
    usage.take(),
    queries.map((query) => ['read', { workspaceId: WORKSPACE_ID, ...query }]),
  )
  for (const wrong of ['days=0', 'messages=501', 'messages=x', 'days=100000'])
    assert.equal((await call(`GET ${path}?${wrong}`)).status, 400, wrong)
})

test('RT-13 the usage of all workspaces is shown for 30 days, with the names of those that still exist', async (t) => {
  const workspaces = [
    { ...SUM, workspaceId: 'w1', name: 'shop' },
    { ...SUM, workspaceId: 'w2' },
  ]
  const usage = recordPart<UsageReader>({ readAll: { total: SUM, days: [{ ...SUM, day: '2026-01-02' }], workspaces } })
  const call = await openRoutes(t, { usage: usage.part })
  assert.deepEqual((await call('GET /usage', { role: 'viewer' })).json, {
    total: SUM_VIEW,
    days: [{ day: '2026-01-02', ...SUM_VIEW }],
    workspaces: [
      { workspace_id: 'w1', name: 'shop', ...SUM_VIEW },
      { workspace_id: 'w2', name: null, ...SUM_VIEW },
    ],
  })
  await call('GET /usage?days=1')
  assert.deepEqual(usage.take(), [
    ['readAll', 30],
    ['readAll', 1],
  ])
  assert.equal((await call('GET /usage?days=0')).status, 400)
})

test('CL-7 the overview shows what each workspace used today and what in it needs a person, 200 at a time', async (t) => {
  const workspaces = [{ id: 'w1', deadLetters: 3, questions: 2, today: SUM }]
  const overview = recordPart<Overview>({
    read: { workspaces, next: 'w1' },
    openDelegations: [{ from: 'w1', to: 'w2', count: 3 }],
  })
  const call = await openRoutes(t, { overview: overview.part })
  const { json } = await call('GET /overview', { role: 'viewer' })
  const view = { id: 'w1', dead_letters: 3, questions: 2, today: SUM_VIEW }
  assert.deepEqual(json, { workspaces: [view], next: 'w1' })
  await call('GET /overview?after=w1&limit=1')
  assert.deepEqual((await call('GET /delegations/open')).json, { delegations: [{ from: 'w1', to: 'w2', count: 3 }] })
  assert.deepEqual(overview.take(), [
    ['read', { limit: 200 }],
    ['read', { limit: 1, after: 'w1' }],
    ['openDelegations'],
  ])
  for (const limit of [0, 201]) assert.equal((await call(`GET /overview?limit=${limit}`)).status, 400)
  const last = await openRoutes(t, { overview: recordPart<Overview>({ read: { workspaces: [] } }).part })
  assert.deepEqual((await last('GET /overview')).json, { workspaces: [] })
})

test('CL-7 the dead letters of a workspace are listed, replayed and discarded; only owners see what the program printed', async (t) => {
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] } as const
  const sender = { kind: 'person', id: 'a', name: 'ana', door: 'http' } as const
  const letter = {
    id: 'd_1',
    taskId: 't',
    contextId: 'c',
    principal: 'people',
    sender,
    message,
    code: 'exit',
    reason: 'it broke',
    detail: 'stderr',
    failures: 4,
    losses: 1,
    atMs: 1_700_000_000_000,
  }
  const { detail: _, ...short } = letter
  const deadLetters = recordPart<DeadLetters>({
    list: { rows: [letter, short], next: 'd_1' },
    replay: 't_2',
    discard: undefined,
  })
  const call = await openRoutes(t, { deadLetters: deadLetters.part })
  const path = `/workspaces/${WORKSPACE_ID}/dead-letters`
  const view = {
    id: 'd_1',
    task_id: 't',
    context_id: 'c',
    code: 'exit',
    reason: 'it broke',
    failures: 4,
    losses: 1,
    sender,
    message,
    at: '2023-11-14T22:13:20.000Z',
  }
  const owners = (await call(`GET ${path}?after=d_0`, { role: 'member' })).json
  assert.deepEqual(owners, { dead_letters: [{ ...view, detail: 'stderr' }, view], next: 'd_1' })
  assert.deepEqual((await call(`GET ${path}`, { role: 'viewer' })).json, { dead_letters: [view, view], next: 'd_1' })
  const replayed = await call(`POST ${path}/d_1/replay`)
  assert.deepEqual([replayed.status, replayed.json], [200, { task_id: 't_2' }])
  assert.equal((await call(`DELETE ${path}/d_1`)).status, 204)
  assert.deepEqual(deadLetters.take(), [
    ['list', WORKSPACE_ID, 'd_0'],
    ['list', WORKSPACE_ID, undefined],
    ['replay', WORKSPACE_ID, 'd_1'],
    ['discard', WORKSPACE_ID, 'd_1'],
  ])
  const none = await openRoutes(t, { deadLetters: recordPart<DeadLetters>({ list: { rows: [] } }).part })
  assert.deepEqual((await none(`GET ${path}`)).json, { dead_letters: [] })
})

test('CV-3 the agents of the machine are listed with what is known of each', async (t) => {
  const bare = { backend: 'codex', program: 'codex', isLoggedIn: false, isKeptWarm: false }
  const state = { version: '2.1', problem: 'too old', isLoggedIn: true, remedy: 'update it', isKeptWarm: true }
  const full = { backend: 'claude-code', program: 'claude', path: '/bin/claude', ...state }
  const call = await openRoutes(t, { agents: recordPart<FoundAgents>({ list: [bare, full] }).part })
  const { json } = await call('GET /agents', { role: 'member' })
  const { isLoggedIn: _in, isKeptWarm: _warm, ...shown } = full
  assert.deepEqual(json.agents, [
    { backend: 'codex', program: 'codex', installed: false, logged_in: false, warm: false },
    { ...shown, installed: true, logged_in: true, warm: true },
  ])
})
