/**
 * Replays and discards dead letters. A replay admits a new message and task in the same conversation; the old task stays
 * failed and names the new one.
 */
import { createHash } from 'node:crypto'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { runStatement, sql, type Transaction, together } from '../../store/store.ts'
import { addNextMessage } from '../rows/conversation.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { recordChange } from '../rows/log.ts'
import { inStates, insertReplay, type MessageState } from '../rows/message.ts'
import { discardDeadLetter, markReplayed } from '../rows/message-updates.ts'
import { insertTask } from '../rows/task.ts'
import { addNote } from './add-note.ts'

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
export function* replay(workspaceId: string, messageId: string): Transaction<string> {
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
export function* discard(workspaceId: string, messageId: string): Transaction<void> {
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
