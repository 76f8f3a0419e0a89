/**
 * The tree of a root message: the message, and every message that its turns delegated, directly or through others. Its
 * limits keep agents from delegating without end: past them, a delegation is refused with the tree.
 */
import { MoleculeError } from '../../errors.ts'
import { type TaskState, taskStateText } from '../../protocol/a2a.ts'
import type { DelegationEnvelope, DelegationLimits } from '../../protocol/delegation.ts'
import { sql, type Transaction } from '../../store/store.ts'
import { TREE_ROWS_MAX } from '../budget/budget-rows.ts'
import { workspaceName } from './workspace-name.ts'

/** Turns that one root message may cause, its own included. */
const TREE_TURNS_MAX = 50
/** Delegations of one root message that may be open at a time. */
const LIVE_CHILDREN_MAX = 10

export interface TreeRow {
  id: string
  parent_id: string | null
  task_id: string
  workspace_id: string
  /** Null when the workspace is deleted. */
  workspace_name: string | null
  principal: string
  task_state: TaskState
  /** 1 while the message is not settled. */
  open: number
  /** Attempts so far; a message that waits for its first one counts as one. */
  turns: number
  /** The `DelegationEnvelope` that came with it; null for a root message. */
  delegation: string | null
}

/** Two indexed reads: the root itself has no `root_id`. */
const TREE = `select m.id, m.parent_id, m.task_id, m.workspace_id, ${workspaceName('m.workspace_id')} as workspace_name, t.principal,
    t.state as task_state, case when m.settled_at is null then 1 else 0 end as open,
    1 + m.failures + m.losses as turns, m.delegation
  from (select r.id from messages r where r.id = $1 union all select c.id from messages c where c.root_id = $1) k
  join messages m on m.id = k.id join tasks t on t.id = m.task_id
  order by m.id limit ${TREE_ROWS_MAX}`

/** The root comes first, then its tree in the order of admission. */
export function* readTree(rootId: string): Transaction<TreeRow[]> {
  const rows = yield* sql<TreeRow>(TREE, [rootId])
  return rows.map((row) => ({ ...row, turns: Number(row.turns) }))
}

/** The turns that a tree may cause, where its first message has these limits. */
export const turnsMaxOf = ({ turns_left: given = TREE_TURNS_MAX }: DelegationLimits): number =>
  Math.min(TREE_TURNS_MAX, given)

/** What a new child of `parentId` gets, before its own limits are applied. */
export interface TreeRoom {
  readonly turnsLeft: number
  /** The reason why there is no room for one more child. */
  readonly refusal: string | undefined
}

/** Where a message would stand in the tree. */
interface TreePlace {
  readonly parentId: string
  /** The limit of the whole tree. */
  readonly turnsMax: number
  /** Of the parent. */
  readonly limits: DelegationLimits
  /** The message continues a task, perhaps to answer its question: it opens no further one. */
  readonly continues: boolean
}

export function roomInTree(tree: readonly TreeRow[], { parentId, turnsMax, limits, continues }: TreePlace): TreeRoom {
  const turns = sumTurns(tree)
  const live = tree.filter(({ parent_id: parent, open }) => parent !== null && open === 1).length
  const turnsLeft = Math.min(turnsMax - turns, ...budgetsAbove(tree, parentId)) - 1
  if (turns >= turnsMax)
    return { turnsLeft, refusal: `one message may cause ${turnsMax} turns, and this one has caused ${turns}` }
  if (turnsLeft < 0) return { turnsLeft, refusal: 'the turns that came with this task are used up' }
  if (live >= LIVE_CHILDREN_MAX && !continues) {
    return { turnsLeft, refusal: `${live} delegations are open, and one message may have ${LIVE_CHILDREN_MAX}` }
  }
  if (limits.depth_left === 0) return { turnsLeft, refusal: 'this task may not be delegated further' }
  return { turnsLeft, refusal: undefined }
}

const sumTurns = (rows: readonly TreeRow[]): number => rows.reduce((sum, { turns }) => sum + turns, 0)

/** What is left of the turns that came with the parent, and with each message above it. */
function budgetsAbove(tree: readonly TreeRow[], parentId: string): number[] {
  const byId = new Map(tree.map((row) => [row.id, row]))
  const budgets: number[] = []
  for (let row = byId.get(parentId); row !== undefined; row = byId.get(row.parent_id ?? '')) {
    const { turns_left: budget } = JSON.parse(row.delegation ?? '{}') as Partial<DelegationEnvelope>
    if (budget !== undefined) budgets.push(budget - turnsBelow(tree, row.id))
  }
  return budgets
}

/** The turns that the children of this message have caused, with their own children. */
export const turnsBelow = (tree: readonly TreeRow[], id: string): number => sumTurns(descendantsOf(tree, id))

/** A parent is older than its children, so one pass in the order of ids finds all of them. */
function descendantsOf(tree: readonly TreeRow[], id: string): TreeRow[] {
  const inside = new Set([id])
  return tree.filter((row) => {
    if (row.parent_id === null || !inside.has(row.parent_id)) return false
    inside.add(row.id)
    return true
  })
}

export function refuseDelegation(reason: string, tree: readonly TreeRow[]): MoleculeError {
  return new MoleculeError('forbidden', `the delegation is refused: ${reason}\n${renderTree(tree)}`)
}

/** A row with its place below the root. */
export interface PlacedRow {
  readonly row: TreeRow
  readonly depth: number
  readonly parentTaskId: string | undefined
}

/** Every row right below its parent. A row whose parent is not in the tree stands beside the root. */
export function placeTree(tree: readonly TreeRow[]): PlacedRow[] {
  const byId = new Map(tree.map((row) => [row.id, row]))
  const children = Map.groupBy(tree, ({ parent_id: parent }) => byId.get(parent ?? '')?.id)
  const placed: PlacedRow[] = []
  const place = (parent: TreeRow | undefined, depth: number) => {
    for (const row of children.get(parent?.id) ?? []) {
      placed.push({ row, depth, parentTaskId: parent?.task_id })
      place(row, depth + 1)
    }
  }
  place(undefined, 0)
  return placed
}

/** One line for each task, indented below its parent. */
function renderTree(tree: readonly TreeRow[]): string {
  const lines = placeTree(tree).map(({ row, depth }) => {
    const state = taskStateText(row.task_state)
    return `${'  '.repeat(depth)}${row.workspace_name ?? 'deleted'} (${row.workspace_id}) ${state}, task ${row.task_id}`
  })
  return lines.join('\n')
}
