import assert from 'node:assert/strict'
import test from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams } from '../../../../test/harness/open-door.ts'
import { openRoutes, recordPart } from '../../../../test/harness/route-calls.ts'
import type { Stories, Story, StoryBudget, TaskTree, TreeTask } from '../../../inbox/readers.ts'

const AT = 1_700_000_000_000
const at = (seconds: number) => new Date(AT + seconds * 1000).toISOString()
const SENDER = { kind: 'person', id: 'a', name: 'ana', door: 'http' } as const
const TASK: TreeTask = {
  taskId: 't_1',
  depth: 0,
  workspaceId: WORKSPACE_ID,
  state: 'TASK_STATE_WORKING',
  turns: 1,
  text: 'Hello',
}
const TASK_VIEW = {
  task_id: 't_1',
  parent_task_id: null,
  depth: 0,
  workspace_id: WORKSPACE_ID,
  workspace_name: null,
  state: 'TASK_STATE_WORKING',
  turns: 1,
  text: 'Hello',
}
const BUDGET: StoryBudget = { limitUsd: 5, costUsd: 1.5, unknownTurns: 2, state: 'open', taskId: 't_1' }
const BUDGET_VIEW = { max_cost_usd: 5, cost_usd: 1.5, unknown_turns: 2, state: 'open', task_id: 't_1' }
const SUM = {
  turns: 1,
  unknownTurns: 0,
  unknownCostTurns: 0,
  inputTokens: 1,
  outputTokens: 2,
  costUsd: 3,
  durationMs: 4,
}
const SUM_VIEW = {
  turns: 1,
  unknown_turns: 0,
  unknown_cost_turns: 0,
  input_tokens: 1,
  output_tokens: 2,
  cost_usd: 3,
  duration_ms: 4,
}
const TREE: TaskTree = {
  tasks: [
    TASK,
    {
      ...TASK,
      parentTaskId: 't_0',
      depth: 1,
      workspaceName: 'shop',
      usage: SUM,
      admittedAtMs: AT,
      startedAtMs: AT + 1000,
      endedAtMs: AT + 2000,
    },
  ],
  hidden: 3,
  spent: { costUsd: 2, unknownTurns: 1 },
  budget: BUDGET,
}
const TREE_VIEW = {
  budget: BUDGET_VIEW,
  cost_usd: 2,
  unknown_turns: 1,
  hidden: 3,
  tasks: [
    TASK_VIEW,
    {
      ...TASK_VIEW,
      parent_task_id: 't_0',
      depth: 1,
      workspace_name: 'shop',
      usage: SUM_VIEW,
      sent_at: at(0),
      started_at: at(1),
      ended_at: at(2),
    },
  ],
}

test('CV-4 the delegation trees of a workspace are read in pages of 10, within what the caller may see', async (t) => {
  const states = (['open', 'asked', 'stopped'] as const).map((state) => ({ ...TREE, budget: { ...BUDGET, state } }))
  const stories = recordPart<Stories>({ trees: { trees: [...states, { tasks: [TASK], hidden: 0 }], next: 'n' } })
  const call = await openRoutes(t, { stories: stories.part })
  const path = `/workspaces/${WORKSPACE_ID}/delegations`
  const { json } = await call(`GET ${path}`)
  const views = ['open', 'asked', 'stopped'].map((state) => ({ ...TREE_VIEW, budget: { ...BUDGET_VIEW, state } }))
  assert.deepEqual(json, { trees: [...views, { tasks: [TASK_VIEW], hidden: 0 }], next: 'n' })
  await call(`GET ${path}?limit=20&after=n`, { role: 'workspace' })
  const [first, second] = stories.take().map(([, query]) => query as Parameters<Stories['trees']>[0])
  const { scopeOf: ofAdmin, ...defaults } = first ?? assert.fail()
  assert.deepEqual(defaults, { workspaceId: WORKSPACE_ID, limit: 10 })
  const { scopeOf: ofWorkspace, ...given } = second ?? assert.fail()
  assert.deepEqual(given, { workspaceId: WORKSPACE_ID, limit: 20, after: 'n' })
  assert.equal(ofAdmin('ws_other').principal, undefined)
  assert.notEqual(ofWorkspace('ws_other').principal, undefined)
  for (const limit of [0, 21]) assert.equal((await call(`GET ${path}?limit=${limit}`)).status, 400)
  const last = await openRoutes(t, { stories: recordPart<Stories>({ trees: { trees: [] } }).part })
  assert.deepEqual((await last(`GET ${path}`)).json, { trees: [] })
})

test('CL-1 the story of a message has its steps, deliveries, tree and budgets', async (t) => {
  const story: Story = {
    messageId: 'm_1',
    taskId: 't_1',
    workspaceId: WORKSPACE_ID,
    contextId: 'c',
    sender: SENDER,
    text: 'Hello',
    senderMessageId: 's_1',
    taskState: 'TASK_STATE_WORKING',
    steps: [{ atMs: AT, type: 'admitted', text: 'It was admitted' }],
    deliveries: [{ to: 'discord', state: 'sent', tries: 1 }],
  }
  const view = {
    message_id: 'm_1',
    task_id: 't_1',
    workspace_id: WORKSPACE_ID,
    context_id: 'c',
    sender: SENDER,
    text: 'Hello',
    sender_message_id: 's_1',
    task_state: 'TASK_STATE_WORKING',
    deliveries: story.deliveries,
    steps: [{ at: at(0), type: 'admitted', text: 'It was admitted' }],
  }
  const stories = recordPart<Stories>({ find: { ...story, tree: TREE, budgets: [BUDGET], next: 'n' } })
  const call = await openRoutes(t, { stories: stories.part })
  const whole = await call('GET /messages/m_1/story?after=x')
  assert.deepEqual(whole.json, { ...view, tree: TREE_VIEW, budgets: [BUDGET_VIEW], next: 'n' })
  await call('GET /messages/m_1/story')
  const queries = stories.take().map(([, query]) => query as Parameters<Stories['find']>[0])
  assert.deepEqual(
    queries.map(({ id, after }) => [id, after]),
    [
      ['m_1', 'x'],
      ['m_1', undefined],
    ],
  )
  assert.equal(queries[0]?.scopeOf(WORKSPACE_ID).detail, true)
  const short = await openRoutes(t, { stories: recordPart<Stories>({ find: story }).part })
  assert.deepEqual((await short('GET /messages/m_1/story')).json, view)
  const none = await openRoutes(t, { stories: recordPart<Stories>({ find: undefined }).part })
  const missing = await none('GET /messages/m_1/story')
  assert.deepEqual([missing.status, missing.json.error.message], [404, 'there is no message or task m_1'])
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
