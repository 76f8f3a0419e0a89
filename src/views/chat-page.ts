/**
 * The messages of one conversation as a chat shows them: author, state, reply, tools, use. A page holds the newest
 * messages before a number, within the rows and bytes of a page, and the number of the workspace's log at that moment:
 * a reader that follows the log from there has the same chat as one that was there all the time.
 */
import type { ApiAnswer } from '../api/api.ts'
import { MoleculeError } from '../errors.ts'
import { replyArtifactId } from '../inbox/read/log-wire.ts'
import { partialArtifacts } from '../inbox/read/partial-artifacts.ts'
import { type QueuedStatus, whyQueued } from '../inbox/read/why-waiting.ts'
import { askIdOf } from '../inbox/rows/ask.ts'
import { inStates } from '../inbox/rows/message.ts'
import type { StatusMessage } from '../inbox/rows/status-message.ts'
import { messagesOfTask } from '../inbox/rows/task-messages.ts'
import type { Artifact, Part } from '../protocol/a2a.ts'
import { restoreEnvelope } from '../protocol/envelope.ts'
import { textOf } from '../protocol/part.ts'
import type { Sender } from '../protocol/request.ts'
import { DAMAGED, readReplyIfWhole } from '../protocol/stored-reply.ts'
import { createByteBudget, PAGE_BYTES_MAX, withinPage } from '../store/page-budget.ts'
import { type ReadStore, sql, type Transaction } from '../store/store.ts'
import { type ChatStateRow, chatStateOf } from './chat-state.ts'
import { readChatTools } from './chat-tools.ts'
import { instant, instantOf } from './instant.ts'
import { filesOf } from './message-files.ts'
import { SUMS, type UsageSumRow, usageSum } from './usage.ts'

export interface ChatPageQuery {
  readonly workspaceId: string
  /** Its id, the context id of a conversation of people, or the id of a message or task of it. */
  readonly conversation: string
  readonly limit: number
  /** Only messages before this number. */
  readonly before?: number | undefined
  /** The page has this message in its middle: its id, or that of its task. */
  readonly at?: string | undefined
  /** The reader is an owner: show what the program printed when it failed. */
  readonly detail: boolean
}

type ChatPageAnswer = ApiAnswer<'GET /workspaces/{id}/conversations/{conversation}'>
type ChatMessage = ChatPageAnswer['messages'][number]

/** Throws `not_found` for an unknown conversation. */
export const readChatPage = (store: ReadStore, query: ChatPageQuery): Promise<ChatPageAnswer> =>
  store.read(() => chatPageOf(query))

/** The longest text of an artifact that is shown; the whole is a download. */
const ARTIFACT_TEXT_CHARACTERS_MAX = 2000

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

function* chatPageOf(query: ChatPageQuery): Transaction<ChatPageAnswer> {
  const { limit, detail } = query
  const conversation = yield* findConversation(query)
  const before = yield* pageEnd(conversation.id, query)
  const rows = (yield* sql<ChatRow>(PAGE, [conversation.id, before, limit])).toSorted((a, b) => a.n - b.n)
  const budget = createByteBudget(PAGE_BYTES_MAX)
  const messages: ChatMessage[] = []
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
    context_id: conversation.context_id,
    principal: conversation.principal,
    messages: messages.toReversed(),
    seq: conversation.seq,
    has_newer: (rows.at(-1)?.n ?? 0) < conversation.last_n,
    before: earlier && first,
  }
}

function* findConversation({ workspaceId, conversation: wanted }: ChatPageQuery): Transaction<ConversationRow> {
  for (const find of [BY_ID, BY_CONTEXT, BY_MESSAGE]) {
    const [found] = yield* sql<ConversationRow>(find, [workspaceId, wanted])
    if (found !== undefined) return found
  }
  throw new MoleculeError('not_found', `there is no conversation ${wanted}`)
}

const PLACE_OF = `select m.n from messages m where m.conversation_id = $1 and (m.id = $2 or m.task_id = $2)
  order by case when m.id = $2 then 0 else 1 end, m.n desc limit 1`

/** The number that the page ends before. A message that is no longer kept has no page of its own. */
function* pageEnd(id: string, { before = Number.MAX_SAFE_INTEGER, at, limit }: ChatPageQuery): Transaction<number> {
  if (at === undefined) return before
  const [place] = yield* sql<{ n: number }>(PLACE_OF, [id, at])
  return place === undefined ? before : place.n + Math.ceil(limit / 2)
}

interface ChatContext {
  readonly contextId: string
  readonly detail: boolean
  readonly takes: (bytes: number) => boolean
}

