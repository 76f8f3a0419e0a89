import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { envelopeOf, NOON_MS, openStoredRows } from '../../../test/fakes/stored-rows.ts'
import { withBudget } from '../../protocol/delegation.ts'
import type { StoryQuery, TreesQuery } from '../readers.ts'
import { createStories } from './story.ts'

const OWNER = { detail: true }
const USED = { unknownTurns: 0, unknownCostTurns: 0, inputTokens: 1, outputTokens: 2, costUsd: 0.5, durationMs: 4 }

async function openTrees(t: TestContext) {
  const rows = await openStoredRows(t)
  const stories = createStories(rows.store)
  const find = (id: string, scopeOf: StoryQuery['scopeOf'] = () => OWNER) => stories.find({ id, scopeOf })
  const trees = (query: Partial<TreesQuery> = {}) =>
    stories.trees({ workspaceId: 'ws_1', limit: 10, scopeOf: () => OWNER, ...query })
  /** The ids of the trees of a page, each by its first task. */
  const roots = async (query: Partial<TreesQuery> = {}) => {
    const page = await trees(query)
    return { roots: page.trees.map(({ tasks }) => tasks[0]?.taskId).join(' '), next: page.next }
  }
  return { ...rows, find, trees, roots }
}

/** A message with a budget of its sender. */
const withLimit = (text: string): string => {
  const request = JSON.parse(envelopeOf(text))
  Object.assign(request.params.message, withBudget(2))
  return JSON.stringify(request)
}

/** A root with two children, one of them in a deleted workspace and waiting. */
const TREE = {
  workspaces: [
    { id: 'ws_1', name: 'lead' },
    { id: 'ws_2', name: 'painter' },
  ],
  tasks: [
    { id: 'r', principal: 'people' },
    { id: 'c1', workspace_id: 'ws_2', principal: 'ws:ws_1/c1', state: 'TASK_STATE_WORKING' },
    { id: 'c2', workspace_id: 'ws_3', principal: 'ws:ws_1/c1', state: 'TASK_STATE_SUBMITTED' },
  ],
  messages: [
    { id: 'r', envelope: withLimit('paint\n it'), leased_at: NOON_MS + 1, settled_at: NOON_MS + 9, failures: 1 },
    { id: 'c1', workspace_id: 'ws_2', conversation_id: 'c1', parent_id: 'r', root_id: 'r', state: 'leased' },
    { id: 'c2', workspace_id: 'ws_3', conversation_id: 'c2', parent_id: 'c1', root_id: 'r', state: 'queued' },
  ].map((row) => ({ ...row, conversation_id: row.id })),
  turn_usage: [
    ...[1, 2].map((epoch) => ({
      message_id: 'r',
      epoch,
      input_tokens: 1,
      output_tokens: 2,
      cost_usd: 0.5,
      duration_ms: 4,
    })),
    { message_id: 'c1' },
    { message_id: 'of another', cost_usd: 9 },
  ],
  budgets: [{ id: 'r', root_id: 'r', task_id: 'r', limit_usd: 2 }],
}

const task = (id: string, more: object) => ({ taskId: id, turns: 1, admittedAtMs: NOON_MS, text: 'hello', ...more })
const ROOT = task('r', {
  depth: 0,
  workspaceId: 'ws_1',
  workspaceName: 'lead',
  state: 'TASK_STATE_COMPLETED',
  turns: 2,
  startedAtMs: NOON_MS + 1,
  endedAtMs: NOON_MS + 9,
  text: 'paint it',
})
const PAINTER = task('c1', {
  parentTaskId: 'r',
  depth: 1,
  workspaceId: 'ws_2',
  workspaceName: 'painter',
  state: 'TASK_STATE_WORKING',
  startedAtMs: NOON_MS,
})
const DELETED = task('c2', { parentTaskId: 'c1', depth: 2, workspaceId: 'ws_3', state: 'TASK_STATE_SUBMITTED' })
const ROOT_USED = { turns: 2, ...USED, inputTokens: 2, outputTokens: 4, costUsd: 1, durationMs: 8 }
const UNKNOWN = { turns: 1, unknownTurns: 1, unknownCostTurns: 1, inputTokens: null, outputTokens: null }
const PAINTER_USED = { ...UNKNOWN, costUsd: null, durationMs: null }

test('CV-4 TW-3 an owner sees the whole tree with states, times, use, cost and budget, from each of its tasks', async (t) => {
  const { add, find } = await openTrees(t)
  await add({ ...TREE, messages: [...TREE.messages, { id: 'alone', conversation_id: 'x' }] })
  await add({ tasks: [{ id: 'alone' }] })
  const spent = { costUsd: 1, unknownTurns: 1 }
  const budget = { limitUsd: 2, state: 'open', taskId: 'r', ...spent }
  const tree = {
    tasks: [{ ...ROOT, usage: ROOT_USED }, { ...PAINTER, usage: PAINTER_USED }, DELETED],
    hidden: 0,
    spent,
    budget,
  }
  const story = await find('r')
  assert.deepEqual([story?.tree, story?.budgets], [tree, [budget]])
  const child = await find('c1')
  assert.deepEqual([child?.tree, child?.budgets], [tree, undefined])
  const { tree: none, budgets } = (await find('alone')) ?? {}
  assert.deepEqual([none, budgets], [undefined, undefined])
})

