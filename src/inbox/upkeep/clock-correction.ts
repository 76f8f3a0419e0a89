/**
 * The wall clock was set back while no process was here, as a time server does after a wrong date. The embedded store
 * takes its time from the wall at each start, so everything that waits would wait until the clock has caught up, maybe
 * for years. At start it is moved back by as much. PostgreSQL has a clock of its own, which other nodes live by.
 */
import { sql, statement, type Transaction, together } from '../../store/store.ts'

/** No retry is further away; what is said to be ready later than this was written by another clock. */
const WAIT_MS_MAX = 6 * 3600_000
/** Clocks that are nudged every now and then differ by less. */
const JUMP_MS_MIN = 1000

/** What waits and what runs, each by the index that holds nothing else. */
const OPEN = `select id from messages where state = 'queued'
  union all select id from messages where state in ('leased', 'stopping')`

interface Latest {
  admitted_in: number | null
  ready_in: number | null
}

/** Returns by how much the clock was set back, as far as what waits can tell; 0 where all is well. */
export function* correctClock(): Transaction<number> {
  // Only what waits is asked: it is moved with the clock, so that the next start finds all in order.
  const [latest] = yield* sql<Latest>(
    `select max(admitted_at) - now_ms() as admitted_in, max(ready_at) - now_ms() as ready_in
     from messages where id in (${OPEN})`,
  )
  const backMs = Math.max(latest?.admitted_in ?? 0, (latest?.ready_in ?? 0) - WAIT_MS_MAX)
  if (backMs < JUMP_MS_MIN) return 0
  yield* together([
    statement(
      `update messages set admitted_at = admitted_at - $1, ready_at = ready_at - $1, expires_at = expires_at - $1
       where id in (${OPEN})`,
      [backMs],
    ),
    statement('update conversations set ready_at = ready_at - $1 where ready_at is not null', [backMs]),
    statement(`update deliveries set next_at = next_at - $1 where state = 'pending'`, [backMs]),
  ])
  return backMs
}
