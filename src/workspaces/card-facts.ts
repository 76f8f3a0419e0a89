/**
 * What a card shows of a workspace and its counters do not say: the last answer, today's cost, what waits for a person.
 * Each costs a search, and live readers ask every second. So the facts are kept until the log of the workspace grows: all
 * that they are made of is written together with an entry of the log.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { DAY_MS } from '../duration.ts'
import { type Store, sql, type Transaction } from '../store/store.ts'
import type { CardFacts, Workspace, WorkspaceLoad } from './workspace.ts'

/** The last answer is searched among this many of the last changed tasks. */
const TASKS_SEARCHED = 50
/** Workspaces that are read at once: a few milliseconds of work. */
const WORKSPACES_AT_ONCE = 100

/** A workspace with the last number of its log. */
export interface NumberedWorkspace {
  readonly workspace: Workspace & WorkspaceLoad
  readonly seq: number
  readonly nowMs: number
}

interface KnownFacts {
  readonly seq: number
  readonly day: number
  readonly facts: CardFacts
}

/** Adds the facts to workspaces as they were just read. */
export type AddCardFacts = (read: readonly NumberedWorkspace[]) => Promise<(Workspace & WorkspaceLoad)[]>

export function createCardFacts(store: Store): AddCardFacts {
  const known = new Map<string, KnownFacts>()
  return async (read) => {
    const isKnown = ({ workspace, seq, nowMs }: NumberedWorkspace) => {
      const entry = known.get(workspace.id)
      return entry !== undefined && entry.seq === seq && entry.day === dayOf(nowMs)
    }
    const stale = read.filter((each) => !isKnown(each))
    for (let at = 0; at < stale.length; at += WORKSPACES_AT_ONCE) {
      if (at > 0) await nextTurn()
      const group = stale.slice(at, at + WORKSPACES_AT_ONCE)
      const facts = await store.read(() => readFacts(group.map(({ workspace }) => workspace.id)))
      // Facts that are newer than the number are read again once the number is seen.
      group.forEach(({ workspace, seq, nowMs }, index) => {
        known.set(workspace.id, { seq, day: dayOf(nowMs), facts: facts[index] as CardFacts })
      })
    }
    return read.map(({ workspace }) => ({ ...workspace, card: (known.get(workspace.id) as KnownFacts).facts }))
  }
}

const dayOf = (ms: number): number => Math.floor(ms / DAY_MS)

interface FactsRow {
  answered_at: number | null
  questions: number
  dead: number
  deliveries: number
  budgets: number
  damaged: number
  turns: number
  unknown: number | null
  cost: number | null
}

/**
 * A task that waits for a permission is counted with the asks of its workspace. What waits for a person is counted as
 * `inbox/read/needs.ts` lists it.
 */
const FACTS = `select r.answered_at, u.turns, u.unknown, u.cost,
    (select count(*) from messages d where d.workspace_id = $1 and d.state = 'dead' and d.replayed_as is null
       and d.discarded_at is null) as dead,
    (select count(*) from tasks q where q.workspace_id = $1 and q.principal = 'people'
       and q.state in ('TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED')
       and not exists (select 1 from asks a where a.task_id = q.id and a.state = 'open' and a.tool is not null)
    ) as questions,
    (select count(*) from deliveries v where v.workspace_id = $1 and v.state in ('failed', 'unknown')
       and v.finished_at is null) as deliveries,
    (select count(*) from damaged_replies x where x.workspace_id = $1 and x.dismissed_at is null) as damaged,
    (select count(*) from budgets b where b.workspace_id = $1 and b.state = 'asked'
       and (b.day is null or b.day = now_ms() / ${DAY_MS}) and exists (select 1 from budget_waits w
         join messages m on m.id = w.message_id where w.budget_id = b.id and m.settled_at is null)) as budgets
  from (select max(case when s.state = 'TASK_STATE_COMPLETED' then s.updated_at end) as answered_at
    from (select t.state, t.updated_at from tasks t where t.workspace_id = $1
      order by t.updated_at desc limit ${TASKS_SEARCHED}) s) r
  cross join (select count(*) as turns, sum(cost_usd) as cost,
      sum(case when cost_usd is null then 1 else 0 end) as unknown
    from turn_usage where workspace_id = $1 and ended_at >= (now_ms() / ${DAY_MS}) * ${DAY_MS}) u`

function* readFacts(ids: readonly string[]): Transaction<CardFacts[]> {
  const all: CardFacts[] = []
  for (const id of ids) {
    const [row] = yield* sql<FactsRow>(FACTS, [id])
    // The statement joins two sums, so it has exactly one row.
    all.push(toFacts(row as FactsRow))
  }
  return all
}

const toFacts = ({ answered_at: answeredAtMs, turns, unknown, cost, ...row }: FactsRow): CardFacts => ({
  ...(answeredAtMs !== null && { lastAnsweredAtMs: answeredAtMs }),
  deadLetters: Number(row.dead),
  questions: Number(row.questions),
  deliveries: Number(row.deliveries),
  budgets: Number(row.budgets),
  damagedReplies: Number(row.damaged),
  today: { turns: Number(turns), unknownTurns: Number(unknown ?? 0), costUsd: cost },
})
