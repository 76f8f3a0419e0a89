/**
 * Clock correction at start, for SQLite: the wall clock was set back while no process ran, as a time server does after
 * a wrong date. The store takes its time from the wall clock at each start, so waiting messages would wait until the
 * clock catches up, perhaps for years. Their times are moved back by the same amount. PostgreSQL has its own clock,
 * which other nodes use too.
 */
import { sql, statement, type Transaction, together } from '../../store/store.ts'
import { moveReadyTimesBack } from '../rows/conversation.ts'
import { moveTimesBack, OPEN_MESSAGES } from '../rows/message-updates.ts'

/** No retry is further away: a later ready time was written by another clock. */
const WAIT_MS_MAX = 24 * 3600_000
/** Smaller jumps are normal adjustments. */
const JUMP_MS_MIN = 1000

interface Latest {
  admitted_in: number | null
  ready_in: number | null
}

/** Returns by how much the clock was set back, as far as the open messages show; 0 where it was not. */
export function* correctClock(): Transaction<number> {
  // Only open messages are compared: they are moved with the clock, so the next start finds nothing to correct.
  const [latest] = yield* sql<Latest>(
    `select max(admitted_at) - now_ms() as admitted_in, max(ready_at) - now_ms() as ready_in
     from messages where id in (${OPEN_MESSAGES})`,
  )
  const backMs = Math.max(latest?.admitted_in ?? 0, (latest?.ready_in ?? 0) - WAIT_MS_MAX)
  if (backMs < JUMP_MS_MIN) return 0
  yield* together([
    moveTimesBack(backMs),
    moveReadyTimesBack(backMs),
    statement(`update deliveries set next_at = next_at - $1 where state = 'pending'`, [backMs]),
  ])
  return backMs
}
