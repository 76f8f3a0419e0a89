/**
 * The messages of one conversation as a chat shows them: author, state, reply, tools, use. A page holds the newest
 * messages before a number, within the rows and bytes of a page, and the number of the workspace's log at that moment:
 * a reader that follows the log from there has the same chat as one that was there all the time.
 */
import { MoleculeError } from '../../errors.ts'
import type { Part, TaskState } from '../../protocol/a2a.ts'
import { restoreEnvelope } from '../../protocol/envelope.ts'
import { textOf } from '../../protocol/part.ts'
import type { Sender } from '../../protocol/request.ts'
import { DAMAGED, readReplyIfWhole, type StoredReply } from '../../protocol/stored-reply.ts'
import { createByteBudget, FOLLOW_BYTES_MAX, PAGE_BYTES_MAX, withinPage } from '../../store/page-budget.ts'
import { sql, type Transaction } from '../../store/store.ts'
import { askIdOf } from '../commands/ask.ts'
import type { ChatAsk, ChatPage, ChatQuery, ChatTool, ConversationMessage } from '../readers.ts'
import type { LogItem } from '../rows/log.ts'
import { inStates } from '../rows/message.ts'
import type { StatusMessage } from '../rows/status-message.ts'
import { messagesOfTask } from '../rows/task-messages.ts'
import { type ChatStateRow, chatStateOf } from './chat-state.ts'
import { replyArtifactId } from './log-wire.ts'
import { partialArtifacts } from './partial-artifacts.ts'
import { SUMS, type SumRow, toSum } from './usage.ts'
import { type QueuedStatus, whyQueued } from './why-waiting.ts'

/** Rows of the log that are read for the tools of one message. */
const TOOL_ROWS_MAX = 400

interface ConversationRow {
  id: string
  context_id: string
  principal: string
  last_n: number
  seq: number
}

interface ChatRow extends ChatStateRow {
  id: string
  workspace_id: string
  conversation_id: string
  task_id: string
  n: number
  envelope: string
  sender: string
  reply: string | null
  /** 1 when a turn of it has begun. */
  begun: number
  admitted_at: number
  started_at: number
  settled_at: number | null
  task_changed_at: number
  /** Unsettled messages of the conversation before this one. */
  place: number
  status_message: string | null
  replayed_as: string | null
  discarded_at: number | null
}

const CONVERSATION = `select c.id, c.context_id, c.principal, c.last_n, l.seq from conversations c
  join workspace_load l on l.workspace_id = c.workspace_id where c.workspace_id = $1`
const BY_ID = `${CONVERSATION} and c.id = $2`
/** A conversation whose context its sender named has another id. */
const BY_CONTEXT = `${CONVERSATION} and c.principal = 'people' and c.context_id = $2 and c.id <> c.context_id`
/** A link that knows only the message or its task. */
const BY_MESSAGE = `${CONVERSATION} and c.id = (select q.conversation_id from messages q where q.id = $2)`

/**
 * SQLite copies every column that a query with a window or an order uses: envelope and reply stay outside of both.
 * PostgreSQL refused every first page without the cast: `n` is an integer there, and `$2` may be larger.
 */
const PAGE = `select m.id, m.workspace_id, m.conversation_id, m.task_id, m.n, m.envelope, m.sender, m.reply, m.state, m.begun, m.parks,
    m.failures, m.losses, m.ready_at, m.admitted_at, coalesce(m.leased_at, m.admitted_at) as started_at, m.settled_at,
    m.replayed_as, m.discarded_at, t.state as task_state, t.status_message, t.updated_at as task_changed_at,
    now_ms() as now,
    case when m.${inStates('answer')} or exists (select 1 from messages l where l.conversation_id = m.conversation_id
      and l.n > m.n and l.task_id = m.task_id and not l.${inStates('answer')}) then 0 else 1 end as is_newest,
    case when m.settled_at is null then (select count(*) from messages b where b.conversation_id = m.conversation_id
      and b.n < m.n and b.n > c.settled_n and b.settled_at is null) else 0 end as place
  from (${withinPage(
    `select m.id, m.n, octet_length(m.envelope) + coalesce(octet_length(m.reply), 0) as bytes from messages m
     where m.conversation_id = $1 and m.n < cast($2 as bigint) order by m.n desc limit $3`,
    'p.n desc',
  )}) k join messages m on m.id = k.id join tasks t on t.id = m.task_id
  join conversations c on c.id = m.conversation_id`

