/**
 * A lost turn: its worker vanished. If the turn had begun, that counts as one of the message's losses. The message runs
 * again, or is dead after too many losses. Open asks are void, and an answer that came goes back into the queue behind
 * it.
 */
import { runStatement, statement, type Transaction, together } from '../../store/store.ts'
import { voidOpenAsks } from '../rows/ask.ts'
import { freeConversation } from '../rows/conversation.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { type LogItem, recordChange } from '../rows/log.ts'
import { closeLostStopped, IS_RUNNING, type MessageState, returnLost, returnUnbegun } from '../rows/message.ts'
import { countLoss } from '../rows/message-updates.ts'
import type { LeaseKey } from '../worker.ts'
import { voidAsks } from './ask.ts'
import { failTask } from './fail-task.ts'

/** A message with this many losses is a dead letter: the message itself probably kills its workers. */
const LOSSES_MAX = 5

export interface LostMessage {
  id: string
  workspace_id: string
  conversation_id: string
  task_id: string
  state: MessageState
  losses: number
  suspended: number
  begun: number
}

export const LOST_COLUMNS = 'id, workspace_id, conversation_id, task_id, state, losses, suspended, begun'

export interface LostTurn {
  /** The message runs again; otherwise it has ended. */
  readonly again: boolean
  readonly items: readonly LogItem[]
  /** The change in the number of waiting messages: answers that went back, less messages that ended. */
  readonly waiting: number
}

export function* recordLoss(message: LostMessage): Transaction<LostTurn> {
  if (message.state === 'stopping') {
    // The task is cancelled. An answer that went back into the queue would start it again.
    yield* runStatement(voidOpenAsks(message.id))
    yield* runStatement(closeLostStopped(message.id))
    return { again: false, items: [], waiting: 0 }
  }
  const requeued = yield* voidAsks(message.id)
  if (message.begun === 0) {
    yield* runStatement(returnUnbegun(message.id))
    return { again: true, items: [], waiting: requeued }
  }
  if (message.losses + 1 < LOSSES_MAX) {
    yield* runStatement(returnLost(message.id))
    return { again: true, items: [], waiting: requeued }
  }
  yield* runStatement(countLoss(message.id))
  const text = `the worker was lost ${LOSSES_MAX} times while running this message`
  const { ended, items } = yield* failTask(message.task_id, { code: 'worker_lost', message: text })
  // The lost message itself did not wait; the other messages of its task did.
  return { again: false, items, waiting: requeued + 1 - ended }
}

/** Ends the lease of a lost turn without a new one: the message waits again, or has ended. */
export function* freeLost(message: LostMessage, { again, items, waiting }: LostTurn): Transaction<void> {
  const change = {
    workspaceId: message.workspace_id,
    running: message.suspended - 1,
    suspended: -message.suspended,
    waiting: waiting + (again ? 1 : 0),
    entries: items.length === 0 ? [] : [{ taskId: message.task_id, messageId: message.id, items }],
  }
  yield* together([freeConversation(message.conversation_id), ...recordChange(change)])
}

/** Ends the lease of that worker, if it still holds it: the worker does not know of it. */
export function* freeLease(key: LeaseKey, worker: string): Transaction<void> {
  const [, [message]] = (yield* together([
    lockWorkspace(key.workspaceId),
    statement(
      `select ${LOST_COLUMNS} from messages where id = $1 and ${IS_RUNNING} and exists
         (select 1 from conversations c where c.id = conversation_id and c.worker = $2 and c.lease_epoch = $3)`,
      [key.messageId, worker, key.epoch],
    ),
  ])) as unknown as [unknown, LostMessage[]]
  if (message !== undefined) yield* freeLost(message, yield* recordLoss(message))
}
