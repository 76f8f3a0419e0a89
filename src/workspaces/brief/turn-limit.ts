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
  const started: StartedTurns = new Map()
  return async (key, bridge) => {
    const brief = await briefing(key, bridge)
    if (!isMetered(brief.runtime)) return brief
    // Read here and nowhere else: a change of it needs no new backend.
    const { max_turns_per_hour: given, ...options } = brief.options
    const limit = Number(given) || TURNS_PER_HOUR_DEFAULT
    const metered = { ...brief, options, metered: true }
    const count = await store.read(() => countRecentTurns(key.workspaceId, limit))
    // From a read to the end nothing is awaited: two turns cannot both take the last place.
    if (count + (started.get(key.workspaceId)?.size ?? 0) < limit) {
      recordStart(started, key, clock.monotonicMs())
      return metered
    }
    const ended = await store.read(() => listRecentTurns(key.workspaceId, limit))
    const nowMs = clock.monotonicMs()
    pruneStarted(started, key.workspaceId, { ended, nowMs })
    const runningAges = [...(started.get(key.workspaceId)?.values() ?? [])].map((startMs) => nowMs - startMs)
    const ages = [...runningAges, ...ended.map(({ ageMs }) => ageMs)].sort((one, other) => one - other)
    const oldestMs = ages[limit - 1]
    if (oldestMs !== undefined) return { ...metered, parked: park(limit, HOUR_MS - oldestMs) }
    recordStart(started, key, nowMs)
    return metered
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

/** Forgets started turns that have a row by now, or that started more than an hour ago. */
function pruneStarted(
  started: StartedTurns,
  workspaceId: string,
  options: { ended: readonly EndedTurn[]; nowMs: number },
) {
  const turns = started.get(workspaceId)
  if (turns === undefined) return
  for (const { id } of options.ended) turns.delete(id)
  for (const [id, startMs] of turns) if (options.nowMs - startMs >= HOUR_MS) turns.delete(id)
  if (turns.size === 0) started.delete(workspaceId)
}

function recordStart(started: StartedTurns, key: TurnKey, nowMs: number): void {
  const turns = started.get(key.workspaceId) ?? new Map<string, number>()
  turns.set(leaseId(key), nowMs)
  started.set(key.workspaceId, turns)
}

interface EndedTurn {
  /** `leaseId` of the turn. */
  readonly id: string
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
  return rows.map(({ message_id, epoch, age }) => ({
    id: leaseId({ messageId: message_id, epoch }),
    ageMs: age,
  }))
}