export function* readChat(query: ChatQuery): Transaction<ChatPage> {
  const { limit, detail } = query
  const conversation = yield* findConversation(query)
  const before = yield* pageEnd(conversation.id, query)
  const rows = (yield* sql<ChatRow>(PAGE, [conversation.id, before, limit])).toSorted((a, b) => a.n - b.n)
  const budget = createByteBudget(PAGE_BYTES_MAX)
  const messages: ConversationMessage[] = []
  // The newest first, because the budget is for them.
  for (const row of rows.toReversed()) {
    const context = { contextId: conversation.context_id, detail, takes: budget.take }
    messages.push(yield* toChatMessage(row, context))
  }
  const first = rows[0]?.n ?? 0
  const [earlier] = yield* sql('select 1 as there from messages where conversation_id = $1 and n < $2 limit 1', [
    conversation.id,
    first,
  ])
  return {
    id: conversation.id,
    hasNewer: (rows.at(-1)?.n ?? 0) < conversation.last_n,
    contextId: conversation.context_id,
    principal: conversation.principal,
    messages: messages.toReversed(),
    seq: conversation.seq,
    ...(earlier !== undefined && { before: first }),
  }
}

function* findConversation({ workspaceId, conversation: wanted }: ChatQuery): Transaction<ConversationRow> {
  for (const find of [BY_ID, BY_CONTEXT, BY_MESSAGE]) {
    const [found] = yield* sql<ConversationRow>(find, [workspaceId, wanted])
    if (found !== undefined) return found
  }
  throw new MoleculeError('not_found', `there is no conversation ${wanted}`)
}

const PLACE_OF = `select m.n from messages m where m.conversation_id = $1 and (m.id = $2 or m.task_id = $2)
  order by case when m.id = $2 then 0 else 1 end, m.n desc limit 1`

/** The number that the page ends before. A message that is no longer kept has no page of its own. */
function* pageEnd(id: string, { before = Number.MAX_SAFE_INTEGER, at, limit }: ChatQuery): Transaction<number> {
  if (at === undefined) return before
  const [place] = yield* sql<{ n: number }>(PLACE_OF, [id, at])
  return place === undefined ? before : place.n + Math.ceil(limit / 2)
}

interface ChatContext {
  readonly contextId: string
  readonly detail: boolean
  readonly takes: (bytes: number) => boolean
}

