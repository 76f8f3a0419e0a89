/**
 * The story of one message: when it was admitted and from whom, each attempt with its outcome, what was delivered
 * where. It is read from the rows that the work left and nothing else, so it survives any crash. It never shows more
 * than its reader may see of the task.
 */
import type { ApiAnswer } from '../../api/api.ts'
import { MoleculeError } from '../../errors.ts'
import { budgetsOfMessage } from '../../inbox/budget/budget-rows.ts'
import { coversPrincipal } from '../../inbox/read/principals.ts'
import { dedupeRange } from '../../inbox/rows/dedupe.ts'
import type { LogItem } from '../../inbox/rows/log.ts'
import type { StatusMessage } from '../../inbox/rows/status-message.ts'
import { laterMessagesOfTask } from '../../inbox/rows/task-messages.ts'
import { mayHaveBudget } from '../../protocol/delegation.ts'
import { restoreEnvelope } from '../../protocol/envelope.ts'
import { textOf } from '../../protocol/part.ts'
import type { Sender } from '../../protocol/request.ts'
import { withinPage } from '../../store/page-budget.ts'
import { type ReadStore, sql, type Transaction } from '../../store/store.ts'
import { truncate } from '../../truncate.ts'
import { type ScopeOf, taskBudget, treeOf } from '../trees.ts'
import {
  readStoryCursor,
  STORY_START,
  type StoredDecision,
  type StoryCursor,
  type StoryMessageRow,
  storySteps,
  writeStoryCursor,
} from './story-steps.ts'

export interface StoryQuery {
  /** The id of a message (also the id of the task that it opened), or the id that its sender gave it. */
  readonly id: string
  /** The `next` of an earlier part of the story. */
  readonly after?: string | undefined
  readonly scopeOf: ScopeOf
}

type StoryAnswer = ApiAnswer<'GET /messages/{id}/story'>
type DeliveryAnswer = StoryAnswer['deliveries'][number]

/** Throws `not_found` where there is no such message for this reader. */
export const readStory = (store: ReadStore, query: StoryQuery): Promise<StoryAnswer> => store.read(() => storyOf(query))

/** A longer message is cut; the whole is in the task. */
const MESSAGE_CHARACTERS_MAX = 300
/** Log rows of one part of a story; the reader asks for the next part. */
const ROWS_MAX = 2000
/** Deliveries that are shown. */
const DELIVERIES_MAX = 200
/** Messages with the same sender's id that are searched; others are found by our id only. */
const SAME_SENDER_ID_MAX = 1000

const SELECT = `select m.id, m.workspace_id, m.task_id, m.idempotency_key, m.envelope, m.sender, m.state, m.failures,
  m.losses, m.admitted_at, m.ready_at, now_ms() as now, m.replay_of, m.replayed_as, m.discarded_at, m.root_id, t.context_id,
  t.principal, t.state as task_state, t.status_message from messages m join tasks t on t.id = m.task_id`

function* storyOf({ id: given, after, scopeOf }: StoryQuery): Transaction<StoryAnswer> {
  // A message has the id of the request that brought it.
  const id = given.replace(/^req_/, '')
  const [row] = yield* sql<StoryMessageRow>(`${SELECT} where m.id = $1`, [id])
  // In older stores a task has another id than the message that opened it.
  const [first] = row
    ? [row]
    : yield* sql<StoryMessageRow>(`${SELECT} where ${laterMessagesOfTask('m', '$1')} order by m.n limit 1`, [id])
  const message = first ?? (yield* findBySender(id, scopeOf))
  if (message === undefined) throw storyNotFound(given)
  const { principal, detail = false } = scopeOf(message.workspace_id)
  // A stranger must not learn whether an id exists: another principal's message is not found.
  if (principal !== undefined && !coversPrincipal(principal, message.principal)) throw storyNotFound(given)
  const story = yield* partOf(message, { detail, from: after === undefined ? STORY_START : readStoryCursor(after) })
  if (after !== undefined) return story
  const tree = yield* treeOf(message.root_id ?? message.id, scopeOf)
  const budgets = yield* budgetsOf(message)
  return { ...story, tree, budgets: budgets.length > 0 ? budgets : undefined }
}

const storyNotFound = (id: string): MoleculeError => new MoleculeError('not_found', `there is no message or task ${id}`)

function* budgetsOf({ id, envelope }: StoryMessageRow): Transaction<NonNullable<StoryAnswer['budgets']>> {
  if (!mayHaveBudget(restoreEnvelope(envelope).message.metadata)) return []
  return (yield* budgetsOfMessage(id)).map(taskBudget)
}

/** A sender's id is unique only within sender and workspace: returns the first that this reader may see. */
function* findBySender(key: string, scopeOf: ScopeOf): Transaction<StoryMessageRow | undefined> {
  const named = yield* sql<{ id: string; workspace_id: string; principal: string }>(
    `select m.id, m.workspace_id, t.principal from messages m join tasks t on t.id = m.task_id
     join workspace_load l on l.workspace_id = m.workspace_id
     where m.dedupe between $1 and $2 and m.idempotency_key = $3
     order by m.workspace_id desc, t.principal limit ${SAME_SENDER_ID_MAX}`,
    [...dedupeRange(key), key],
  )
  const seen = named.find(({ workspace_id: workspaceId, principal }) => {
    const { principal: own = principal } = scopeOf(workspaceId)
    return coversPrincipal(own, principal)
  })
  if (seen === undefined) return undefined
  const [message] = yield* sql<StoryMessageRow>(`${SELECT} where m.id = $1`, [seen.id])
  return message
}

