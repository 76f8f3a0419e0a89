/** What the owners of a workspace always allow, the oldest rule first. */
import type { ApiAnswer } from '../../api/api.ts'
import { readTimeCursor, withinPage, writeTimeCursor } from '../../store/page-budget.ts'
import { type ReadStore, sql, type Transaction } from '../../store/store.ts'
import { instant, instantOf } from '../instant.ts'

type RulesAnswer = ApiAnswer<'GET /workspaces/{id}/rules'>
type RuleAnswer = RulesAnswer['rules'][number]

/** `after` is the `next` of the page before. */
export const readRules = (store: ReadStore, workspaceId: string, after?: string): Promise<RulesAnswer> =>
  store.read(() => rulesOf(workspaceId, after))

/** Undefined where there is no such rule any more. */
export async function readRule(store: ReadStore, id: string): Promise<RuleAnswer | undefined> {
  const [row] = await store.read(() => sql<RuleRow>(`select ${COLUMNS} from permission_rules r where r.id = $1`, [id]))
  return row && rule(row)
}

/** Rows of a page. */
const LISTED_MAX = 500

const COLUMNS = 'r.id, r.workspace_id, r.tool, r.scope, r.pattern, r.made_by, r.made_at, r.used, r.last_used_at'

const LATER = 'from permission_rules where workspace_id = $1 and (made_at > $2 or (made_at = $2 and id > $3))'

const PAGE = `select ${COLUMNS} from (${withinPage(
  `select id, made_at, octet_length(pattern) as bytes ${LATER} order by made_at, id limit ${LISTED_MAX}`,
  'p.made_at, p.id',
)}) k join permission_rules r on r.id = k.id order by r.made_at, r.id`

interface RuleRow {
  id: string
  workspace_id: string
  tool: string
  scope: RuleAnswer['scope']
  pattern: string
  made_by: string
  made_at: number
  used: number
  last_used_at: number | null
}

function* rulesOf(workspaceId: string, after: string | undefined): Transaction<RulesAnswer> {
  const from = after === undefined ? { atMs: 0, id: '' } : readTimeCursor(after)
  const rows = yield* sql<RuleRow>(PAGE, [workspaceId, from.atMs, from.id])
  const last = rows.at(-1)
  if (last === undefined) return { rules: [] }
  const cursor = { atMs: last.made_at, id: last.id }
  const later = yield* sql(`select id ${LATER} limit 1`, [workspaceId, cursor.atMs, cursor.id])
  return { rules: rows.map(rule), next: later.length > 0 ? writeTimeCursor(cursor) : undefined }
}

const rule = ({ made_at, last_used_at, ...row }: RuleRow): RuleAnswer => ({
  ...row,
  made_at: instant(made_at),
  last_used_at: instantOf(last_used_at),
})
