/**
 * What waits for a person, from the rows of the store: permissions, questions, budgets, dead letters, deliveries, damaged
 * replies, pairings, schedules. Each kind is a list of its own, the oldest first; `needs.ts` joins them to one.
 */
import type { ApiAnswer } from '../../api/api.ts'
import { formatWait } from '../../duration.ts'
import { nameDelivery } from '../../inbox/delivery-name.ts'
import type { StatusMessage } from '../../inbox/rows/status-message.ts'
import type { Part } from '../../protocol/a2a.ts'
import { restoreEnvelope } from '../../protocol/envelope.ts'
import { textOf } from '../../protocol/part.ts'
import { DAMAGED } from '../../protocol/stored-reply.ts'
import { readTimeCursor, type TimeCursor, withinPage, writeTimeCursor } from '../../store/page-budget.ts'
import { type Statement, sql, statement, type Transaction, type Value } from '../../store/store.ts'
import { TEXT_CHARACTERS_MAX, truncate } from '../../truncate.ts'
import { instant } from '../instant.ts'
import { ASKED_BUDGETS, type BudgetAskAnswer, budgetAsksOf, IS_AWAITED } from './budget-asks.ts'
import { OPEN_ASKS, type PendingAskRow, pendingAsk, pendingAskPage } from './pending-asks.ts'

export type NeedAnswer = ApiAnswer<'GET /needs-you'>['needs_you'][number]

/** A need without what the workspaces know of it: their names, and the calls that answer it. */
export type FoundNeed = Omit<NeedAnswer, 'workspace_name' | 'actions'>

export interface NeedPage {
  readonly needs: readonly FoundNeed[]
  /** The cursor of the next page; absent on the last one. */
  readonly next?: string | undefined
}

export interface NeedQuery {
  /** Empty for all. */
  readonly workspaceId: string
  readonly after?: string | undefined
}

/** One kind of need. */
export interface NeedSource {
  readonly kind: FoundNeed['kind']
  /** One row of `NeedCount`. */
  count(workspaceId: string): Statement
  /** The oldest first. */
  page(query: NeedQuery): Transaction<NeedPage>
}

export interface NeedCount {
  readonly count: number
  readonly latest: number | null
  readonly last: string | null
  readonly held?: number | null
}

/** Rows of a page. */
const LISTED_MAX = 100
/** Of a larger message the list shows no text. */
const ENVELOPE_BYTES_MAX = 16 * 1024

/** Differs after each change of the list: whatever is added is later than all others. */
export const markOf = ({ count, latest, last, held }: NeedCount): string =>
  `${count}.${latest}.${last}${held == null ? '' : `.${held}`}`

/** A kind whose rows are counted. `$1` is a workspace, or empty for all; `id` and `since` are expressions over `from`. */
interface CountedRows {
  readonly from: string
  readonly id: string
  readonly since: string
  /** One more thing that changes a listed need. */
  readonly held?: string
}

/** A kind that is listed from rows; `bytes` is an expression over `from`. */
interface NeedRows extends CountedRows {
  readonly bytes: string
  /** Where it is not `n.workspace_id`. */
  readonly workspace?: string
  /** What a listed row has besides id, workspace_id and since, from the joined tables. */
  readonly columns: string
  readonly join: string
}

interface ListedRow {
  id: string
  workspace_id: string
  since: number
}

interface NeedRow extends ListedRow {
  task_id: string
}

/** The text of each statement is built once. */
function counter({ from, id, since, held }: CountedRows): NeedSource['count'] {
  const more = held === undefined ? '' : `, sum(${held}) as held`
  const text = `select count(*) as count, max(${since}) as latest, max(${id}) as last${more} ${from}`
  return (workspaceId) => statement(text, [workspaceId])
}

