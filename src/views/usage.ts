/**
 * What turns used: of one workspace, and of the platform. Failed and cancelled turns count too, because they cost too.
 * Invariant: an unknown number is null and counted as unknown; it is never 0.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ApiAnswer } from '../api/api.ts'
import { DAY_MS } from '../duration.ts'
import { MoleculeError } from '../errors.ts'
import { type ReadStore, sql, type Transaction } from '../store/store.ts'

export interface UsageQuery {
  readonly workspaceId: string
  /** Today and the days before it. */
  readonly days: number
  /** How many of the latest messages, and of the latest conversations. */
  readonly messages: number
}

type WorkspaceUsage = ApiAnswer<'GET /workspaces/{id}/usage'>
type PlatformUsage = ApiAnswer<'GET /usage'>
export type UsageSum = WorkspaceUsage['total']

/** Throws `not_found` where the workspace does not exist. */
export const readUsage = (store: ReadStore, query: UsageQuery): Promise<WorkspaceUsage> =>
  store.read(() => usageOf(query))

export interface UsageSumRow {
  turns: number
  known: number
  /** Turns with a cost. */
  priced: number
  input: number | null
  output: number | null
  cost: number | null
  duration: number | null
}

/** The columns of a `UsageSumRow` over rows of `turn_usage`. */
export const SUMS = `count(*) as turns,
  sum(case when input_tokens is not null and output_tokens is not null then 1 else 0 end) as known,
  sum(case when cost_usd is not null then 1 else 0 end) as priced,
  sum(input_tokens) as input, sum(output_tokens) as output, sum(cost_usd) as cost, sum(duration_ms) as duration`

export const usageSum = ({ turns, known, priced, input, output, cost, duration }: UsageSumRow): UsageSum => ({
  turns,
  unknown_turns: turns - (known ?? 0),
  unknown_cost_turns: turns - (priced ?? 0),
  input_tokens: input,
  output_tokens: output,
  cost_usd: cost,
  duration_ms: duration,
})

/** Whole days, so that the first day is complete. */
const SINCE = `ended_at >= (now_ms() / ${DAY_MS} - $2 + 1) * ${DAY_MS}`

function* usageOf({ workspaceId, days, messages }: UsageQuery): Transaction<WorkspaceUsage> {
  const [there] = yield* sql('select 1 as there from workspace_load where workspace_id = $1', [workspaceId])
  if (there === undefined) throw new MoleculeError('not_found', `there is no workspace ${workspaceId}`)
  const of = `from turn_usage where workspace_id = $1 and ${SINCE}`
  const [total] = yield* sql<UsageSumRow>(`select ${SUMS} ${of}`, [workspaceId, days])
  const byDay = yield* sql<UsageSumRow & { day: number }>(
    `select ended_at / ${DAY_MS} as day, ${SUMS} ${of} group by ended_at / ${DAY_MS} order by day desc`,
    [workspaceId, days],
  )
  const byConversation = yield* sql<UsageSumRow & { conversation_id: string; context_id: string }>(
    `select t.conversation_id, min(t.context_id) as context_id, ${SUMS} from turn_usage u join tasks t on t.id = u.task_id
     where u.workspace_id = $1 and u.${SINCE} group by t.conversation_id order by max(u.ended_at) desc limit $3`,
    [workspaceId, days, messages],
  )
  const byMessage = yield* sql<UsageSumRow & { message_id: string; task_id: string }>(
    `select message_id, min(task_id) as task_id, ${SUMS} ${of} group by message_id
     order by max(ended_at) desc, message_id desc limit $3`,
    [workspaceId, days, messages],
  )
  return {
    total: usageSum(total as UsageSumRow),
    days: byDay.map((row) => ({ day: dateOf(row.day), ...usageSum(row) })),
    conversations: byConversation.map(({ conversation_id, context_id, ...row }) => ({
      conversation_id,
      context_id,
      ...usageSum(row),
    })),
    messages: byMessage.map(({ message_id, task_id, ...row }) => ({ message_id, task_id, ...usageSum(row) })),
  }
}

export interface ChatUsageQuery {
  readonly workspaceId: string
  readonly principal: string
  readonly contextId: string
}

/** Of a workspace today, and of one conversation as long as usage is kept. */
export const readChatUsage = (
  store: ReadStore,
  query: ChatUsageQuery,
): Promise<{ readonly today: UsageSum; readonly conversation: UsageSum }> => store.read(() => chatUsageOf(query))

function* chatUsageOf({ workspaceId, principal, contextId }: ChatUsageQuery) {
  const [today] = yield* sql<UsageSumRow>(`select ${SUMS} from turn_usage where workspace_id = $1 and ${SINCE}`, [
    workspaceId,
    1,
  ])
  const [conversation] = yield* sql<UsageSumRow>(
    `select ${SUMS} from conversations c join messages m on m.conversation_id = c.id
     join turn_usage u on u.message_id = m.id
     where c.workspace_id = $1 and c.principal = $2 and c.context_id = $3 and c.id <> c.context_id`,
    [workspaceId, principal, contextId],
  )
  return { today: usageSum(today as UsageSumRow), conversation: usageSum(conversation as UsageSumRow) }
}

const dateOf = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

interface DayRow extends UsageSumRow {
  workspace_id: string
  /** Null when the workspace is deleted. */
  name: string | null
}

const ONE_DAY = `select u.workspace_id, min(w.name) as name, ${SUMS} from turn_usage u
  left join workspaces w on w.id = u.workspace_id and w.deleted_at is null
  where u.ended_at >= $1 and u.ended_at < $1 + ${DAY_MS} group by u.workspace_id`

/** Of all workspaces. Reads one day at a time: a month of a busy platform at once would hold the event loop. */
export async function readPlatformUsage(store: ReadStore, days: number): Promise<PlatformUsage> {
  const [clock] = await store.read(() => sql<{ now: number }>('select now_ms() as now'))
  const today = Math.floor((clock?.now ?? 0) / DAY_MS)
  const total = emptyRow()
  const byDay: { day: string; row: UsageSumRow }[] = []
  const byWorkspace = new Map<string, { name: string | null; row: UsageSumRow }>()
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
  const workspaces = [...byWorkspace].map(([id, { name, row }]) => ({ workspace_id: id, name, ...usageSum(row) }))
  return {
    total: usageSum(total),
    days: byDay.map(({ day, row }) => ({ day, ...usageSum(row) })),
    workspaces: workspaces.toSorted((a, b) => (b.cost_usd ?? 0) - (a.cost_usd ?? 0) || b.turns - a.turns),
  }
}

export const emptyRow = (): UsageSumRow => ({
  turns: 0,
  known: 0,
  priced: 0,
  input: null,
  output: null,
  cost: null,
  duration: null,
})

/** Unknown plus a number is that number; unknown stays unknown. */
function addRow(sum: UsageSumRow, row: UsageSumRow): void {
  for (const key of Object.keys(sum) as (keyof UsageSumRow)[]) {
    const value = row[key]
    if (value !== null) sum[key] = (sum[key] ?? 0) + Number(value)
  }
}
