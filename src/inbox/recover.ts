/**
 * After a crash: the leases of a process that is gone are void. Its data folder's lock proves that it is gone, so
 * nobody has to wait for a lease to run out. What it was running is counted as a loss and runs again.
 */
import { sql, type Transaction } from '../store/store.ts'
import { freeConversation } from './conversation.ts'
import { closeBooks, type Item } from './event-log.ts'
import { setTaskState } from './tasks.ts'

/** A message whose worker vanished this often is a dead letter: it is likely what takes the worker down. */
const LOSSES_MAX = 5

interface LostRow {
  id: string
  workspace_id: string
  conversation_id: string
  task_id: string
  state: string
  losses: number
}

/** Voids every lease; returns how many turns were lost. Only for a store that no other process can be using. */
export function* voidLeases(): Transaction<number> {
  const lost = yield* sql<LostRow>(
    `select id, workspace_id, conversation_id, task_id, state, losses from messages
     where state in ('leased', 'stopping') order by workspace_id, conversation_id`,
  )
  for (const message of lost) {
    const { items, waiting } = yield* countLoss(message)
    yield* freeConversation(message.conversation_id)
    const entries = items.length === 0 ? [] : [{ taskId: message.task_id, messageId: message.id, items }]
    yield* closeBooks({ workspaceId: message.workspace_id, running: -1, waiting, entries })
  }
  return lost.length
}

function* countLoss(message: LostRow): Transaction<{ items: Item[]; waiting: number }> {
  if (message.state === 'stopping') {
    yield* sql(`update messages set state = 'canceled', outcome = 'stopped', settled_at = now_ms() where id = $1`, [
      message.id,
    ])
    return { items: [], waiting: 0 }
  }
  if (message.losses + 1 < LOSSES_MAX) {
    yield* sql(`update messages set state = 'queued', losses = losses + 1, interrupted = 1 where id = $1`, [message.id])
    return { items: [], waiting: 1 }
  }
  const ended = yield* sql<{ id: string }>(
    `update messages set state = 'dead', outcome = 'dead', losses = losses + 1, settled_at = now_ms()
     where task_id = $1 and settled_at is null returning id`,
    [message.task_id],
  )
  const said = {
    parts: [{ text: `the worker was lost ${LOSSES_MAX} times while running this message` }],
    code: 'worker_lost',
  }
  yield* setTaskState(message.task_id, 'TASK_STATE_FAILED', said)
  return { items: [{ t: 'status', state: 'TASK_STATE_FAILED', ...said }], waiting: 1 - ended.length }
}