function sourceOf<Row extends ListedRow>(
  kind: NeedSource['kind'],
  rows: NeedRows,
  toNeed: (row: Row) => FoundNeed,
): NeedSource {
  const pageText = pageOf(rows)
  const laterText = `select ${rows.id} ${afterCursor(rows)} limit 1`
  return {
    kind,
    count: counter(rows),
    *page({ workspaceId, after }) {
      const from: TimeCursor = after === undefined ? { atMs: 0, id: '' } : readTimeCursor(after)
      const page = yield* sql<Row>(pageText, cursorValues(workspaceId, from))
      const last = page.at(-1)
      if (last === undefined) return { needs: [] }
      const cursor = { atMs: last.since, id: last.id }
      const later = yield* sql(laterText, cursorValues(workspaceId, cursor))
      return { needs: page.map(toNeed), next: later.length > 0 ? writeTimeCursor(cursor) : undefined }
    },
  }
}

const cursorValues = (workspaceId: string, { atMs, id }: TimeCursor): Value[] => [workspaceId, atMs, id]

const afterCursor = ({ from, id, since }: NeedRows): string =>
  `${from} and (${since} > $2 or (${since} = $2 and ${id} > $3))`

const pageOf = (rows: NeedRows): string => `select k.id, k.workspace_id, k.since, ${rows.columns}
  from (${withinPage(
    `select ${rows.id} as id, ${rows.workspace ?? 'n.workspace_id'} as workspace_id, ${rows.since} as since, ${rows.bytes} as bytes ${afterCursor(rows)}
     order by since, id limit ${LISTED_MAX}`,
    'p.since, p.id',
  )}) k ${rows.join} order by k.since, k.id`

const PERMISSIONS: NeedSource = {
  kind: 'permission',
  count: counter({ from: OPEN_ASKS, id: 'n.message_id', since: 'n.asked_at' }),
  *page(query) {
    const { rows, next } = yield* pendingAskPage(query)
    return { needs: rows.map(permissionNeed), next }
  },
}

function permissionNeed(row: PendingAskRow): FoundNeed {
  const permission = pendingAsk(row)
  return {
    kind: 'permission',
    id: permission.id,
    workspace_id: row.workspace_id,
    since: permission.asked_at,
    reason: `it wants to use ${row.tool}`,
    expires_at: instant(Math.max(row.now, row.expires_at)),
    task_id: row.task_id,
    permission,
  }
}

const BUDGETS: NeedSource = {
  kind: 'budget',
  count: counter({ from: `${ASKED_BUDGETS} and ${IS_AWAITED}`, id: 'b.id', since: 'b.asked_at' }),
  *page(query) {
    return { needs: (yield* budgetAsksOf(query)).map(budgetNeed) }
  },
}

const budgetNeed = (budget: BudgetAskAnswer): FoundNeed => ({
  kind: 'budget',
  id: budget.id,
  workspace_id: budget.workspace_id,
  since: budget.asked_at,
  reason: budget.text,
  task_id: budget.task_id ?? undefined,
  budget,
})

/** A task of a program or an agent is answered by its sender; a task that waits for a permission is no question. */
const QUESTIONS: NeedRows = {
  from: `from tasks n where n.state in ('TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED')
    and n.principal = 'people' and (n.workspace_id = $1 or $1 = '')
    and not exists (select 1 from asks a where a.task_id = n.id and a.state = 'open' and a.tool is not null)`,
  id: 'n.id',
  since: 'n.updated_at',
  bytes: `octet_length(coalesce(n.status_message, ''))`,
  columns: `k.id as task_id, t.context_id, t.status_message,
    (select a.expires_at from asks a where a.task_id = k.id and a.state = 'open') as expires_at, now_ms() as now`,
  join: 'join tasks t on t.id = k.id',
}

interface QuestionRow extends NeedRow {
  context_id: string
  status_message: string | null
  expires_at: number | null
  now: number
}

function questionNeed(row: QuestionRow): FoundNeed {
  const text = statusTextOf(row.status_message)
  return {
    ...needOf('question', row),
    reason: text === '' ? 'the agent asks for something' : `the agent asks: ${firstLine(text)}`,
    context_id: row.context_id,
    text: text === '' ? undefined : text,
    expires_at: row.expires_at === null ? undefined : instant(Math.max(row.now, row.expires_at)),
  }
}

