/**
 * The owners' list of pending asks: the permissions that running turns of all workspaces ask for, the oldest first. An ask
 * of a turn that was lost is not on it, because no turn waits for the answer.
 */
import type { ApiAnswer } from '../../api/api.ts'
import { askIdOf, inAskStates } from '../../inbox/rows/ask.ts'
import { inStates } from '../../inbox/rows/message.ts'
import { ruleChoices } from '../../inbox/rules/rule-pattern.ts'
import { readTimeCursor, withinPage, writeTimeCursor } from '../../store/page-budget.ts'
import { type ReadStore, sql, type Transaction } from '../../store/store.ts'
import { instant } from '../instant.ts'

export interface PendingAsksQuery {
  readonly workspaceId?: string | undefined
  /** The `next` of the page before. */
  readonly after?: string | undefined
}

type PendingAsksAnswer = Pick<ApiAnswer<'GET /pending'>, 'pending' | 'next'>
export type PendingAskAnswer = PendingAsksAnswer['pending'][number]

export const readPendingAsks = (store: ReadStore, query: PendingAsksQuery): Promise<PendingAsksAnswer> =>
  store.read(function* () {
    const { rows, next } = yield* pendingAskPage(query)
    return { pending: rows.map(pendingAsk), next }
  })

/** Rows of a page. */
const LISTED_MAX = 500

/** `$1` is a workspace, or empty for all. The conversation holds the lease in whose attempt the ask was made. */
export const OPEN_ASKS = `from asks n join messages m on m.id = n.message_id join conversations c on c.id = m.conversation_id
  where n.${inAskStates('open')} and n.tool is not null and c.lease_epoch = n.epoch and m.${inStates('leased')}
    and (n.workspace_id = $1 or $1 = '')`

const LATER = `${OPEN_ASKS} and (n.asked_at > $2 or (n.asked_at = $2 and n.message_id > $3))`

const PAGE = `select a.id, a.message_id, a.epoch, a.workspace_id, a.task_id, a.tool, a.subject, a.asked_at,
    a.expires_at, now_ms() as now
  from (${withinPage(
    `select n.message_id, n.epoch, n.id, n.asked_at, octet_length(n.subject) + octet_length(n.tool) as bytes
     ${LATER} order by n.asked_at, n.message_id limit ${LISTED_MAX}`,
    'p.asked_at, p.message_id',
  )}) k join asks a on a.message_id = k.message_id and a.epoch = k.epoch and a.id = k.id
  order by a.asked_at, a.message_id`

export interface PendingAskRow {
  id: string
  message_id: string
  epoch: number
  workspace_id: string
  task_id: string
  tool: string
  subject: string
  asked_at: number
  expires_at: number
  now: number
}

export function* pendingAskPage({
  workspaceId = '',
  after,
}: PendingAsksQuery): Transaction<{ rows: PendingAskRow[]; next?: string | undefined }> {
  const from = after === undefined ? { atMs: 0, id: '' } : readTimeCursor(after)
  const rows = yield* sql<PendingAskRow>(PAGE, [workspaceId, from.atMs, from.id])
  const last = rows.at(-1)
  if (last === undefined) return { rows }
  const cursor = { atMs: last.asked_at, id: last.message_id }
  const later = yield* sql(`select n.id ${LATER} limit 1`, [workspaceId, cursor.atMs, cursor.id])
  return { rows, next: later.length > 0 ? writeTimeCursor(cursor) : undefined }
}

export function pendingAsk(row: PendingAskRow): PendingAskAnswer {
  const { exact, wider } = ruleChoices(row)
  return {
    id: askIdOf({ messageId: row.message_id, epoch: row.epoch, id: row.id }),
    workspace_id: row.workspace_id,
    task_id: row.task_id,
    tool: row.tool,
    subject: row.subject,
    asked_at: instant(row.asked_at),
    expires_in: Math.ceil(Math.max(0, row.expires_at - row.now) / 1000),
    would_cover: exact,
    would_cover_more: wider,
  }
}
