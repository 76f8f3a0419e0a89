/** Statements that change a message and not its state; `message.ts` has those that change its state. */
import type { TaskState } from '../../protocol/a2a.ts'
import { type Statement, statement } from '../../store/store.ts'
import type { LeaseKey } from '../worker.ts'
import { IS_RUNNING, inStates } from './message.ts'
import { messagesOfTask } from './task-messages.ts'

// A running turn.

/** Its turn waits and holds no slot, or holds one again. */
export const setSuspended = (id: string, isSuspended: boolean): Statement =>
  statement(`update messages set suspended = ${isSuspended ? 1 : 0} where id = $1`, [id])

/** The turn has begun, and the log has its events up to this number. */
export const storeAppended = (id: string, appended: number): Statement =>
  statement('update messages set begun = 1, appended = $2 where id = $1', [id, appended])

/** Its turn asked a person in this attempt. */
export const markAsked = (id: string): Statement => statement('update messages set asked = 1 where id = $1', [id])

// A message that fails for good: its last attempt is counted like every other.

/** `reply` holds what the turn finished before it failed. */
export const countFailure = ({ messageId, epoch }: LeaseKey, reply: string | null): Statement =>
  statement('update messages set settled_epoch = $2, failures = failures + 1, reply = $3 where id = $1', [
    messageId,
    epoch,
    reply,
  ])

export const countLoss = (id: string): Statement =>
  statement('update messages set losses = losses + 1, suspended = 0 where id = $1', [id])

// Waiting messages.

/** It waits since its admission, or it was parked or given back before its turn began: no agent has seen it. */
export const IS_UNTRIED = `${inStates('queued')} and interrupted = 0 and failures = 0 and losses = 0 and parks = 0
  and session_retried = 0`

/** Its sender changed its content. */
export const replaceEnvelope = (id: string, content: { envelope: string; contentHash: string }): Statement =>
  statement(`update messages set envelope = $2, content_hash = $3 where id = $1 and ${IS_UNTRIED}`, [
    id,
    content.envelope,
    content.contentHash,
  ])

const READY_NOW = `update messages set ready_at = now_ms() where ${inStates('queued')} and ready_at > now_ms()`

/** A message that waits for a time is ready now. Returns its id. */
export const wakeMessage = (id: string): Statement => statement(`${READY_NOW} and id = $1 returning id`, [id])

/** The same for the messages of a workspace that match the condition. Returns their conversations. */
export const wakeMessagesOf = (workspaceId: string, condition: string): Statement =>
  statement(`${READY_NOW} and workspace_id = $1 and ${condition} returning conversation_id`, [workspaceId])

/** No platform looked after the queue since `markMs`. A message that was admitted later has waited only since then. */
export const extendExpiry = (markMs: number): Statement =>
  statement(
    `update messages set expires_at = expires_at + now_ms() - case when admitted_at > $1 then admitted_at else $1 end
     where ${inStates('queued')} and admitted_at <= now_ms()`,
    [markMs],
  )

/** Waiting and running messages, each by its own partial index. */
export const OPEN_MESSAGES = `select id from messages where ${inStates('queued')}
  union all select id from messages where ${IS_RUNNING}`

/** The clock was set back by this time. */
export const moveTimesBack = (backMs: number): Statement =>
  statement(
    `update messages set admitted_at = admitted_at - $1, ready_at = ready_at - $1, expires_at = expires_at - $1,
       parked_at = parked_at - $1 where id in (${OPEN_MESSAGES})`,
    [backMs],
  )

// Dead letters.

/** Its sender's key moves to the replay; the old message keeps an unused one. */
export const markReplayed = (id: string, replayId: string, unusedKey: Uint8Array): Statement =>
  statement('update messages set replayed_as = $2, dedupe = $3 where id = $1', [id, replayId, unusedKey])

/** An unhandled dead letter. */
const NEEDS_PERSON = `${inStates('dead')} and replayed_as is null and discarded_at is null`

export const discardDeadLetter = (id: string): Statement =>
  statement('update messages set discarded_at = now_ms() where id = $1', [id])

export const discardDeadLettersOf = (workspaceId: string): Statement =>
  statement(`update messages set discarded_at = now_ms() where workspace_id = $1 and ${NEEDS_PERSON}`, [workspaceId])

// Messages of a tree.

/** A turn of the message delegated. */
export const markParent = (id: string): Statement =>
  statement('update messages set has_children = 1 where id = $1 and has_children is null', [id])

/** A new attempt at the parent meets this child of an earlier one, under the key of its own call. */
export const meetChild = (
  id: string,
  { parentEpoch, dedupe, key }: { parentEpoch: number | null; dedupe: Uint8Array; key: string },
): Statement =>
  statement('update messages set parent_epoch = $2, child_open = 1, dedupe = $3, idempotency_key = $4 where id = $1', [
    id,
    parentEpoch,
    dedupe,
    key,
  ])

/** The same for a child that is met by its key. */
export const meetChildByKey = (
  id: string,
  { parentId, parentEpoch }: { parentId: string | null; parentEpoch: number | null },
): Statement =>
  statement(
    'update messages set parent_epoch = $3, child_open = 1 where id = $1 and parent_id = $2 and parent_epoch < $3',
    [id, parentId, parentEpoch],
  )

/** The end of the child was handled. */
export const closeChild = (id: string): Statement => statement('update messages set child_open = 0 where id = $1', [id])

/** Nobody waits for the messages of this task any more. */
export const closeChildrenIn = (taskId: string): Statement =>
  statement(`update messages set child_open = 0 where ${messagesOfTask('messages', '$1')} and child_open = 1`, [taskId])

/**
 * Settled children of the task that the running turn of their parent has not read. The principal of the task is that of
 * the conversation that delegated it. The state is the one that was read: a task that went on in the meantime has a
 * result that is unread.
 */
const UNREAD = (child: string): string => `${messagesOfTask(child, '$1')}
  and ${child}.child_open = 1 and ${child}.settled_at is not null
  and p.id = ${child}.parent_id and p.${inStates('leased')} and c.id = p.conversation_id
  and coalesce(${child}.read_epoch, 0) <> c.lease_epoch
  and exists (select 1 from tasks t where t.id = $1 and t.principal = $2 and t.state = $3)`

interface ReadTask {
  readonly taskId: string
  readonly reader: string
  readonly state: TaskState
}

/** The workspace of such a child. */
export const findUnread = ({ taskId, reader, state }: ReadTask): Statement =>
  statement(`select m.workspace_id from messages m, messages p, conversations c where ${UNREAD('m')} limit 1`, [
    taskId,
    reader,
    state,
  ])

export const markRead = ({ taskId, reader, state }: ReadTask): Statement =>
  statement(
    `update messages set read_epoch = c.lease_epoch from messages p, conversations c where ${UNREAD('messages')}`,
    [taskId, reader, state],
  )

/** Only of the turn that runs: what an earlier turn read and was done with stays read. */
export const markUnread = ({ taskId, reader }: Omit<ReadTask, 'state'>): Statement =>
  statement(
    `update messages set read_epoch = null where ${messagesOfTask('messages', '$1')} and child_open = 1
     and exists (select 1 from tasks t where t.id = $1 and t.principal = $2)`,
    [taskId, reader],
  )

export const deleteMessagesOf = (taskId: string): Statement =>
  statement(`delete from messages where ${messagesOfTask('messages', '$1')}`, [taskId])
