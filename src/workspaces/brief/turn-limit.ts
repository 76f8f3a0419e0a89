/**
 * Enforces `max_turns_per_hour` of a workspace. Only turns of model agents count; a shell command or the mock costs no
 * money and no query. The limit is part of the brief, so it holds for bridges too. Ended turns are counted from their
 * rows, so that a restart forgets none; running turns are counted in memory. A turn over the limit is parked. A further
 * attempt at a message is no further turn: a provider that fails must not use up the hour.
 */

import type { Clock } from '../../clock.ts'
import { HOUR_MS } from '../../duration.ts'
import { countTurnsOfHour, type EndedTurn, listTurnsOfHour } from '../../inbox/brief-reads.ts'
import type { Lease } from '../../inbox/worker.ts'
import type { Brief } from '../../protocol/brief.ts'
import type { Store } from '../../store/store.ts'
import { TURNS_PER_HOUR_DEFAULT } from '../workspace.ts'
import type { BriefStep } from './make-brief.ts'

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
    const count = await store.read(() => countTurnsOfHour(key.workspaceId, limit))
    // No await between a read and its recordStart: two turns could otherwise both take the last place.
    if (count + (started.get(key.workspaceId)?.size ?? 0) < limit) {
      recordStart(started, key, clock.monotonicMs())
      return metered
    }
    const ended = await store.read(() => listTurnsOfHour(key.workspaceId, limit))
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
  for (const { messageId } of options.ended) turns.delete(messageId)
  for (const [id, startMs] of turns) if (options.nowMs - startMs >= HOUR_MS) turns.delete(id)
  if (turns.size === 0) started.delete(workspaceId)
}

function recordStart(started: StartedTurns, key: TurnKey, nowMs: number): void {
  const turns = started.get(key.workspaceId) ?? new Map<string, number>()
  turns.set(key.messageId, nowMs)
  started.set(key.workspaceId, turns)
}
