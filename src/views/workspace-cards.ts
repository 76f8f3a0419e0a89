/**
 * What a card shows of a workspace and its counters do not say: the last answer, today's cost, what waits for a person.
 * Each costs a search, and live readers ask every second. So the facts are kept until the log of the workspace grows: all
 * that they are made of is written together with an entry of the log.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ApiAnswer } from '../api/api.ts'
import { DAY_MS } from '../duration.ts'
import { type ReadStore, sql, type Transaction } from '../store/store.ts'
import type { Workspace, WorkspaceLoad } from '../workspaces/workspace.ts'
import { instantOf } from './instant.ts'
import { needOfWorkspace } from './needs/workspace-need.ts'

/** The last answer is searched among this many of the last changed tasks. */
const TASKS_SEARCHED = 50
/** Workspaces that are read at once: a few milliseconds of work. */
const WORKSPACES_AT_ONCE = 100

export type WorkspaceCard = Pick<ApiAnswer<'GET /workspaces/{id}'>, 'last_answered_at' | 'today' | 'needs_you'>

/** What a card follows from, beside its own rows. */
export type CardedWorkspace = Pick<Workspace, 'id' | 'status' | 'statusReason'> &
  Partial<Pick<WorkspaceLoad, 'queueDepth' | 'permissionsAsked'>>

/** The cards of workspaces as they were just read, by id. A workspace that is gone has none. */
export type ReadCards = (workspaces: readonly CardedWorkspace[]) => Promise<ReadonlyMap<string, WorkspaceCard>>

interface KnownFacts {
  readonly seq: number
  readonly day: number
  readonly facts: CardFacts
}

export function createCardReader(store: ReadStore): ReadCards {
  const known = new Map<string, KnownFacts>()
  return async (workspaces) => {
    const numbers = await readNumbers(store, workspaces)
    const stale = workspaces.filter(({ id }) => {
      const number = numbers.get(id)
      const entry = known.get(id)
      return number !== undefined && (entry?.seq !== number.seq || entry.day !== number.day)
    })
    for (let at = 0; at < stale.length; at += WORKSPACES_AT_ONCE) {
      if (at > 0) await nextTurn()
      const group = stale.slice(at, at + WORKSPACES_AT_ONCE).map(({ id }) => id)
      const facts = await store.read(() => readFacts(group))
      // Facts that are newer than the number are read again once the number is seen.
      for (const [index, id] of group.entries()) {
        known.set(id, { ...(numbers.get(id) as LogNumber), facts: facts[index] as CardFacts })
      }
    }
    const cards = new Map<string, WorkspaceCard>()
    for (const workspace of workspaces) {
      const { facts } = (numbers.has(workspace.id) && known.get(workspace.id)) || {}
      if (facts !== undefined) cards.set(workspace.id, workspaceCard(workspace, facts))
    }
    return cards
  }
}

/** The last number of the log of a workspace, and the day of the store. */
type LogNumber = Pick<KnownFacts, 'seq' | 'day'>

const NUMBERS = `select workspace_id as id, seq, now_ms() as now from workspace_load
  where workspace_id >= $1 and workspace_id <= $2`

async function readNumbers(
  store: ReadStore,
  workspaces: readonly CardedWorkspace[],
): Promise<ReadonlyMap<string, LogNumber>> {
  if (workspaces.length === 0) return new Map()
  const ids = workspaces.map(({ id }) => id).toSorted()
  const rows = await store.read(() =>
    sql<{ id: string; seq: number; now: number }>(NUMBERS, [ids[0] ?? '', ids.at(-1) ?? '']),
  )
  return new Map(rows.map(({ id, seq, now }) => [id, { seq, day: Math.floor(now / DAY_MS) }]))
}

export interface CardFacts {
  /** The last answer among its latest tasks. */
  answered_at: number | null
  /** Tasks of people that ask for an answer or a log-in. */
  questions: number
  /** Dead letters that no person has handled. */
  dead: number
  /** Answers that may not have arrived, or could not be sent. */
  deliveries: number
  /** Spent budgets for which messages wait. */
  budgets: number
  /** Stored replies that were changed on the disk. */
  damaged: number
  turns: number
  unknown: number | null
  cost: number | null
}

/**
 * A task that waits for a permission is counted with the asks of its workspace. What waits for a person is counted as
 * `needs/need-rows.ts` lists it.
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
    const [row] = yield* sql<CardFacts>(FACTS, [id])
    // The statement joins two sums, so it has exactly one row.
    all.push(row as CardFacts)
  }
  return all
}

export const workspaceCard = (workspace: CardedWorkspace, facts: CardFacts): WorkspaceCard => ({
  last_answered_at: instantOf(facts.answered_at),
  today: { turns: Number(facts.turns), unknown_turns: Number(facts.unknown ?? 0), cost_usd: facts.cost },
  needs_you: needsYou(workspace, facts),
})

/** How many things wait for a person, as `GET /needs-you` lists them, and the sentence about the most urgent one. */
function needsYou(workspace: CardedWorkspace, facts: CardFacts): WorkspaceCard['needs_you'] {
  const { permissionsAsked = 0 } = workspace
  const [questions, budgets, dead] = [Number(facts.questions), Number(facts.budgets), Number(facts.dead)]
  const [deliveries, damaged] = [Number(facts.deliveries), Number(facts.damaged)]
  const own = needOfWorkspace(workspace)
  const stored = questions + budgets + dead + deliveries + damaged
  const count = permissionsAsked + stored + (own === undefined ? 0 : 1)
  if (count === 0) return null
  const reasons = [
    permissionsAsked > 0 &&
      counted(permissionsAsked, 'a turn waits for your permission', 'turns wait for your permission'),
    questions > 0 && counted(questions, 'a message asks you a question', 'messages ask you a question'),
    budgets > 0 && counted(budgets, 'a budget is spent', 'budgets are spent'),
    own?.reason ?? false,
    dead > 0 && counted(dead, 'a message failed for good', 'messages failed for good'),
    deliveries > 0 && counted(deliveries, 'an answer may not have arrived', 'answers may not have arrived'),
    damaged > 0 && counted(damaged, 'a stored reply is damaged', 'stored replies are damaged'),
  ]
  return { count, reason: reasons.find((reason) => typeof reason === 'string') ?? '' }
}

const counted = (count: number, one: string, many: string): string => (count === 1 ? one : `${count} ${many}`)