const WAITS_FOR_TURNS = `from messages m where m.waits_for = 'turns_per_hour' and m.state = 'queued' and m.ready_at > now_ms()`

/** One need for each workspace. */
const TURN_LIMITS: NeedRows = {
  from: `from (select m.workspace_id, min(m.admitted_at) as since ${WAITS_FOR_TURNS} and (m.workspace_id = $1 or $1 = '')
    group by m.workspace_id) n where true`,
  id: 'n.workspace_id',
  since: 'n.since',
  bytes: '0',
  columns: `(select count(*) ${WAITS_FOR_TURNS} and m.workspace_id = k.id) as waiting,
    (select min(m.ready_at) - now_ms() ${WAITS_FOR_TURNS} and m.workspace_id = k.id) as wait_ms`,
  join: '',
}

interface TurnLimitRow extends ListedRow {
  waiting: number
  wait_ms: number | null
}

function turnLimitNeed({ workspace_id: workspaceId, since, waiting, wait_ms: waitMs }: TurnLimitRow): FoundNeed {
  const who = Number(waiting) === 1 ? '1 message waits' : `${waiting} messages wait`
  const next = `the next one goes on in ${formatWait(waitMs ?? 0)}, or at once with a higher limit`
  return {
    kind: 'turn_limit',
    // A workspace that cannot work is a need with the plain id.
    id: `${workspaceId}.turns`,
    workspace_id: workspaceId,
    since: instant(since),
    reason: `its turns of this hour are used up (max_turns_per_hour): ${who}; ${next}`,
  }
}

const DEAD_LETTERS: NeedRows = {
  from: `from messages n where n.state = 'dead' and n.replayed_as is null and n.discarded_at is null
    and (n.workspace_id = $1 or $1 = '')`,
  id: 'n.id',
  since: 'n.settled_at',
  bytes: `case when octet_length(n.envelope) <= ${ENVELOPE_BYTES_MAX} then octet_length(n.envelope) else 0 end`,
  columns: `m.task_id, t.context_id, t.status_message, m.failures + m.losses as tries,
    case when octet_length(m.envelope) <= ${ENVELOPE_BYTES_MAX} then m.envelope end as envelope`,
  join: 'join messages m on m.id = k.id join tasks t on t.id = m.task_id',
}

interface DeadLetterRow extends NeedRow {
  context_id: string
  status_message: string | null
  tries: number
  envelope: string | null
}

function deadLetterNeed(row: DeadLetterRow): FoundNeed {
  const why = firstLine(statusTextOf(row.status_message))
  const attempts = row.tries > 1 ? `failed on all ${row.tries} attempts` : 'failed for good'
  const text = row.envelope === null ? '' : joinTexts(restoreEnvelope(row.envelope).message.parts)
  return {
    ...needOf('dead_letter', row),
    reason: why === '' ? `a message ${attempts}` : `a message ${attempts}: ${why}`,
    context_id: row.context_id,
    text: text === '' ? undefined : text,
  }
}

const DELIVERIES: NeedRows = {
  from: `from deliveries n where n.state in ('failed', 'unknown') and n.finished_at is null
    and (n.workspace_id = $1 or $1 = '')`,
  id: 'n.id',
  since: 'n.created_at',
  bytes: 'octet_length(n.body)',
  columns: 'd.task_id, d.door, d.channel, d.state, d.error, d.body',
  join: 'join deliveries d on d.id = k.id',
}

interface DeliveryRow extends ListedRow {
  /** Null: it belongs to the workspace only. */
  task_id: string | null
  door: string
  channel: string
  state: 'failed' | 'unknown'
  error: string | null
  body: string
}

function deliveryNeed(row: DeliveryRow): FoundNeed {
  const text = joinTexts((JSON.parse(row.body) as { readonly parts?: readonly Part[] }).parts ?? [])
  const how = row.state === 'unknown' ? 'may not have arrived' : 'could not be sent'
  const { article, text: name } = nameDelivery(row)
  return {
    ...needOf('delivery', row),
    reason: `${article} ${name} ${how}${row.error === null ? '' : `: ${firstLine(row.error)}`}`,
    text: text === '' ? undefined : text,
    to: `${row.door} ${row.channel}`,
  }
}

