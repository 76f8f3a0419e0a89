/**
 * Usage: one row for each turn that costs money or reported its usage, written with its settle and read by day and by
 * message. Failed and cancelled turns count too, because they cost too. Invariant: an unknown number is null and
 * counted as unknown; it is never 0.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { MoleculeError } from '../../errors.ts'
import { type Statement, type Store, sql, statement, type Transaction } from '../../store/store.ts'
import {
  type PlatformUsage,
  USAGE_DAYS_MAX,
  type UsageQuery,
  type UsageReader,
  type UsageReport,
  type UsageSum,
} from '../readers.ts'
import type { LeaseKey, Outcome } from '../worker.ts'

export const DAY_MS = 24 * 3600_000

export const createUsageReader = (store: Store): UsageReader => ({
  read: (query) => store.read(() => readUsage(query)),
  readAll: (days) => readPlatformUsage(store, days),
})

/** The statements for a settle: none for a turn without usage. */
export function usageRows(key: LeaseKey, { type, usage }: Outcome): Statement[] {
  if (usage === undefined) return []
  const { inputTokens, outputTokens, costUsd, durationMs } = usage
  return [
    statement(
      `insert into turn_usage (message_id, epoch, workspace_id, task_id, outcome, ended_at, duration_ms, input_tokens,
         output_tokens, cost_usd) values ($1, $2, $3, $4, $5, now_ms(), $6, $7, $8, $9) on conflict do nothing`,
      [
        ...[key.messageId, key.epoch, key.workspaceId, key.taskId, type],
        ...[whole(durationMs), whole(inputTokens), whole(outputTokens), amountOf(costUsd)],
      ],
    ),
  ]
}

/** A bridge may send anything: a value that is no amount is stored as unknown. */
const amountOf = (value: unknown): number | null =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : null

function whole(value: unknown): number | null {
  const amount = amountOf(value)
  return amount === null ? null : Math.round(amount)
}

/** The condition for rows that no report shows any more. */
export const USAGE_PRUNED = `ended_at < now_ms() - ${(USAGE_DAYS_MAX + 1) * DAY_MS}`

export interface SumRow {
  turns: number
  known: number
  /** Turns with a cost. */
  priced: number
  input: number | null
  output: number | null
  cost: number | null
  duration: number | null
}

export const SUMS = `count(*) as turns,
  sum(case when input_tokens is not null and output_tokens is not null then 1 else 0 end) as known,
  sum(case when cost_usd is not null then 1 else 0 end) as priced,
  sum(input_tokens) as input, sum(output_tokens) as output, sum(cost_usd) as cost, sum(duration_ms) as duration`
/** Whole days, so that the first day is complete. */
const SINCE = `ended_at >= (now_ms() / ${DAY_MS} - $2 + 1) * ${DAY_MS}`

function* readUsage({ workspaceId, days, messages }: UsageQuery): Transaction<UsageReport> {
  const [there] = yield* sql('select 1 as there from workspace_load where workspace_id = $1', [workspaceId])
  if (there === undefined) throw new MoleculeError('not_found', `there is no workspace ${workspaceId}`)
  const of = `from turn_usage where workspace_id = $1 and ${SINCE}`
  const [total] = yield* sql<SumRow>(`select ${SUMS} ${of}`, [workspaceId, days])
  const byDay = yield* sql<SumRow & { day: number }>(
    `select ended_at / ${DAY_MS} as day, ${SUMS} ${of} group by ended_at / ${DAY_MS} order by day desc`,
    [workspaceId, days],
  )
  const byConversation = yield* sql<SumRow & { conversation_id: string; context_id: string }>(
    `select t.conversation_id, min(t.context_id) as context_id, ${SUMS} from turn_usage u join tasks t on t.id = u.task_id
     where u.workspace_id = $1 and u.${SINCE} group by t.conversation_id order by max(u.ended_at) desc limit $3`,
    [workspaceId, days, messages],
  )
  const byMessage = yield* sql<SumRow & { message_id: string; task_id: string }>(
    `select message_id, min(task_id) as task_id, ${SUMS} ${of} group by message_id
     order by max(ended_at) desc, message_id desc limit $3`,
    [workspaceId, days, messages],
  )
  return {
    total: toSum(total as SumRow),
    days: byDay.map((row) => ({ day: dateOf(row.day), ...toSum(row) })),
    conversations: byConversation.map((row) => ({
      conversationId: row.conversation_id,
      contextId: row.context_id,
      ...toSum(row),
    })),
    messages: byMessage.map((row) => ({ messageId: row.message_id, taskId: row.task_id, ...toSum(row) })),
  }
}

const dateOf = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

interface DayRow extends SumRow {
  workspace_id: string
  name: string | null
}

const ONE_DAY = `select u.workspace_id, min(w.name) as name, ${SUMS} from turn_usage u
  left join workspaces w on w.id = u.workspace_id and w.deleted_at is null
  where u.ended_at >= $1 and u.ended_at < $1 + ${DAY_MS} group by u.workspace_id`

/** Reads one day at a time: a month of a busy platform at once would hold the event loop. */
async function readPlatformUsage(store: Store, days: number): Promise<PlatformUsage> {
  const [clock] = await store.read(() => sql<{ now: number }>('select now_ms() as now'))
  const today = Math.floor((clock?.now ?? 0) / DAY_MS)
  const total = emptyRow()
  const byDay: { day: string; row: SumRow }[] = []
  const byWorkspace = new Map<string, { name: string | null; row: SumRow }>()
  for (let day = today; day > today - days; day--) {
    if (day < today) await nextTurn()
    const rows = await store.read(() => sql<DayRow>(ONE_DAY, [day * DAY_MS]))
    const ofDay = emptyRow()
    for (const { workspace_id: id, name, ...row } of rows) {
      const known = byWorkspace.get(id) ?? { name, row: emptyRow() }
      byWorkspace.set(id, known)
      for (const sum of [total, ofDay, known.row]) addRow(sum, row)
    }
    if (rows.length > 0) byDay.push({ day: dateOf(day), row: ofDay })
  }
  const workspaces = [...byWorkspace].map(([workspaceId, { name, row }]) => ({
    workspaceId,
    ...(name !== null && { name }),
    ...toSum(row),
  }))
  return {
    total: toSum(total),
    days: byDay.map(({ day, row }) => ({ day, ...toSum(row) })),
    workspaces: workspaces.toSorted((a, b) => (b.costUsd ?? 0) - (a.costUsd ?? 0) || b.turns - a.turns),
  }
}

const emptyRow = (): SumRow => ({
  turns: 0,
  known: 0,
  priced: 0,
  input: null,
  output: null,
  cost: null,
  duration: null,
})

/** Unknown plus a number is that number; unknown stays unknown. */
function addRow(sum: SumRow, row: SumRow): void {
  for (const key of Object.keys(sum) as (keyof SumRow)[]) {
    const value = row[key]
    if (value !== null) sum[key] = (sum[key] ?? 0) + Number(value)
  }
}

export const toSum = ({ turns, known, priced, input, output, cost, duration }: SumRow): UsageSum => ({
  turns,
  unknownTurns: turns - (known ?? 0),
  unknownCostTurns: turns - (priced ?? 0),
  inputTokens: input,
  outputTokens: output,
  costUsd: cost,
  durationMs: duration,
})
