/**
 * Waiting time as the platforms know it: only time in which some platform looked after the queue counts towards the
 * expiry of a message. A wall clock that is set ahead by a year between two starts, or in the database server, would
 * otherwise expire all waiting messages at once. While messages wait, the sweep stores a mark each minute. A gap between
 * two marks is time without a platform, or a jump of the clock; it is added to the time that messages have left.
 */
import { type Store, sql, statement, type Transaction, together } from '../../store/store.ts'
import { inStates } from '../rows/message.ts'
import { extendExpiry } from '../rows/message-updates.ts'

/** A mark is one small write; while no message waits there is none. */
const MARK_MS = 60_000
/** A shorter gap is a restart or a slow sweep, and counts. */
const GAP_MS_MAX = 5 * 60_000

const MARK = 'waiting'

/** An SQL condition: the time up to now is known to have been looked after. */
export const IS_MARKED = `exists (select 1 from upkeep_clock where name = '${MARK}' and at_ms >= now_ms() - ${GAP_MS_MAX})`

interface MarkRow {
  at_ms: number | null
  now: number
  waits: number
}

/** Returns false when no message waits. Call it before messages are expired. */
export async function markWaitingTime(store: Store): Promise<boolean> {
  const { waits, at_ms: atMs, now } = await store.read(readMark)
  if (waits === 0) return false
  if (atMs === null || atMs > now || now - atMs >= MARK_MS) await store.write(writeMark)
  return true
}

function* readMark(): Transaction<MarkRow> {
  const [row] = yield* sql<MarkRow>(
    `select (select at_ms from upkeep_clock where name = $1) as at_ms, now_ms() as now,
       case when exists (select 1 from messages where ${inStates('queued')}) then 1 else 0 end as waits`,
    [MARK],
  )
  return row as MarkRow
}

/** Several nodes may come at once: only the first one finds the gap. */
function* writeMark(): Transaction<void> {
  const [row] = yield* sql<{ at_ms: number; now: number }>(
    'select at_ms, now_ms() as now from upkeep_clock where name = $1 /*for update*/',
    [MARK],
  )
  yield* together([
    ...(row !== undefined && row.now - row.at_ms > GAP_MS_MAX ? [extendExpiry(row.at_ms)] : []),
    statement(
      `insert into upkeep_clock (name, at_ms) values ($1, now_ms())
       on conflict (name) do update set at_ms = excluded.at_ms`,
      [MARK],
    ),
  ])
}
