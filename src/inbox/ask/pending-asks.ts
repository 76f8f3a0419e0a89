/**
 * The owners' list of pending asks: the permissions that running turns of all workspaces ask for, as one durable list.
 * An answer is bound to exactly one ask, counts once, and goes to the turn that waits for it. The sweep denies asks
 * that time out.
 */
import { MoleculeError } from '../../errors.ts'
import { readTimeCursor, withinPage, writeTimeCursor } from '../../store/page-budget.ts'
import { sql, type Transaction, together } from '../../store/store.ts'
import type { InboxContext } from '../context.ts'
import type { Directive } from '../inbox.ts'
import { lockWorkspace } from '../lease/lock-workspace.ts'
import type { AskDecision, OwnersPage, PendingAsk, PendingAsks } from '../owners.ts'
import { recordChange } from '../read/event-log.ts'
import { type AskKey, askIdOf, closeAsk, findOpenAsk, type OpenAsk, parseAskId } from './ask.ts'

/** Rows of a page. */
const LISTED_MAX = 500

export function createPendingAsks(
  context: InboxContext,
  sendDirective: (workerId: string, directive: Directive) => void,
): PendingAsks {
  const { store } = context
  return {
    list: (query) => store.read(() => listPendingAsks(query)),
    async answer(id, decision, by) {
      const askKey = parseAskId(id)
      const workspaceId = askKey && (await store.read(() => workspaceOf(askKey)))
      if (askKey === undefined || workspaceId === undefined) throw unknownAsk(id)
      const open = await store.write(() => answerPendingAsk(askKey, { workspaceId, decision, by }), workspaceId)
      if (open === undefined) return
      const { key, worker } = open
      context.changed(key.workspaceId, key.taskId)
      sendDirective(worker, { type: 'answer', key, askId: open.id, parts: decision === 'allowed' ? [] : undefined })
    },
  }
}

interface PendingAskRow {
  id: string
  message_id: string
  epoch: number
  workspace_id: string
  task_id: string
  tool: string
  subject: string
  asked_at: number
  expires_in: number
}

const OPEN_ASKS = `from asks a join messages m on m.id = a.message_id join conversations c on c.id = m.conversation_id
  where a.state = 'open' and a.tool is not null and c.lease_epoch = a.epoch and m.state = 'leased'
    and (a.workspace_id = $1 or $1 = '') and (a.asked_at > $2 or (a.asked_at = $2 and a.message_id > $3))`

const PAGE_OF_ASKS = `select a.id, a.message_id, a.epoch, a.workspace_id, a.task_id, a.tool, a.subject, a.asked_at,
    a.expires_at - now_ms() as expires_in
  from (${withinPage(
    `select a.message_id, a.epoch, a.id, a.asked_at, octet_length(a.subject) + octet_length(a.tool) as bytes
     ${OPEN_ASKS} order by a.asked_at, a.message_id limit ${LISTED_MAX}`,
    'p.asked_at, p.message_id',
  )}) k join asks a on a.message_id = k.message_id and a.epoch = k.epoch and a.id = k.id
  order by a.asked_at, a.message_id`

function* listPendingAsks({
  workspaceId = '',
  after,
}: Parameters<PendingAsks['list']>[0]): Transaction<OwnersPage<PendingAsk>> {
  const from = after === undefined ? { atMs: 0, id: '' } : readTimeCursor(after)
  const rows = yield* sql<PendingAskRow>(PAGE_OF_ASKS, [workspaceId, from.atMs, from.id])
  const last = rows.at(-1)
  if (last === undefined) return { rows: [] }
  const cursor = { atMs: last.asked_at, id: last.message_id }
  const later = yield* sql(`select a.id ${OPEN_ASKS} limit 1`, [workspaceId, cursor.atMs, cursor.id])
  return { rows: rows.map(toPendingAsk), ...(later.length > 0 && { next: writeTimeCursor(cursor) }) }
}

const toPendingAsk = (row: PendingAskRow): PendingAsk => ({
  id: askIdOf({ messageId: row.message_id, epoch: row.epoch, id: row.id }),
  workspaceId: row.workspace_id,
  taskId: row.task_id,
  messageId: row.message_id,
  tool: row.tool,
  subject: row.subject,
  askedAtMs: row.asked_at,
  expiresInMs: Math.max(0, row.expires_in),
})

const BY_KEY = 'from asks where message_id = $1 and epoch = $2 and id = $3 and tool is not null'

function* workspaceOf({ messageId, epoch, id }: AskKey): Transaction<string | undefined> {
  const [row] = yield* sql<{ workspace_id: string }>(`select workspace_id ${BY_KEY}`, [messageId, epoch, id])
  return row?.workspace_id
}

/** The ask that this call answered; undefined when the same decision was made before. */
function* answerPendingAsk(
  askKey: AskKey,
  { workspaceId, decision, by }: { workspaceId: string; decision: AskDecision; by: string },
): Transaction<OpenAsk | undefined> {
  yield* together([lockWorkspace(workspaceId)])
  const state = decision === 'allowed' ? 'answered' : 'denied'
  const open = yield* findOpenAsk(askKey)
  if (open !== undefined && (yield* closeAsk(open, { state, by }))) {
    const { taskId, messageId } = open.key
    const items = [{ t: 'note', type: 'permission', text: decision, by } as const]
    yield* together(recordChange({ workspaceId, entries: [{ taskId, messageId, items }] }))
    return open
  }
  const { messageId, epoch, id } = askKey
  const [row] = yield* sql<{ state: string }>(`select state ${BY_KEY}`, [messageId, epoch, id])
  if (row?.state === state) return undefined
  throw new MoleculeError(
    'unsupported_operation',
    REFUSALS[row?.state ?? ''] ?? 'no turn waits for this answer any more',
  )
}

const REFUSALS: Readonly<Record<string, string>> = {
  answered: 'this was allowed already',
  denied: 'this was denied already, or not answered in time',
}

const unknownAsk = (id: string): MoleculeError =>
  new MoleculeError('not_found', `nothing with the id ${JSON.stringify(id.slice(0, 200))} waits for an answer`)