const PAGE_OF_STORY = `select e.seq, e.at_ms, e.items from (${withinPage(
  `select workspace_id, seq, octet_length(items) as bytes from events
   where task_id = $1 and message_id = $2 and delta = 0 and seq > $3 order by seq limit ${ROWS_MAX}`,
  'p.seq',
)}) k join events e on e.workspace_id = k.workspace_id and e.seq = k.seq order by e.seq`

function* partOf(
  message: StoryMessageRow,
  { detail, from }: { detail: boolean; from: StoryCursor },
): Transaction<StoryAnswer> {
  const rows = yield* sql<{ seq: number; at_ms: number; items: string }>(PAGE_OF_STORY, [
    message.task_id,
    message.id,
    from.seq,
  ])
  const lastSeq = rows.at(-1)?.seq
  const more = lastSeq !== undefined && (yield* hasLaterRows(message, lastSeq))
  const log = rows.map(({ at_ms: atMs, items }) => ({ atMs, items: JSON.parse(items) as LogItem[] }))
  const { message: sent } = restoreEnvelope(message.envelope)
  const status = JSON.parse(message.status_message ?? '{}') as Partial<StatusMessage>
  const decisions = log.length === 0 ? yield* storedDecisions(message) : []
  const shown = { isOwner: detail, detail: detail ? status.detail : undefined }
  const told = storySteps(message, log, { from, isLast: !more, ...shown, decisions })
  return {
    message_id: message.id,
    task_id: message.task_id,
    workspace_id: message.workspace_id,
    context_id: message.context_id,
    sender: JSON.parse(message.sender) as Sender,
    sender_message_id: sent.messageId,
    text: truncate(textOf(sent.parts), MESSAGE_CHARACTERS_MAX),
    task_state: message.task_state,
    steps: told.steps,
    deliveries: [...(yield* doorDeliveries(message, detail)), ...(yield* webhooks(message, detail))],
    next: more ? writeStoryCursor({ ...told.state, seq: lastSeq }) : undefined,
  }
}

interface DecisionRow {
  state: string
  tool: string
  answered_by: string | null
  answered_principal: string | null
  answered_door: string | null
  answered_at: number
}

/** The decisions about the permission asks of a message, the oldest first. */
function* storedDecisions({ id }: StoryMessageRow): Transaction<StoredDecision[]> {
  const rows = yield* sql<DecisionRow>(
    `select state, tool, answered_by, answered_principal, answered_door, answered_at from asks
     where message_id = $1 and tool is not null and answered_at is not null order by answered_at limit ${ROWS_MAX}`,
    [id],
  )
  return rows.map(({ state, tool, answered_by: name, answered_at: atMs, ...row }) => ({
    atMs,
    tool,
    decision: state === 'denied' ? 'denied' : 'allowed',
    ...(name !== null && {
      answerer: { name, principal: row.answered_principal ?? '', door: row.answered_door ?? '' },
    }),
  }))
}

function* hasLaterRows({ id, task_id: taskId }: StoryMessageRow, seq: number): Transaction<boolean> {
  const rows = yield* sql(
    'select seq from events where task_id = $1 and message_id = $2 and delta = 0 and seq > $3 limit 1',
    [taskId, id, seq],
  )
  return rows.length > 0
}

interface DeliveryRow {
  door: string
  channel: string
  state: string
  tries: number
  error: string | null
}

function* doorDeliveries(message: StoryMessageRow, detail: boolean): Transaction<DeliveryAnswer[]> {
  const rows = yield* sql<DeliveryRow>(
    `select door, channel, state, tries, error from deliveries where task_id = $1 and message_id = $2 order by id
     limit ${DELIVERIES_MAX}`,
    [message.task_id, message.id],
  )
  return rows.map(({ door, channel, state, tries, error }) => ({
    to: `${door} ${channel}`,
    state,
    tries,
    error: detail ? (error ?? undefined) : undefined,
  }))
}

/** Only the owner sees the URL and the error of a webhook; others see that there is one. */
function* webhooks({ task_id: taskId }: StoryMessageRow, detail: boolean): Transaction<DeliveryAnswer[]> {
  const rows = yield* sql<{ config: string; state: string; tries: number; reason: string | null }>(
    `select config, state, tries, reason from push_configs where task_id = $1 order by id limit ${DELIVERIES_MAX}`,
    [taskId],
  )
  return rows.map(({ config, state, tries, reason }) => {
    const { url } = JSON.parse(config) as { url: string }
    const to = detail && URL.canParse(url) ? `webhook ${new URL(url).origin}` : 'webhook'
    return { to, state, tries, error: detail ? (reason ?? undefined) : undefined }
  })
}
