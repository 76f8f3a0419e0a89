/**
 * Trees of delegations as people see them: each task with its state, its time and what it used. One tree belongs to a
 * message; a page of them to a workspace, which is anywhere in those trees.
 */
import type { ApiAnswer } from '../api/api.ts'
import { type Budget, budgetsOfMessage, spentOfMessage } from '../inbox/budget/budget-rows.ts'
import { type PlacedRow, placeTree, readTree } from '../inbox/delegate/tree.ts'
import { coversPrincipal } from '../inbox/read/principals.ts'
import { readTexts } from '../inbox/read/task-messages.ts'
import { readTimeCursor, writeTimeCursor } from '../store/page-budget.ts'
import { type ReadStore, sql, type Transaction } from '../store/store.ts'
import { instantOf } from './instant.ts'
import { SUMS, type UsageSumRow, usageSum } from './usage.ts'

/** What a reader may see of the tasks of a workspace; no principal = all of them. */
export interface TaskScope {
  readonly principal?: string
  /** The reader is an owner: show what the program printed when it failed. */
  readonly detail?: boolean
}

export type ScopeOf = (workspaceId: string) => TaskScope

export interface TreesQuery {
  readonly workspaceId: string
  readonly limit: number
  /** The `next` of the page before. */
  readonly after?: string | undefined
  readonly scopeOf: ScopeOf
}

type TreesAnswer = ApiAnswer<'GET /workspaces/{id}/delegations'>
type TreeAnswer = TreesAnswer['trees'][number]
type TreeTaskAnswer = TreeAnswer['tasks'][number]

/** The trees that a workspace is in, the latest first; a tree of several tasks of the workspace comes once in a page. */
export const readTrees = (store: ReadStore, query: TreesQuery): Promise<TreesAnswer> => store.read(() => treesOf(query))

/** Tasks of the workspace that one page looks at. */
const TASKS_SCANNED_MAX = 300

/** Undefined where the message neither delegated nor was delegated. */
export function* treeOf(rootId: string, scopeOf: ScopeOf): Transaction<TreeAnswer | undefined> {
  const placed = placeTree(yield* readTree(rootId))
  if (placed.length < 2) return undefined
  const seen = placed.filter(({ row }) => {
    const { principal } = scopeOf(row.workspace_id)
    return principal === undefined || coversPrincipal(principal, row.principal)
  })
  const tasks: TreeTaskAnswer[] = []
  for (const each of seen) tasks.push(yield* taskOf(each, scopeOf))
  const isOwner = placed.every(({ row }) => scopeOf(row.workspace_id).detail === true)
  const [budget] = isOwner ? yield* budgetsOfMessage(rootId) : []
  const spent = isOwner ? yield* spentOfMessage({ id: rootId, root_id: rootId }) : undefined
  return {
    cost_usd: spent?.costUsd,
    unknown_turns: spent?.unknownTurns,
    budget: budget && taskBudget(budget),
    tasks,
    hidden: placed.length - seen.length,
  }
}

/** A budget that covers a message. */
export const taskBudget = ({ limitUsd, state, taskId = '', spent }: Budget): NonNullable<TreeAnswer['budget']> => ({
  max_cost_usd: limitUsd,
  cost_usd: spent.costUsd,
  unknown_turns: spent.unknownTurns,
  state,
  task_id: taskId,
})

interface TimesRow {
  admitted_at: number
  started_at: number | null
  settled_at: number | null
}

const TIMES = `select admitted_at, settled_at,
  case when state <> 'queued' then coalesce(leased_at, admitted_at) end as started_at from messages where id = $1`

function* taskOf({ row, depth, parentTaskId }: PlacedRow, scopeOf: ScopeOf): Transaction<TreeTaskAnswer> {
  const [times] = yield* sql<TimesRow>(TIMES, [row.id])
  // What a peer used is for people, and for the workspace itself.
  const seesUse = scopeOf(row.workspace_id).principal === undefined
  const [used] = seesUse
    ? yield* sql<UsageSumRow>(`select ${SUMS} from turn_usage where message_id = $1`, [row.id])
    : []
  return {
    task_id: row.task_id,
    parent_task_id: parentTaskId ?? null,
    depth,
    workspace_id: row.workspace_id,
    workspace_name: row.workspace_name,
    state: row.task_state,
    turns: row.turns,
    sent_at: instantOf(times?.admitted_at),
    started_at: instantOf(times?.started_at),
    ended_at: instantOf(times?.settled_at),
    text: (yield* readTexts([row.id])).get(row.id) ?? '',
    usage: used !== undefined && used.turns > 0 ? usageSum(used) : undefined,
  }
}

/** A task is in a tree when its message was delegated, or when another message names it as its root. */
const ROOTS = `select t.id, t.updated_at, case when m.root_id is not null then m.root_id
    when exists (select 1 from messages c where c.root_id = t.id) then t.id end as root_id
  from (select id, updated_at from tasks where workspace_id = $1 and updated_at <= $2
      and (updated_at < $2 or id < $3) order by updated_at desc, id desc limit ${TASKS_SCANNED_MAX}) t
  left join messages m on m.id = t.id order by t.updated_at desc, t.id desc`

function* treesOf({ workspaceId, limit, after, scopeOf }: TreesQuery): Transaction<TreesAnswer> {
  const from = after === undefined ? { atMs: Number.MAX_SAFE_INTEGER, id: '~' } : readTimeCursor(after)
  const rows = yield* sql<{ id: string; updated_at: number; root_id: string | null }>(ROOTS, [
    ...[workspaceId, from.atMs, from.id],
  ])
  const seen = new Set<string>()
  const trees: TreeAnswer[] = []
  for (const { id, updated_at: atMs, root_id: rootId } of rows) {
    if (rootId === null || seen.has(rootId)) continue
    seen.add(rootId)
    const tree = yield* treeOf(rootId, scopeOf)
    if (tree !== undefined) trees.push(tree)
    if (trees.length >= limit) return { trees, next: writeTimeCursor({ atMs, id }) }
  }
  const last = rows.length < TASKS_SCANNED_MAX ? undefined : rows.at(-1)
  return { trees, next: last && writeTimeCursor({ atMs: last.updated_at, id: last.id }) }
}