function* toChatMessage(row: ChatRow, context: ChatContext): Transaction<ConversationMessage> {
  const state = chatStateOf(row)
  const { message } = restoreEnvelope(row.envelope)
  const tools = yield* readTools(row, context.takes)
  const reply = row.reply === null ? yield* partialReply(row, context) : readReplyIfWhole(row.reply, row.id)
  const isDamaged = row.reply !== null && reply === undefined
  const [used] = yield* sql<SumRow>(`select ${SUMS} from turn_usage where message_id = $1`, [row.id])
  const ask = state === 'waiting_for_you' ? yield* findAsk(row.id) : undefined
  const answers = row.state === 'answer' ? yield* findQuestion(row) : undefined
  const { status, workspaceIs } = (yield* statusOf(row)) ?? {}
  // A message whose processes are being stopped has ended for its sender when the task was cancelled. No event tells the
  // page of the later settle, so the time of that one would never be shown.
  const endedAtMs = row.settled_at ?? (row.state === 'stopping' ? row.task_changed_at : undefined)
  // Prevents "stopped after 1 h" for a message that was cancelled while it waited for its next attempt.
  const isTurn = row.begun === 1 && row.ready_at <= row.started_at
  const hasRun = row.state !== 'queued' && row.state !== 'answer' && (state !== 'stopped' || isTurn)
  return {
    id: row.id,
    taskId: row.task_id,
    n: row.n,
    senderMessageId: message.messageId,
    state,
    sender: JSON.parse(row.sender) as Sender,
    parts: message.parts,
    admittedAtMs: row.admitted_at,
    ...(hasRun && { startedAtMs: row.started_at }),
    ...(endedAtMs !== undefined && { endedAtMs }),
    ...(row.losses > 0 && { lostTurns: row.losses }),
    ...(row.state === 'queued' && { place: Number(row.place) }),
    ...(row.state === 'queued' && row.ready_at > row.now && { nextTryAtMs: row.ready_at }),
    ...(status !== undefined && { reason: sentenceOf(status) }),
    ...(workspaceIs !== undefined && { workspaceIs }),
    ...(isDamaged && { reason: DAMAGED }),
    ...(status?.code !== undefined && { code: status.code }),
    ...(context.detail && status?.detail !== undefined && { detail: status.detail }),
    ...(reply !== undefined && {
      reply: { ...withoutSaid(reply), isPartial: row.reply === null || state === 'stopped' },
    }),
    ...tools,
    ...(used !== undefined && used.turns > 0 && { usage: toSum(used) }),
    ...(ask !== undefined && { ask }),
    ...(answers !== undefined && { answers }),
    ...(row.state === 'dead' && { isHandled: row.replayed_as !== null || row.discarded_at !== null }),
    ...(row.replayed_as !== null && { replayedAs: row.replayed_as }),
  }
}

const sentenceOf = ({ parts }: StatusMessage): string => textOf(parts)

/** What the task says of its newest message, and why a message waits. Of an answered one it is a notice. */
function* statusOf(row: ChatRow): Transaction<QueuedStatus | undefined> {
  if (row.is_newest === 0) return undefined
  if (row.status_message !== null) return { status: JSON.parse(row.status_message) as StatusMessage }
  if (row.state !== 'queued') return undefined
  return yield* whyQueued({ id: row.task_id, workspace_id: row.workspace_id, conversation_id: row.conversation_id })
}

/** A chat shows it as the status of its message. */
const withoutSaid = ({ said: _said, ...reply }: StoredReply) => reply

const LOG_SIZE = `select cast(coalesce(sum(octet_length(items)), 0) as bigint) as bytes from events where task_id = $1`

/** What a running turn has said so far. Beyond the budget of a page it is left out; the reader follows the log. */
function* partialReply(row: ChatRow, { contextId, takes }: ChatContext): Transaction<StoredReply | undefined> {
  if (row.state !== 'leased') return undefined
  const [size] = yield* sql<{ bytes: number }>(LOG_SIZE, [row.task_id])
  const bytes = Number(size?.bytes ?? 0)
  if (bytes > PAGE_BYTES_MAX || !takes(bytes)) return undefined
  const own = replyArtifactId(row.id)
  const all = yield* partialArtifacts({ id: row.task_id, contextId }, [])
  const parts: readonly Part[] = all.find(({ artifactId }) => artifactId === own)?.parts ?? []
  const artifacts = all.filter(({ artifactId }) => !artifactId.startsWith('reply-'))
  return parts.length === 0 && artifacts.length === 0 ? undefined : { parts, artifacts }
}

const TOOLS = `select e.seq, e.at_ms, e.items, k.total from (${withinPage(
  `select q.*, count(*) over () as total from (select workspace_id, seq, octet_length(items) as bytes from events
   where task_id = $1 and message_id = $2 and delta = 0 order by seq limit ${TOOL_ROWS_MAX}) q`,
  'p.seq',
  FOLLOW_BYTES_MAX,
)}) k join events e on e.workspace_id = k.workspace_id and e.seq = k.seq order by e.seq`

