/**
 * Reads budgets, and what was spent of them: the stored usage of the turns that a budget covers. A turn of unknown cost
 * adds nothing to the sum; it is counted and named. A budget of a message covers that message and everything below it in
 * its tree; a budget of a day covers all turns of its workspace.
 */
import { DAY_MS } from '../../duration.ts'
import type { DelegationEnvelope } from '../../protocol/delegation.ts'
import { sql, type Transaction } from '../../store/store.ts'
import { type Spending, spendingText, usdText } from '../../usd.ts'

/** Rows of a tree that are read. The limits of a tree keep it far below it; retries count as turns, not as rows. */
export const TREE_ROWS_MAX = 500
/** Sums of decimal fractions are not exact: 0.1 + 0.7 is less than 0.8, and a budget of 0.8 would not be spent. */
const SUM_DECIMALS = 9

export type BudgetState = 'open' | 'asked' | 'stopped'

export interface Budget {
  readonly id: string
  readonly workspaceId: string
  /** Of a message: the task that the message opened or continued. */
  readonly taskId: string | undefined
  /** The UTC day; undefined for the budget of a message. */
  readonly day: number | undefined
  readonly limitUsd: number
  readonly state: BudgetState
  readonly spent: Spending
}

export interface BudgetRow {
  id: string
  workspace_id: string
  root_id: string | null
  task_id: string | null
  day: number | null
  limit_usd: number
  state: BudgetState
}

export const BUDGET_COLUMNS = 'b.id, b.workspace_id, b.root_id, b.task_id, b.day, b.limit_usd, b.state'

export const isSpent = ({ limitUsd, spent }: Budget): boolean => spent.costUsd >= limitUsd
export const leftOf = ({ limitUsd, spent }: Budget): number => Math.max(0, limitUsd - spent.costUsd)

/** `the budget of $0.01 is spent ($0.012)`. */
export function spentText({ day, limitUsd, spent }: Budget): string {
  const what = day === undefined ? 'the budget of this message' : "today's budget of this workspace"
  return `${what}, ${usdText(limitUsd)}, is spent (${spendingText(spent)})`
}

/** The budgets of messages that cover this message, the outermost first. */
export function* budgetsOfMessage(messageId: string): Transaction<Budget[]> {
  const [message] = yield* sql<{ id: string; root_id: string | null; delegation: string | null }>(
    'select id, root_id, delegation from messages where id = $1',
    [messageId],
  )
  if (message === undefined) return []
  const covering = coveringBudgets(message)
  const rows = yield* sql<BudgetRow>(`select ${BUDGET_COLUMNS} from budgets b where b.root_id = $1 order by b.id`, [
    message.root_id ?? message.id,
  ])
  const budgets: Budget[] = []
  for (const row of rows) if (covering.has(row.id)) budgets.push(toBudget(row, yield* spentOfMessage(row)))
  return budgets
}

/** The budget of the workspace for today. A raise of today counts if it is above the given limit. */
export function* budgetOfDay(
  workspaceId: string,
  limitUsd: number,
): Transaction<Budget & { readonly endsInMs: number }> {
  const [time] = yield* sql<{ now: number }>('select now_ms() as now')
  const now = time?.now ?? 0
  const day = Math.floor(now / DAY_MS)
  const id = `${workspaceId}.${day}`
  const [row] = yield* sql<BudgetRow>(`select ${BUDGET_COLUMNS} from budgets b where b.id = $1`, [id])
  const known = row ?? { id, workspace_id: workspaceId, root_id: null, task_id: null, day, limit_usd: 0, state: 'open' }
  const budget = toBudget(known, yield* spentOfDay(workspaceId, day))
  return { ...budget, limitUsd: Math.max(limitUsd, budget.limitUsd), endsInMs: (day + 1) * DAY_MS - now }
}

/** A stored budget, with what was spent of it. */
export function* readBudget(row: BudgetRow): Transaction<Budget> {
  const spent = row.day === null ? yield* spentOfMessage(row) : yield* spentOfDay(row.workspace_id, row.day)
  return toBudget(row, spent)
}

const toBudget = (row: BudgetRow, spent: Spending): Budget => ({
  id: row.id,
  workspaceId: row.workspace_id,
  taskId: row.task_id ?? undefined,
  day: row.day ?? undefined,
  limitUsd: row.limit_usd,
  state: row.state,
  spent,
})

/** A message is covered by its own budget and by those that came with it. */
function coveringBudgets({ id, delegation }: { id: string; delegation: string | null }): Set<string> {
  const { budgets = [] } = JSON.parse(delegation ?? '{}') as Partial<DelegationEnvelope>
  return new Set([id, ...budgets])
}

interface SpendingRow {
  id: string
  delegation: string | null
  cost: number | null
  unknown_turns: number
}

const UNKNOWN_TURNS =
  'sum(case when u.message_id is not null and u.cost_usd is null then 1 else 0 end) as unknown_turns'

/** Two indexed reads, as for the tree itself: the root has no `root_id`. */
const TREE_SPENDING = `select m.id, m.delegation, sum(u.cost_usd) as cost, ${UNKNOWN_TURNS}
  from (select r.id from messages r where r.id = $1 union all select c.id from messages c where c.root_id = $1) k
  join messages m on m.id = k.id left join turn_usage u on u.message_id = m.id
  group by m.id, m.delegation order by m.id limit ${TREE_ROWS_MAX}`

/** What the message and everything below it has cost; for the root, the whole tree. */
export function* spentOfMessage({ id, root_id: rootId }: Pick<BudgetRow, 'id' | 'root_id'>): Transaction<Spending> {
  const rows = yield* sql<SpendingRow>(TREE_SPENDING, [rootId])
  return sumOf(rows.filter((row) => id === rootId || coveringBudgets(row).has(id)))
}

function* spentOfDay(workspaceId: string, day: number): Transaction<Spending> {
  const rows = yield* sql<Omit<SpendingRow, 'id' | 'delegation'>>(
    `select sum(u.cost_usd) as cost, ${UNKNOWN_TURNS} from turn_usage u
     where u.workspace_id = $1 and u.ended_at >= $2 and u.ended_at < $3`,
    [workspaceId, day * DAY_MS, (day + 1) * DAY_MS],
  )
  return sumOf(rows)
}

const sumOf = (rows: readonly Pick<SpendingRow, 'cost' | 'unknown_turns'>[]): Spending => ({
  costUsd: Number(rows.reduce((sum, { cost }) => sum + (cost ?? 0), 0).toFixed(SUM_DECIMALS)),
  unknownTurns: rows.reduce((sum, row) => sum + Number(row.unknown_turns ?? 0), 0),
})