function* toChatMessage(row: ChatRow, context: ChatContext): Transaction<ChatMessage> {
  const state = chatStateOf(row)
  const { message } = restoreEnvelope(row.envelope)
  const tools = yield* readChatTools(row, context.takes)
  const reply = row.reply === null ? yield* partialReply(row, context) : readReplyIfWhole(row.reply, row.id)
  const isDamaged = row.reply !== null && reply === undefined
  const [used] = yield* sql<UsageSumRow>(`select ${SUMS} from turn_usage where message_id = $1`, [row.id])
  const { status, workspaceIs } = (yield* statusOf(row)) ?? {}
  return {
    id: row.id,
    task_id: row.task_id,
    n: row.n,
    sender_message_id: message.messageId,
    sender: JSON.parse(row.sender) as Sender,
    text: textOf(message.parts),
    attachments: filesOf(message.parts),
    state,
    place: row.state === 'queued' ? Number(row.place) : undefined,
    workspace_is: workspaceIs,
    reason: isDamaged ? DAMAGED : status && textOf(status.parts),
    code: status?.code,
    detail: context.detail ? status?.detail : undefined,
    next_try_at: row.state === 'queued' && row.ready_at > row.now ? instant(row.ready_at) : undefined,
    sent_at: instant(row.admitted_at),
    ...timesOf(row, state),
    interruptions: row.losses > 0 ? row.losses : undefined,
    reply: reply && {
      text: textOf(reply.parts),
      partial: row.reply === null || state === 'stopped',
      artifacts: reply.artifacts.map(artifactOf),
    },
    ...tools,
    usage: used !== undefined && used.turns > 0 ? usageSum(used) : undefined,
    ask: state === 'waiting_for_you' ? yield* findAsk(row.id) : undefined,
    answers: row.state === 'answer' ? yield* findQuestion(row) : undefined,
    handled: row.state === 'dead' ? row.replayed_as !== null || row.discarded_at !== null : undefined,
    replayed_as: row.replayed_as ?? undefined,
  }
}

/** When its last attempt began and ended. */
function timesOf(
  row: ChatRow,
  state: ChatMessage['state'],
): Pick<ChatMessage, 'started_at' | 'ended_at' | 'duration_ms'> {
  // A message whose processes are being stopped has ended for its sender when the task was cancelled. No event tells the
  // page of the later settle, so the time of that one would never be shown.
  const endedAtMs = row.settled_at ?? (row.state === 'stopping' ? row.task_changed_at : undefined)
  // Prevents "stopped after 1 h" for a message that was cancelled while it waited for its next attempt.
  const isTurn = row.begun === 1 && row.ready_at <= row.started_at
  const hasRun = row.state !== 'queued' && row.state !== 'answer' && (state !== 'stopped' || isTurn)
  return {
    started_at: hasRun ? instant(row.started_at) : undefined,
    ended_at: instantOf(endedAtMs),
    duration_ms: hasRun && endedAtMs !== undefined ? endedAtMs - row.started_at : undefined,
  }
}

function artifactOf({
  artifactId,
  name,
  description,
  parts,
}: Artifact): NonNullable<ChatMessage['reply']>['artifacts'][number] {
  const text = textOf(parts).slice(0, ARTIFACT_TEXT_CHARACTERS_MAX)
  return { id: artifactId, name, description, text: text === '' ? undefined : text, files: filesOf(parts) }
}

/** What the task says of its newest message, and why a message waits. Of an answered one it is a notice. */
function* statusOf(row: ChatRow): Transaction<QueuedStatus | undefined> {
  if (row.is_newest === 0) return undefined
  if (row.status_message !== null) return { status: JSON.parse(row.status_message) as StatusMessage }
  if (row.state !== 'queued') return undefined
  return yield* whyQueued({ id: row.task_id, workspace_id: row.workspace_id, conversation_id: row.conversation_id })
}

interface ShownReply {
  readonly parts: readonly Part[]
  readonly artifacts: readonly Artifact[]
}

const LOG_SIZE = `select cast(coalesce(sum(octet_length(items)), 0) as bigint) as bytes from events where task_id = $1`

/** What a running turn has said so far. Beyond the budget of a page it is left out; the reader follows the log. */
function* partialReply(row: ChatRow, { contextId, takes }: ChatContext): Transaction<ShownReply | undefined> {
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

interface AskRow {
  id: string
  epoch: number
  tool: string | null
  subject: string | null
  asked_at: number
  expires_at: number
}

/** The open ask of a running turn; a task has one at most. */
function* findAsk(messageId: string): Transaction<ChatMessage['ask']> {
  const [row] = yield* sql<AskRow>(
    `select id, epoch, tool, subject, asked_at, expires_at from asks where message_id = $1 and state = 'open'`,
    [messageId],
  )
  if (row === undefined || row.tool === null) return undefined
  return {
    id: askIdOf({ messageId, epoch: row.epoch, id: row.id }),
    tool: row.tool,
    subject: row.subject ?? '',
    asked_at: instant(row.asked_at),
    expires_at: instant(row.expires_at),
  }
}

/** The question that this message answered. It was asked by an earlier message of the task. */
const QUESTION = `select a.question from messages q join asks a on a.message_id = q.id
  where ${messagesOfTask('q', '$1')} and a.answer_message_id = $2`

function* findQuestion({ id, task_id: taskId }: ChatRow): Transaction<string | undefined> {
  const [row] = yield* sql<{ question: string }>(QUESTION, [taskId, id])
  return row && textOf(JSON.parse(row.question) as readonly Part[])
}
