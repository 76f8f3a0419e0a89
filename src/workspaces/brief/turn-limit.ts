/**
 * How many turns an hour may cost money: `max_turns_per_hour` of the workspace. Only turns of model agents count: a
 * shell command or the mock costs nothing, and is not even looked at. Added to the brief, so that it holds for a bridge
 * too. Turns that have ended are counted from their rows, so that a restart forgets none; those that run are counted
 * from memory. What is over the limit is parked: it goes back to its place in the queue with a time and a reason.
 */
import type { Clock } from '../../clock.ts'
import { leaseId } from '../../inbox/inbox.ts'
import type { Brief } from '../../protocol/brief.ts'
import { type Store, sql, type Transaction } from '../../store/store.ts'

const HOUR_MS = 3600_000
const TURNS_PER_HOUR_DEFAULT = 60
/** Never less: what is parked comes back as a lease, and a lease costs a transaction. */
const PARK_MS_MIN = 1000

/** Of a lease. */
interface TurnKey {
  readonly workspaceId: string
  readonly messageId: string
  readonly epoch: number
}

export interface TurnLimitOptions {
  readonly store: Store
  readonly clock: Clock
  /** Whether turns of that backend may ask a model that is paid for. */
  readonly isMetered: (runtime: string) => boolean
}

/** The same briefing; the brief of a model agent is metered, and parked where the hour is used up. */
export function withTurnLimit<K extends TurnKey, B>(
  briefing: (key: K, bridge?: B) => Promise<Brief>,
  { store, clock, isMetered }: TurnLimitOptions,
): (key: K, bridge?: B) => Promise<Brief> {
  const begun: StartedTurns = new Map()
  return async (key, bridge) => {
    const brief = await briefing(key, bridge)
    if (!isMetered(brief.runtime)) return brief
    // Read here and nowhere else: a change of it needs no new backend.
    const { max_turns_per_hour: given, ...options } = brief.options
    const limit = Number(given) || TURNS_PER_HOUR_DEFAULT
    const metered = { ...brief, options, metered: true }
    const count = await store.read(() => countRecentTurns(key.workspaceId, limit))
    // From a read to the end nothing is awaited: two turns cannot both take the last place.
    if (count + (begun.get(key.workspaceId)?.size ?? 0) < limit) {
      recordStart(key, begun, clock.monotonicMs())
      return metered
    }
    const ended = await store.read(() => listRecentTurns(key.workspaceId, limit))
    const ages = agesOf(key.workspaceId, ended, { begun, nowMs: clock.monotonicMs() })
    const oldest = ages[limit - 1]
    if (oldest === undefined) {
      recordStart(key, begun, clock.monotonicMs())
      return metered
    }
    return { ...metered, parked: park(limit, HOUR_MS - oldest) }
  }
}

function park(limit: number, restMs: number): NonNullable<Brief['parked']> {
  const afterMs = Math.max(PARK_MS_MIN, Math.ceil(restMs))
  const minutes = Math.ceil(afterMs / 60_000)
  const reason = `waiting: the ${limit} turns an hour of this workspace are used up (max_turns_per_hour), next in ${minutes} min`
  return { afterMs, reason }
}

/**
 * When each turn that this process began began, by workspace and turn. One whose row has been seen, or whose hour is
 * over, goes when the limit is near: so there are never more than that of a workspace.
 */
type StartedTurns = Map<string, Map<string, number>>

interface Counting {
  readonly begun: StartedTurns
  readonly nowMs: number
}

/** How long ago each turn of the last hour was, the latest first. */
function agesOf(workspaceId: string, ended: readonly EndedTurn[], { begun, nowMs }: Counting): number[] {
  const mine = begun.get(workspaceId)
  for (const { name } of ended) mine?.delete(name)
  for (const [name, beganMs] of mine ?? []) if (nowMs - beganMs >= HOUR_MS) mine?.delete(name)
  if (mine?.size === 0) begun.delete(workspaceId)
  const running = [...(mine?.values() ?? [])].map((beganMs) => nowMs - beganMs)
  return [...running, ...ended.map(({ ageMs }) => ageMs)].sort((one, other) => one - other)
}

function recordStart(key: TurnKey, begun: StartedTurns, nowMs: number): void {
  const mine = begun.get(key.workspaceId) ?? new Map<string, number>()
  mine.set(leaseId(key), nowMs)
  begun.set(key.workspaceId, mine)
}

interface EndedTurn {
  readonly name: string
  readonly ageMs: number
}

/** How many turns of the hour have ended. Nearly always that says enough, and it costs no row. */
function* countRecentTurns(workspaceId: string, limit: number): Transaction<number> {
  const [row] = yield* sql<{ turns: number }>(
    `select count(*) as turns from (select 1 as turn from turn_usage
       where workspace_id = $1 and ended_at > now_ms() - ${HOUR_MS} limit $2) lately`,
    [workspaceId, limit],
  )
  return row?.turns ?? 0
}

/** The latest turns of the hour; more than the limit nobody needs to know. */
function* listRecentTurns(workspaceId: string, limit: number): Transaction<EndedTurn[]> {
  const rows = yield* sql<{ message_id: string; epoch: number; age: number }>(
    `select message_id, epoch, now_ms() - ended_at as age from turn_usage
     where workspace_id = $1 and ended_at > now_ms() - ${HOUR_MS} order by ended_at desc limit $2`,
    [workspaceId, limit],
  )
  return rows.map(({ message_id, epoch, age }) => ({ name: leaseId({ messageId: message_id, epoch }), ageMs: age }))
}
