/**
 * A turn whose worker vanished: counted if it had begun, then run again, or a dead letter when it happened too often. What its agent
 * had asked is void, and an answer that had come goes back into the queue behind it.
 */
import { sql, type Transaction } from '../../store/store.ts'
import { closeAsks, voidAsks } from '../ask/close-asks.ts'
import type { LogItem } from '../read/event-log.ts'
import { failTask } from '../settle/fail-task.ts'

/** A message whose worker vanished this often is a dead letter: it is likely what takes the worker down. */
const LOSSES_MAX = 5

export interface LostMessage {
  id: string
  workspace_id: string
  conversation_id: string
  task_id: string
  state: string
  losses: number
  suspended: number
  begun: number
}

export const LOST_COLUMNS = 'id, workspace_id, conversation_id, task_id, state, losses, suspended, begun'

export interface LostTurn {
  /** It is to be run again; otherwise it has ended. */
  readonly again: boolean
  readonly items: readonly LogItem[]
  /** How many messages wait now that did not before (answers that go back), or no longer do. */
  readonly waiting: number
}

export function* recordLoss(message: LostMessage): Transaction<LostTurn> {
  if (message.state === 'stopping') {
    // Its task is cancelled and has ended: an answer that went back into the queue would bring it to life again.
    yield* closeAsks(message.id)
    yield* sql(
      `update messages set state = 'canceled', outcome = 'stopped', suspended = 0, settled_at = now_ms() where id = $1`,
      [message.id],
    )
    return { again: false, items: [], waiting: 0 }
  }
  const requeued = yield* voidAsks(message.id)
  if (message.begun === 0) {
    yield* sql(`update messages set state = 'queued', suspended = 0 where id = $1`, [message.id])
    return { again: true, items: [], waiting: requeued }
  }
  if (message.losses + 1 < LOSSES_MAX) {
    yield* sql(
      `update messages set state = 'queued', losses = losses + 1, interrupted = 1, suspended = 0 where id = $1`,
      [message.id],
    )
    return { again: true, items: [], waiting: requeued }
  }
  yield* sql('update messages set losses = losses + 1, suspended = 0 where id = $1', [message.id])
  const text = `the worker was lost ${LOSSES_MAX} times while running this message`
  const { ended, items } = yield* failTask(message.task_id, { code: 'worker_lost', message: text })
  // The lost message itself was not waiting; the task's others were.
  return { again: false, items, waiting: requeued + 1 - ended }
}