const DAMAGED_REPLIES: NeedRows = {
  from: `from damaged_replies n where n.dismissed_at is null and (n.workspace_id = $1 or $1 = '')`,
  id: 'n.message_id',
  since: 'n.found_at',
  bytes: '0',
  columns: 'r.task_id',
  join: 'join damaged_replies r on r.message_id = k.id',
}

const damagedReplyNeed = (row: NeedRow): FoundNeed => ({
  ...needOf('damaged_reply', row),
  reason: `${DAMAGED}: check this disk, then restore a backup or send the message again`,
})

/** People who wait to talk to a bot. The id of such a need is the code of the pairing. */
const PAIRINGS: NeedRows = {
  from: `from pairings n join channels c on c.name = n.channel
    where n.state = 'pending' and (c.workspace_id = $1 or $1 = '')`,
  id: 'n.code',
  workspace: "coalesce(c.workspace_id, '')",
  since: 'n.created_at',
  held: '(select count(*) from held_messages h where h.channel = n.channel and h.person = n.person)',
  bytes: '0',
  columns: `r.name, r.channel,
    (select count(*) from held_messages h where h.channel = r.channel and h.person = r.person) as held`,
  join: 'join pairings r on r.code = k.id',
}

interface PairingRow extends ListedRow {
  name: string
  channel: string
  held: number
}

function pairingNeed({ id, workspace_id, since, name, channel, held }: PairingRow): FoundNeed {
  const messages = Number(held) === 1 ? '1 message is' : `${held} messages are`
  return {
    kind: 'pairing',
    id,
    workspace_id,
    since: instant(since),
    reason: `${name} wants to talk to the bot "${channel}"; ${messages} held`,
    to: channel,
  }
}

/** Schedules that the platform paused: resuming one makes it the work of the person's token. */
const SCHEDULES: NeedRows = {
  from: `from schedules n where n.stopped_at is not null and (n.workspace_id = $1 or $1 = '')`,
  id: 'n.id',
  since: 'n.stopped_at',
  bytes: '0',
  columns: 's.name, s.note',
  join: 'join schedules s on s.id = k.id',
}

interface ScheduleRow extends ListedRow {
  name: string
  note: string | null
}

const scheduleNeed = ({ id, workspace_id, since, name, note }: ScheduleRow): FoundNeed => ({
  kind: 'schedule',
  id,
  workspace_id,
  since: instant(since),
  reason: `the schedule "${name}" is paused: ${note ?? 'the platform stopped it'}`,
})

const needOf = (kind: FoundNeed['kind'], row: ListedRow & { task_id: string | null }) => ({
  kind,
  id: row.id,
  workspace_id: row.workspace_id,
  since: instant(row.since),
  task_id: row.task_id ?? undefined,
})

const statusTextOf = (status: string | null): string =>
  joinTexts((JSON.parse(status ?? '{}') as Partial<StatusMessage>).parts ?? [])

const joinTexts = (parts: readonly Part[]): string => truncate(textOf(parts), TEXT_CHARACTERS_MAX)

/** A reason is one line. */
const firstLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

/** The most urgent kind first: a permission expires, and a turn waits for it. */
export const NEED_SOURCES: readonly NeedSource[] = [
  PERMISSIONS,
  sourceOf('question', QUESTIONS, questionNeed),
  BUDGETS,
  sourceOf('turn_limit', TURN_LIMITS, turnLimitNeed),
  sourceOf('dead_letter', DEAD_LETTERS, deadLetterNeed),
  sourceOf('delivery', DELIVERIES, deliveryNeed),
  sourceOf('damaged_reply', DAMAGED_REPLIES, damagedReplyNeed),
  sourceOf('pairing', PAIRINGS, pairingNeed),
  sourceOf('schedule', SCHEDULES, scheduleNeed),
]
