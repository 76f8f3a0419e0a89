/**
 * What waits for a person, from the rows of the inbox: permissions, questions, budgets, dead letters, deliveries,
 * damaged replies. Each kind is a list of its own, the oldest first; the door joins them to one (`doors/needs-you.ts`).
 */
import { DAY_MS, formatWait } from '../../duration.ts'
import type { Part } from '../../protocol/a2a.ts'
import { restoreEnvelope } from '../../protocol/envelope.ts'
import { textOf } from '../../protocol/part.ts'
import { DAMAGED } from '../../protocol/stored-reply.ts'
import { readTimeCursor, type TimeCursor, withinPage, writeTimeCursor } from '../../store/page-budget.ts'
import { type Store, sql, type Transaction, type Value } from '../../store/store.ts'
import { TEXT_CHARACTERS_MAX, truncate } from '../../truncate.ts'
import type {
  BudgetAsk,
  Budgets,
  Need,
  NeedSource,
  NeedSummary,
  OwnersPage,
  PendingAsk,
  PendingAsks,
} from '../owners.ts'
import type { StatusMessage } from '../rows/status-message.ts'

/** Rows of a page. */
const LISTED_MAX = 100
/** Of a larger message the list shows no text. */
const ENVELOPE_BYTES_MAX = 16 * 1024

export interface NeedSourcesOptions {
  readonly pendingAsks: Pick<PendingAsks, 'list'>
  readonly budgets: Pick<Budgets, 'list'>
}

/** The most urgent kind first: a permission expires, and a turn waits for it. */
export function createNeedSources(store: Store, { pendingAsks, budgets }: NeedSourcesOptions): NeedSource[] {
  const fromRows = <Row extends ListedRow>(
    kind: Need['kind'],
    rows: NeedRows,
    toNeed: (row: Row) => Need,
  ): NeedSource => ({
    kind,
    summary: (workspaceId) => store.read(() => summarize(rows, workspaceId)),
    list: (query) => store.read(() => listNeeds(rows, toNeed, query)),
  })
  return [
    {
      kind: 'permission',
      summary: (workspaceId) => store.read(() => summarize(PERMISSIONS, workspaceId)),
      async list(query) {
        const { rows, next } = await pendingAsks.list(query)
        return { rows: rows.map(permissionNeed), ...(next !== undefined && { next }) }
      },
    },
    fromRows('question', QUESTIONS, questionNeed),
    {
      kind: 'budget',
      summary: (workspaceId) => store.read(() => summarize(BUDGETS, workspaceId)),
      list: async (query) => ({ rows: (await budgets.list(query)).map(budgetNeed) }),
    },
    fromRows('turn_limit', TURN_LIMITS, turnLimitNeed),
    fromRows('dead_letter', DEAD_LETTERS, deadLetterNeed),
    fromRows('delivery', DELIVERIES, deliveryNeed),
    fromRows('damaged_reply', DAMAGED_REPLIES, damagedReplyNeed),
  ]
}

const permissionNeed = (ask: PendingAsk): Need => ({
  kind: 'permission',
  id: ask.id,
  workspaceId: ask.workspaceId,
  sinceMs: ask.askedAtMs,
  reason: `it wants to use ${ask.tool}`,
  expiresInMs: ask.expiresInMs,
  taskId: ask.taskId,
  ask,
})

const budgetNeed = (budget: BudgetAsk): Need => ({
  kind: 'budget',
  id: budget.id,
  workspaceId: budget.workspaceId,
  sinceMs: budget.askedAtMs,
  reason: budget.text,
  ...(budget.taskId !== undefined && { taskId: budget.taskId }),
  budget,
})

