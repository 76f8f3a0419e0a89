/**
 * Trees of delegations as people see them: each task with its state, its time and what it used. One tree belongs to a
 * message; a page of them to a workspace, which is anywhere in those trees.
 */
import { readTimeCursor, writeTimeCursor } from '../../store/page-budget.ts'
import { sql, type Transaction } from '../../store/store.ts'
import { type Budget, budgetsOfMessage, spentOfMessage } from '../budget/budget-rows.ts'
import { type PlacedRow, placeTree, readTree } from '../delegate/tree.ts'
import type { StoryBudget, StoryQuery, TaskTree, TreePage, TreesQuery, TreeTask } from '../readers.ts'
import { coversPrincipal } from './principals.ts'
import { readTexts } from './task-messages.ts'
import { SUMS, type SumRow, toSum } from './usage.ts'

/** Tasks of the workspace that one page looks at. */
const TASKS_SCANNED_MAX = 300

/** Undefined where the message neither delegated nor was delegated. */
export function* findTree(rootId: string, scopeOf: StoryQuery['scopeOf']): Transaction<TaskTree | undefined> {
  const placed = placeTree(yield* readTree(rootId))
  if (placed.length < 2) return undefined
  const seen = placed.filter(({ row }) => {
    const { principal } = scopeOf(row.workspace_id)
    return principal === undefined || coversPrincipal(principal, row.principal)
  })
  const tasks: TreeTask[] = []
  for (const each of seen) tasks.push(yield* toTreeTask(each, scopeOf))
  const isOwner = placed.every(({ row }) => scopeOf(row.workspace_id).detail === true)
  const [budget] = isOwner ? yield* budgetsOfMessage(rootId) : []
  return {
    tasks,
    hidden: placed.length - seen.length,
    ...(isOwner && { spent: yield* spentOfMessage({ id: rootId, root_id: rootId }) }),
    ...(budget && { budget: toStoryBudget(budget) }),
  }
}

export const toStoryBudget = ({ limitUsd, state, taskId = '', spent }: Budget): StoryBudget => ({
  limitUsd,
  state,
  taskId,
  ...spent,
})

interface TimesRow {
  admitted_at: number
  started_at: number | null
  settled_at: number | null
}

const TIMES = `select admitted_at, settled_at,
  case when state <> 'queued' then coalesce(leased_at, admitted_at) end as started_at from messages where id = $1`

function* toTreeTask({ row, depth, parentTaskId }: PlacedRow, scopeOf: StoryQuery['scopeOf']): Transaction<TreeTask> {
  const [times] = yield* sql<TimesRow>(TIMES, [row.id])
  // What a peer used is for people, and for the workspace itself.
  const seesUse = scopeOf(row.workspace_id).principal === undefined
  const [used] = seesUse ? yield* sql<SumRow>(`select ${SUMS} from turn_usage where message_id = $1`, [row.id]) : []
  return {
    taskId: row.task_id,
    ...(parentTaskId !== undefined && { parentTaskId }),
    depth,
    workspaceId: row.workspace_id,
    ...(row.workspace_name !== null && { workspaceName: row.workspace_name }),
    state: row.task_state,
    turns: row.turns,
    ...(times !== undefined && { admittedAtMs: times.admitted_at }),
    ...(times?.started_at != null && { startedAtMs: times.started_at }),
    ...(times?.settled_at != null && { endedAtMs: times.settled_at }),
    text: (yield* readTexts([row.id])).get(row.id) ?? '',
    ...(used !== undefined && used.turns > 0 && { usage: toSum(used) }),
  }
}

/** A task is in a tree when its message was delegated, or when another message names it as its root. */
const ROOTS = `select t.id, t.updated_at, case when m.root_id is not null then m.root_id
    when exists (select 1 from messages c where c.root_id = t.id) then t.id end as root_id
  from (select id, updated_at from tasks where workspace_id = $1 and updated_at <= $2
      and (updated_at < $2 or id < $3) order by updated_at desc, id desc limit ${TASKS_SCANNED_MAX}) t
  left join messages m on m.id = t.id order by t.updated_at desc, t.id desc`

/** The latest trees first; a tree of several tasks of the workspace comes once in a page. */
export function* listTrees({ workspaceId, limit, after, scopeOf }: TreesQuery): Transaction<TreePage> {
  const from = after === undefined ? { atMs: Number.MAX_SAFE_INTEGER, id: '~' } : readTimeCursor(after)
  const rows = yield* sql<{ id: string; updated_at: number; root_id: string | null }>(ROOTS, [
    ...[workspaceId, from.atMs, from.id],
  ])
  const seen = new Set<string>()
  const trees: TaskTree[] = []
  for (const { id, updated_at: atMs, root_id: rootId } of rows) {
    if (rootId === null || seen.has(rootId)) continue
    seen.add(rootId)
    const tree = yield* findTree(rootId, scopeOf)
    if (tree !== undefined) trees.push(tree)
    if (trees.length >= limit) return { trees, next: writeTimeCursor({ atMs, id }) }
  }
  const last = rows.length < TASKS_SCANNED_MAX ? undefined : rows.at(-1)
  return { trees, ...(last !== undefined && { next: writeTimeCursor({ atMs: last.updated_at, id: last.id }) }) }
}
