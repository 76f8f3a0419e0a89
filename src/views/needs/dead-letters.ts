/** Messages that failed for good. Each stays listed, the newest first, until a person replays or discards it. */
import type { ApiAnswer } from '../../api/api.ts'
import { inStates } from '../../inbox/rows/message.ts'
import type { StatusMessage } from '../../inbox/rows/status-message.ts'
import { restoreEnvelope } from '../../protocol/envelope.ts'
import type { Sender } from '../../protocol/request.ts'
import { readTimeCursor, withinPage, writeTimeCursor } from '../../store/page-budget.ts'
import { type ReadStore, sql, type Transaction } from '../../store/store.ts'
import { instant } from '../instant.ts'

export interface DeadLettersQuery {
  readonly workspaceId: string
  /** The `next` of the page before. */
  readonly after?: string | undefined
  /** The reader is an owner: show what the program printed. */
  readonly detail: boolean
}

type DeadLettersAnswer = ApiAnswer<'GET /workspaces/{id}/dead-letters'>
type DeadLetterAnswer = DeadLettersAnswer['dead_letters'][number]

export const readDeadLetters = (store: ReadStore, query: DeadLettersQuery): Promise<DeadLettersAnswer> =>
  store.read(() => deadLettersOf(query))

/** Rows of a page. */
const LISTED_MAX = 200

const EARLIER = `from messages d where d.workspace_id = $1 and d.${inStates('dead')} and d.replayed_as is null
  and d.discarded_at is null and (d.settled_at < $2 or (d.settled_at = $2 and d.id < $3))`

const PAGE = `select m.id, m.task_id, t.context_id, m.envelope, m.sender, m.failures, m.losses, m.settled_at,
    t.status_message
  from (${withinPage(
    `select d.id, d.settled_at, octet_length(d.envelope) as bytes ${EARLIER}
     order by d.settled_at desc, d.id desc limit ${LISTED_MAX}`,
    'p.settled_at desc, p.id desc',
  )}) k join messages m on m.id = k.id join tasks t on t.id = m.task_id order by m.settled_at desc, m.id desc`

interface DeadRow {
  id: string
  task_id: string
  context_id: string
  envelope: string
  sender: string
  failures: number
  losses: number
  settled_at: number
  status_message: string | null
}

function* deadLettersOf({ workspaceId, after, detail }: DeadLettersQuery): Transaction<DeadLettersAnswer> {
  const from = after === undefined ? { atMs: Number.MAX_SAFE_INTEGER, id: '' } : readTimeCursor(after)
  const rows = yield* sql<DeadRow>(PAGE, [workspaceId, from.atMs, from.id])
  const last = rows.at(-1)
  if (last === undefined) return { dead_letters: [] }
  const cursor = { atMs: last.settled_at, id: last.id }
  const more = yield* sql(`select d.id ${EARLIER} limit 1`, [workspaceId, cursor.atMs, cursor.id])
  return {
    dead_letters: rows.map((row) => deadLetter(row, detail)),
    next: more.length > 0 ? writeTimeCursor(cursor) : undefined,
  }
}

function deadLetter(row: DeadRow, withDetail: boolean): DeadLetterAnswer {
  const { code = 'internal', parts, detail } = JSON.parse(row.status_message ?? '{}') as Partial<StatusMessage>
  return {
    id: row.id,
    task_id: row.task_id,
    context_id: row.context_id,
    code,
    reason: parts?.[0]?.text ?? '',
    detail: withDetail ? detail : undefined,
    failures: row.failures,
    losses: row.losses,
    sender: JSON.parse(row.sender) as Sender,
    message: restoreEnvelope(row.envelope).message,
    at: instant(row.settled_at),
  }
}