test('CV-4 PL-12 another reader sees its own tasks of the tree, and neither cost nor the use of its peers', async (t) => {
  const { add, find, sql } = await openTrees(t)
  await add(TREE)
  const peer = await find('c1', (id) => (id === 'ws_1' ? { principal: 'token:1' } : { principal: 'ws:ws_1' }))
  assert.deepEqual(peer?.tree, { tasks: [PAINTER, DELETED], hidden: 1 })
  // An owner of one workspace is no owner of the tree.
  const partly = await find('r', (id) => ({ detail: id !== 'ws_3' }))
  assert.deepEqual(partly?.tree, {
    tasks: [{ ...ROOT, usage: ROOT_USED }, { ...PAINTER, usage: PAINTER_USED }, DELETED],
    hidden: 0,
  })
  assert.equal((await find('r', () => ({ detail: false })))?.tree?.spent, undefined)
  await sql(`delete from messages where id = 'c2'`)
  assert.equal((await find('r'))?.tree?.tasks.length, 2)
  await sql(`update budgets set task_id = null`)
  assert.equal((await find('r'))?.tree?.budget?.taskId, '')
  await sql(`delete from messages where id = 'c1'`)
  assert.equal((await find('r'))?.tree, undefined)
})

/** Trees of one root and one child each, and a task without a tree. */
function makeTrees(ids: readonly string[]) {
  const child = (id: string) => ({ id: `${id}-child`, workspace_id: 'ws_2' })
  return {
    tasks: [...ids.map((id) => ({ id, updated_at: NOON_MS - (id === 'a' ? 1 : 0) })), ...ids.map(child)],
    messages: [
      ...ids.map((id) => ({ id, conversation_id: id })),
      ...ids.map((id) => ({ ...child(id), conversation_id: `${id}-child`, parent_id: id, root_id: id })),
    ],
  }
}

test('CV-4 TW-3 a workspace has its trees, the latest first and each once, page by page', async (t) => {
  const { add, roots } = await openTrees(t)
  await add(makeTrees(['a', 'b', 'c', 'd']))
  await add({
    tasks: [
      { id: 'alone', updated_at: NOON_MS + 1 },
      { id: 'b-second', updated_at: NOON_MS + 2 },
    ],
    messages: [
      { id: 'alone', conversation_id: 'alone' },
      { id: 'b-second', conversation_id: 'b-second', parent_id: 'b-child', root_id: 'b' },
    ],
  })
  assert.deepEqual(await roots(), { roots: 'b d c a', next: undefined })
  assert.deepEqual(await roots({ limit: 2 }), { roots: 'b d', next: `${NOON_MS}.d` })
  assert.deepEqual(await roots({ limit: 1, after: `${NOON_MS}.d` }), { roots: 'c', next: `${NOON_MS}.c` })
  assert.deepEqual(await roots({ after: `${NOON_MS}.c` }), { roots: 'b a', next: undefined })
  assert.deepEqual(await roots({ after: `${NOON_MS - 1}.b` }), { roots: 'a', next: undefined })
  assert.deepEqual(await roots({ workspaceId: 'ws_2' }), { roots: 'd c b a', next: undefined })
  assert.deepEqual(await roots({ workspaceId: 'ws_9' }), { roots: '', next: undefined })
})

test('CV-4 a page of trees looks at 300 tasks, and the reader goes on from there', async (t) => {
  const { add, roots, sql } = await openTrees(t)
  await add(makeTrees(['a']))
  const insert = (from: number, to: number) =>
    sql(
      `insert into tasks (id, workspace_id, conversation_id, context_id, principal, state, created_at, updated_at)
       with recursive k (n) as (select $1 union all select n + 1 from k where n < $2)
       select 't' || cast(n as integer), 'ws_1', 'c1', 'c1', 'people', 'TASK_STATE_COMPLETED', 0, $3 from k`,
      ...[from, to, NOON_MS],
    )
  await insert(101, 399)
  assert.deepEqual(await roots(), { roots: 'a', next: `${NOON_MS - 1}.a` })
  await insert(400, 400)
  assert.deepEqual(await roots(), { roots: '', next: `${NOON_MS}.t101` })
  await insert(401, 401)
  assert.deepEqual(await roots(), { roots: '', next: `${NOON_MS}.t102` })
  assert.deepEqual(await roots({ after: `${NOON_MS}.t101` }), { roots: 'a', next: undefined })
})