function* readTools(
  { id, task_id: taskId }: ChatRow,
  takes: ChatContext['takes'],
): Transaction<Pick<ConversationMessage, 'tools' | 'hasMoreTools'>> {
  const rows = yield* sql<{ seq: number; at_ms: number; items: string; total: number }>(TOOLS, [taskId, id])
  const isWhole = takes(rows.reduce((sum, { items }) => sum + items.length, 0))
  if (!isWhole) return { tools: [], hasMoreTools: true }
  const tools = toTools(rows.map(({ at_ms: atMs, items }) => ({ atMs, items: JSON.parse(items) as LogItem[] })))
  // Rows with diffs may be more than the bytes of a page.
  const total = rows[0]?.total ?? 0
  return { tools, ...((rows.length < total || total >= TOOL_ROWS_MAX) && { hasMoreTools: true }) }
}

/** Joins the beginning of each tool with its end. A new attempt begins anew. */
function toTools(log: readonly { readonly atMs: number; readonly items: readonly LogItem[] }[]): ChatTool[] {
  const tools: (ChatTool & { readonly waitedBeforeMs: number })[] = []
  const waits = createWaits()
  for (const { atMs, items } of log) {
    for (const item of items) {
      if (item.t === 'status') waits.add(item.state, atMs)
      if (item.t === 'reset') tools.length = 0
      if (item.t !== 'turn' || item.event.type !== 'tool') continue
      const { type: _type, state, ...use } = item.event
      const index = tools.findLastIndex(
        (tool) => tool.state === 'started' && tool.name === use.name && (use.subject ?? tool.subject) === tool.subject,
      )
      const begun = state === 'started' ? undefined : tools[index]
      const waitedMs = waits.untilMs(atMs)
      if (begun === undefined) tools.push({ ...use, state, atMs, waitedBeforeMs: waitedMs })
      else tools[index] = { ...begun, ...use, state, durationMs: atMs - begun.atMs - (waitedMs - begun.waitedBeforeMs) }
    }
  }
  return tools.map(({ waitedBeforeMs, ...tool }) => {
    const waitedMs = waits.untilMs(0) - waitedBeforeMs
    return tool.state === 'started' && waitedMs > 0 ? { ...tool, waitedMs } : tool
  })
}

/** The time that a turn has waited for a person: nothing of it is the time of a tool. */
function createWaits() {
  let endedMs = 0
  let sinceMs: number | undefined
  const untilMs = (atMs: number) => endedMs + (sinceMs === undefined ? 0 : Math.max(0, atMs - sinceMs))
  return {
    untilMs,
    add(state: TaskState, atMs: number) {
      endedMs = untilMs(atMs)
      sinceMs = state === 'TASK_STATE_AUTH_REQUIRED' || state === 'TASK_STATE_INPUT_REQUIRED' ? atMs : undefined
    },
  }
}

interface AskRow {
  id: string
  epoch: number
  tool: string | null
  subject: string | null
  asked_at: number
  expires_at: number
}

/** The open ask of a running turn; a task has one at most. */
function* findAsk(messageId: string): Transaction<ChatAsk | undefined> {
  const [row] = yield* sql<AskRow>(
    `select id, epoch, tool, subject, asked_at, expires_at from asks where message_id = $1 and state = 'open'`,
    [messageId],
  )
  if (row === undefined || row.tool === null) return undefined
  return {
    id: askIdOf({ messageId, epoch: row.epoch, id: row.id }),
    tool: row.tool,
    subject: row.subject ?? '',
    askedAtMs: row.asked_at,
    expiresAtMs: row.expires_at,
  }
}

/** The question that this message answered. It was asked by an earlier message of the task. */
const QUESTION = `select a.question from messages q join asks a on a.message_id = q.id
  where ${messagesOfTask('q', '$1')} and a.answer_message_id = $2`

function* findQuestion({ id, task_id: taskId }: ChatRow): Transaction<string | undefined> {
  const [row] = yield* sql<{ question: string }>(QUESTION, [taskId, id])
  return row && textOf(JSON.parse(row.question) as readonly Part[])
}