/** One kind as SQL. `$1` is a workspace, or empty for all; `since` and `bytes` are expressions over `from`. */
interface NeedRows {
  readonly from: string
  readonly id: string
  readonly since: string
  readonly bytes: string
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

function* summarize(
  { from, id, since }: Pick<NeedRows, 'from' | 'id' | 'since'>,
  workspaceId = '',
): Transaction<NeedSummary> {
  const [row] = yield* sql<{ count: number; latest: number | null; last: string | null }>(
    `select count(*) as count, max(${since}) as latest, max(${id}) as last ${from}`,
    [workspaceId],
  )
  // Whatever is added is later than all others, so each change of the list changes one of the three.
  return { count: Number(row?.count ?? 0), mark: `${row?.count}.${row?.latest}.${row?.last}` }
}

function* listNeeds<Row extends ListedRow>(
  rows: NeedRows,
  toNeed: (row: Row) => Need,
  { workspaceId = '', after }: Parameters<NeedSource['list']>[0],
): Transaction<OwnersPage<Need>> {
  const from: TimeCursor = after === undefined ? { atMs: 0, id: '' } : readTimeCursor(after)
  const page = yield* sql<Row>(pageOf(rows), cursorValues(workspaceId, from))
  const last = page.at(-1)
  if (last === undefined) return { rows: [] }
  const cursor = { atMs: last.since, id: last.id }
  const later = yield* sql(`select ${rows.id} ${afterCursor(rows)} limit 1`, cursorValues(workspaceId, cursor))
  return { rows: page.map(toNeed), ...(later.length > 0 && { next: writeTimeCursor(cursor) }) }
}

const cursorValues = (workspaceId: string, { atMs, id }: TimeCursor): Value[] => [workspaceId, atMs, id]

const afterCursor = ({ from, id, since }: NeedRows): string =>
  `${from} and (${since} > $2 or (${since} = $2 and ${id} > $3))`

const pageOf = (rows: NeedRows): string => `select k.id, k.workspace_id, k.since, ${rows.columns}
  from (${withinPage(
    `select ${rows.id} as id, n.workspace_id, ${rows.since} as since, ${rows.bytes} as bytes ${afterCursor(rows)}
     order by since, id limit ${LISTED_MAX}`,
    'p.since, p.id',
  )}) k ${rows.join} order by k.since, k.id`

/** Listed by `pending-asks.ts`. */
const PERMISSIONS: Pick<NeedRows, 'from' | 'id' | 'since'> = {
  from: `from asks n join messages m on m.id = n.message_id join conversations c on c.id = m.conversation_id
    where n.state = 'open' and n.tool is not null and c.lease_epoch = n.epoch and m.state = 'leased'
      and (n.workspace_id = $1 or $1 = '')`,
  id: 'n.message_id',
  since: 'n.asked_at',
}

/** Listed by `budgets.ts`. */
const BUDGETS: Pick<NeedRows, 'from' | 'id' | 'since'> = {
  from: `from budgets n where n.state = 'asked' and (n.workspace_id = $1 or $1 = '')
    and (n.day is null or n.day = now_ms() / ${DAY_MS}) and exists (select 1 from budget_waits w
      join messages m on m.id = w.message_id where w.budget_id = n.id and m.settled_at is null)`,
  id: 'n.id',
  since: 'n.asked_at',
}

/** A task of a program or an agent is answered by its sender; a task that waits for a permission is no question. */
const QUESTIONS: NeedRows = {
  from: `from tasks n where n.state in ('TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED')
    and n.principal = 'people' and (n.workspace_id = $1 or $1 = '')
    and not exists (select 1 from asks a where a.task_id = n.id and a.state = 'open' and a.tool is not null)`,
  id: 'n.id',
  since: 'n.updated_at',
  bytes: `octet_length(coalesce(n.status_message, ''))`,
  columns: `k.id as task_id, t.context_id, t.status_message,
    (select a.expires_at - now_ms() from asks a where a.task_id = k.id and a.state = 'open') as expires_in`,
  join: 'join tasks t on t.id = k.id',
}

interface QuestionRow extends NeedRow {
  context_id: string
  status_message: string | null
  expires_in: number | null
}

function questionNeed(row: QuestionRow): Need {
  const text = statusTextOf(row.status_message)
  return {
    ...needOf('question', row),
    reason: text === '' ? 'the agent asks for something' : `the agent asks: ${firstLine(text)}`,
    contextId: row.context_id,
    ...(text !== '' && { text }),
    ...(row.expires_in !== null && { expiresInMs: Math.max(0, row.expires_in) }),
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

function turnLimitNeed({ workspace_id: workspaceId, since, waiting, wait_ms: waitMs }: TurnLimitRow): Need {
  const who = Number(waiting) === 1 ? '1 message waits' : `${waiting} messages wait`
  const next = `the next one goes on in ${formatWait(waitMs ?? 0)}, or at once with a higher limit`
  return {
    kind: 'turn_limit',
    // A workspace that cannot work is a need with the plain id.
    id: `${workspaceId}.turns`,
    workspaceId,
    sinceMs: since,
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

function deadLetterNeed(row: DeadLetterRow): Need {
  const why = firstLine(statusTextOf(row.status_message))
  const attempts = row.tries > 1 ? `failed on all ${row.tries} attempts` : 'failed for good'
  const text = row.envelope === null ? '' : joinTexts(restoreEnvelope(row.envelope).message.parts)
  return {
    ...needOf('dead_letter', row),
    reason: why === '' ? `a message ${attempts}` : `a message ${attempts}: ${why}`,
    contextId: row.context_id,
    ...(text !== '' && { text }),
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

interface DeliveryRow extends NeedRow {
  door: string
  channel: string
  state: 'failed' | 'unknown'
  error: string | null
  body: string
}

function deliveryNeed(row: DeliveryRow): Need {
  const text = joinTexts((JSON.parse(row.body) as { readonly parts?: readonly Part[] }).parts ?? [])
  const how = row.state === 'unknown' ? 'may not have arrived' : 'could not be sent'
  return {
    ...needOf('delivery', row),
    reason: `an answer to ${row.door} ${how}${row.error === null ? '' : `: ${firstLine(row.error)}`}`,
    to: `${row.door} ${row.channel}`,
    ...(text !== '' && { text }),
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

const damagedReplyNeed = (row: NeedRow): Need => ({
  ...needOf('damaged_reply', row),
  reason: `${DAMAGED}: check this disk, then restore a backup or send the message again`,
})

const needOf = (kind: Need['kind'], row: NeedRow) => ({
  kind,
  id: row.id,
  workspaceId: row.workspace_id,
  sinceMs: row.since,
  taskId: row.task_id,
})

const statusTextOf = (status: string | null): string =>
  joinTexts((JSON.parse(status ?? '{}') as Partial<StatusMessage>).parts ?? [])

const joinTexts = (parts: readonly Part[]): string => truncate(textOf(parts), TEXT_CHARACTERS_MAX)

/** A reason is one line. */
const firstLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()
