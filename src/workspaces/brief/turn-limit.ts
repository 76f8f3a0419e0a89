/**
 * Enforces `max_turns_per_hour` of a workspace. Only turns of model agents count; a shell command or the mock costs no
 * money and no query. The limit is part of the brief, so it holds for bridges too. Ended turns are counted from their
 * rows, so that a restart forgets none; running turns are counted in memory. A turn over the limit is parked. A further
 * attempt at a message is no further turn: a provider that fails must not use up the hour.
 */
import type { Clock } from '../../clock.ts'
import type { Lease } from '../../inbox/worker.ts'
import type { Brief } from '../../protocol/brief.ts'
import { type Store, sql, type Transaction } from '../../store/store.ts'
import { TURNS_PER_HOUR_DEFAULT } from '../workspace.ts'
import type { BriefStep } from './make-brief.ts'

const HOUR_MS = 3600_000
/** The shortest time to park: a parked message comes back as a lease, and a lease costs a transaction. */
const PARK_MS_MIN = 1000

/** The fields of a lease that the limit depends on. */
type TurnKey = Pick<Lease, 'workspaceId' | 'messageId'> &
  Partial<Pick<Lease, 'failures' | 'losses' | 'interrupted' | 'sessionRetried' | 'parked'>>

export interface TurnLimitOptions {
  readonly store: Store
  readonly clock: Clock
  /** Whether turns of that backend may call a paid model. */
  readonly isMetered: (runtime: string) => boolean
}

/** Meters the brief of a model agent, and parks it when the limit is reached. */
export function turnLimitStep({ store, clock, isMetered }: TurnLimitOptions): BriefStep<TurnKey> {
  const started: StartedTurns = new Map()
  return async (brief, key) => {
    if (!isMetered(brief.runtime)) return brief
    // A message that waits for its budget runs no turn.
    if (brief.parked !== undefined) return brief
    // Not passed to the backend, so that a change of the limit does not replace the backend.
    const { max_turns_per_hour: given, ...options } = brief.options
    const limit = Number(given) || TURNS_PER_HOUR_DEFAULT
    const metered = { ...brief, options, metered: true }
    if (isFurtherAttempt(key)) return metered
    const count = await store.read(() => countRecentTurns(key.workspaceId, limit))
    // No await between a read and its recordStart: two turns could otherwise both take the last place.
    if (count + (started.get(key.workspaceId)?.size ?? 0) < limit) {
      recordStart(started, key, clock.monotonicMs())
      return metered
    }
    const ended = await store.read(() => listRecentTurns(key.workspaceId, limit))
    const nowMs = clock.monotonicMs()
    pruneStarted(started, key.workspaceId, { ended, nowMs })
    const runningAges = [...(started.get(key.workspaceId)?.values() ?? [])].map((startMs) => nowMs - startMs)
    const ages = [...runningAges, ...ended.map(({ ageMs }) => ageMs)].sort((one, other) => one - other)
    // The next turn may start when the oldest of the last `limit` turns is an hour old.
    const oldestMs = ages[limit - 1]
    if (oldestMs !== undefined) return { ...metered, parked: park(limit, HOUR_MS - oldestMs) }
    recordStart(started, key, nowMs)
    return metered
  }
}

const isFurtherAttempt = ({
  failures = 0,
  losses = 0,
  interrupted = false,
  sessionRetried = false,
  parked,
}: TurnKey): boolean => failures > 0 || losses > 0 || interrupted || sessionRetried || parked !== undefined

function park(limit: number, waitMs: number): NonNullable<Brief['parked']> {
  const afterMs = Math.max(PARK_MS_MIN, Math.ceil(waitMs))
  const minutes = Math.ceil(afterMs / 60_000)
  const reason = `waiting: the ${limit} turns an hour of this workspace are used up (max_turns_per_hour), next in ${minutes} min`
  return { afterMs, reason, waitsFor: 'turns_per_hour' }
}

/**
 * The start time of each turn that this process started, by workspace and message. Entries are pruned when the limit is
 * reached, so a workspace never has more of them than its limit.
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
  turns.set(key.messageId, nowMs)
  started.set(key.workspaceId, turns)
}

interface EndedTurn {
  /** Its message. */
  readonly id: string
  readonly ageMs: number
}

/** Of the messages whose first attempt ended in the last hour, that attempt. */
const FIRST_ATTEMPTS = `from turn_usage u where u.workspace_id = $1 and u.ended_at > now_ms() - ${HOUR_MS}
  and not exists (select 1 from turn_usage before where before.message_id = u.message_id and before.epoch < u.epoch)`

/** Counts the ended turns of the last hour. That is nearly always enough to decide, and it loads no rows. */
function* countRecentTurns(workspaceId: string, limit: number): Transaction<number> {
  const [row] = yield* sql<{ turns: number }>(
    `select count(*) as turns from (select 1 as turn ${FIRST_ATTEMPTS} limit $2) lately`,
    [workspaceId, limit],
  )
  return row?.turns ?? 0
}

/** The latest ended turns of the last hour, at most as many as the limit. */
function* listRecentTurns(workspaceId: string, limit: number): Transaction<EndedTurn[]> {
  const rows = yield* sql<{ message_id: string; age: number }>(
    `select u.message_id, now_ms() - u.ended_at as age ${FIRST_ATTEMPTS} order by u.ended_at desc limit $2`,
    [workspaceId, limit],
  )
  return rows.map(({ message_id: id, age: ageMs }) => ({ id, ageMs }))
}
