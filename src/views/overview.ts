/** What goes on in all workspaces: what each used today and what in it waits for a person, and who works for whom. */
import type { ApiAnswer } from '../api/api.ts'
import { DAY_MS } from '../duration.ts'
import { type ReadStore, sql, type Transaction } from '../store/store.ts'
import { emptyRow, SUMS, type UsageSumRow, usageSum } from './usage.ts'

/** Questions are searched among this many of the last changed tasks of a workspace. */
const TASKS_SEARCHED = 100

export interface OverviewQuery {
  /** The last workspace of the page before. */
  readonly after?: string | undefined
  readonly limit: number
}

type OverviewPage = ApiAnswer<'GET /overview'>
type OpenDelegations = ApiAnswer<'GET /delegations/open'>

export const readOverview = (store: ReadStore, query: OverviewQuery): Promise<OverviewPage> =>
  store.read(() => overviewOf(query))

const PAIRS_MAX = 500

/** Reads only open children, which have an index of their own. A child that ended may be open until its parent knows. */
const OPEN_DELEGATIONS = `select p.workspace_id as "from", c.workspace_id as "to", count(*) as count
  from messages c join messages p on p.id = c.parent_id
  where c.child_open = 1 and c.settled_at is null
  group by p.workspace_id, c.workspace_id order by count(*) desc, p.workspace_id, c.workspace_id limit ${PAIRS_MAX}`

/** The most delegations first. */
export const readOpenDelegations = async (store: ReadStore): Promise<OpenDelegations> => ({
  delegations: await store.read(() => sql<OpenDelegations['delegations'][number]>(OPEN_DELEGATIONS)),
})

interface AttentionRow {
  id: string
  dead: number
  questions: number
}

/** A task of a running turn that waits for a permission is on the list of pending asks and not counted here. */
const ATTENTION = `select l.workspace_id as id,
    (select count(*) from messages d where d.workspace_id = l.workspace_id and d.state = 'dead'
       and d.replayed_as is null and d.discarded_at is null) as dead,
    (select count(*) from (select t.id, t.state, t.principal from tasks t where t.workspace_id = l.workspace_id
         order by t.updated_at desc limit ${TASKS_SEARCHED}) r
       where r.principal = 'people' and r.state in ('TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED')
         and not exists (select 1 from asks a where a.task_id = r.id and a.state = 'open' and a.tool is not null)
    ) as questions
  from workspace_load l where l.workspace_id > $1 order by l.workspace_id limit $2`

function* overviewOf({ after = '', limit }: OverviewQuery): Transaction<OverviewPage> {
  const rows = yield* sql<AttentionRow>(ATTENTION, [after, limit + 1])
  const page = rows.slice(0, limit)
  const last = page.at(-1)?.id ?? after
  const used = yield* sql<UsageSumRow & { workspace_id: string }>(
    `select workspace_id, ${SUMS} from turn_usage
     where ended_at >= (now_ms() / ${DAY_MS}) * ${DAY_MS} and workspace_id > $1 and workspace_id <= $2
     group by workspace_id`,
    [after, last],
  )
  const sums = new Map(used.map((row) => [row.workspace_id, usageSum(row)]))
  return {
    workspaces: page.map(({ id, dead, questions }) => ({
      id,
      dead_letters: dead,
      questions,
      today: sums.get(id) ?? usageSum(emptyRow()),
    })),
    next: rows.length > limit ? last : undefined,
  }
}
