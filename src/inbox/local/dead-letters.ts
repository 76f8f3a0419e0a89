/**
 * Dead letters: messages that failed for good, kept until a person handles them. A replay admits a new message and task
 * in the same conversation; the old task stays failed and names the new one.
 */
import { createHash } from 'node:crypto'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { restoreEnvelope } from '../../protocol/envelope.ts'
import { readTimeCursor, type TimeCursor, withinPage, writeTimeCursor } from '../../store/page-budget.ts'
import { runStatement, sql, type Transaction, together } from '../../store/store.ts'
import type { DeadLetter, DeadLetters, OwnersPage } from '../owners.ts'
import { addNextMessage } from '../rows/conversation.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { recordChange } from '../rows/log.ts'
import { inStates, insertReplay, type MessageState } from '../rows/message.ts'
import { discardDeadLetter, markReplayed } from '../rows/message-updates.ts'
import type { StatusMessage } from '../rows/status-message.ts'
import { insertTask } from '../rows/task.ts'
import { addNote } from './activity.ts'
import type { InboxContext } from './context.ts'

/** Rows of a page. */
const LIST_MAX = 200

/** `lookForWork` finds a worker for a replayed message. */
export function createDeadLetters({ store, changed }: InboxContext, lookForWork: () => void): DeadLetters {
  return {
    list: (workspaceId, after) => store.read(() => listDeadLetters(workspaceId, after)),
    async replay(workspaceId, messageId) {
      const taskId = await store.write(() => replay(workspaceId, messageId), workspaceId)
      changed(workspaceId, taskId)
      lookForWork()
      return taskId
    },
    async discard(workspaceId, messageId) {
      await store.write(() => discard(workspaceId, messageId), workspaceId)
      changed(workspaceId, messageId)
    },
  }
}

interface DeadRow {
  id: string
  task_id: string
  context_id: string
  principal: string
  envelope: string
  sender: string
  failures: number
  losses: number
  settled_at: number
  status_message: string | null
}

const PAGE_OF_DEAD_LETTERS = `select m.id, m.task_id, t.context_id, t.principal, m.envelope, m.sender, m.failures,
    m.losses, m.settled_at, t.status_message
  from (${withinPage(
    `select d.id, d.settled_at, octet_length(d.envelope) as bytes from messages d
     where d.workspace_id = $1 and d.${inStates('dead')} and d.replayed_as is null and d.discarded_at is null
       and (d.settled_at < $2 or (d.settled_at = $2 and d.id < $3))
     order by d.settled_at desc, d.id desc limit ${LIST_MAX}`,
    'p.settled_at desc, p.id desc',
  )}) k join messages m on m.id = k.id join tasks t on t.id = m.task_id order by m.settled_at desc, m.id desc`

/** The unhandled dead letters of a workspace, the newest first. */
function* listDeadLetters(workspaceId: string, after: string | undefined): Transaction<OwnersPage<DeadLetter>> {
  const from = after === undefined ? { atMs: Number.MAX_SAFE_INTEGER, id: '' } : readTimeCursor(after)
  const rows = yield* sql<DeadRow>(PAGE_OF_DEAD_LETTERS, [workspaceId, from.atMs, from.id])
  const last = rows.at(-1)
  const cursor = last === undefined ? undefined : { atMs: last.settled_at, id: last.id }
  const more = cursor === undefined ? false : yield* hasOlder(workspaceId, cursor)
  return { rows: rows.map(toDeadLetter), ...(cursor !== undefined && more && { next: writeTimeCursor(cursor) }) }
}

function* hasOlder(workspaceId: string, { atMs, id }: TimeCursor): Transaction<boolean> {
  const rows = yield* sql(
    `select id from messages where workspace_id = $1 and ${inStates('dead')} and replayed_as is null
       and discarded_at is null and (settled_at < $2 or (settled_at = $2 and id < $3)) limit 1`,
    [workspaceId, atMs, id],
  )
  return rows.length > 0
}

function toDeadLetter(row: DeadRow): DeadLetter {
  const status = JSON.parse(row.status_message ?? '{}') as Partial<StatusMessage>
  return {
    id: row.id,
    taskId: row.task_id,
    contextId: row.context_id,
    principal: row.principal,
    sender: JSON.parse(row.sender),
    message: restoreEnvelope(row.envelope).message,
    code: status.code ?? 'internal',
    reason: status.parts?.[0]?.text ?? '',
    ...(status.detail !== undefined && { detail: status.detail }),
    failures: row.failures,
    losses: row.losses,
    atMs: row.settled_at,
  }
}

interface ReplayRow {
  workspace_id: string
  conversation_id: string
  context_id: string
  principal: string
  state: MessageState
  dedupe: Uint8Array
  replayed_as: string | null
}

/** Admits the dead letter again and returns the new task's id. A second replay returns the same. */
function* replay(workspaceId: string, messageId: string): Transaction<string> {
  yield* together([lockWorkspace(workspaceId)])
  const [dead] = yield* sql<ReplayRow>(
    `select m.workspace_id, m.conversation_id, m.state, m.dedupe, m.replayed_as, t.context_id, t.principal
     from messages m join tasks t on t.id = m.task_id where m.id = $1 and m.workspace_id = $2`,
    [messageId, workspaceId],
  )
  if (dead === undefined) throw notDead(messageId)
  if (dead.replayed_as !== null) return dead.replayed_as
  if (dead.state !== 'dead') throw notDead(messageId)
  const taskId = ulid()
  const { conversation_id: conversationId, context_id: contextId, principal } = dead
  const task = { id: taskId, workspaceId, conversationId, contextId, principal }
  yield* runStatement(insertTask(task, 'TASK_STATE_SUBMITTED'))
  yield* copyMessage({ from: messageId, to: taskId, dedupe: dead.dedupe })
  yield* runStatement(addNextMessage(conversationId))
  const entries = [{ taskId, messageId: taskId, items: [{ t: 'status', state: 'TASK_STATE_SUBMITTED' } as const] }]
  yield* together(recordChange({ workspaceId, waiting: 1, entries }))
  return taskId
}

/** Removes a dead letter from the list without another run. The note tells live readers that the list has changed. */
function* discard(workspaceId: string, messageId: string): Transaction<void> {
  const [dead] = yield* sql<{ discarded_at: number | null }>(
    `select discarded_at from messages where id = $1 and workspace_id = $2 and ${inStates('dead')}`,
    [messageId, workspaceId],
  )
  if (dead === undefined) throw notDead(messageId)
  if (dead.discarded_at !== null) return
  yield* runStatement(discardDeadLetter(messageId))
  yield* addNote(workspaceId, { type: 'discarded', text: `the dead letter ${messageId} was discarded`, by: 'owner' })
}

const notDead = (messageId: string) => new MoleculeError('not_found', `there is no dead letter ${messageId}`)

/** Copies the message to `to`. The sender's key moves with it: a client that retries gets the replay, not the failure. */
function* copyMessage({ from, to, dedupe }: { from: string; to: string; dedupe: Uint8Array }): Transaction<void> {
  const unusedKey = createHash('sha256').update(from).digest().subarray(0, 16)
  yield* together([markReplayed(from, to, unusedKey), insertReplay({ from, to, dedupe })])
  // Without its budget the replay could cost any amount. What the failed attempts cost is not counted again.
  yield* sql(
    `insert into budgets (id, workspace_id, root_id, task_id, limit_usd, state)
     select m.id, b.workspace_id, coalesce(m.root_id, m.id), m.task_id, b.limit_usd, 'open'
     from budgets b join messages m on m.id = $2 where b.id = $1`,
    [from, to],
  )
}
