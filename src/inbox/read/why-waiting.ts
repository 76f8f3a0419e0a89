/** Why a task has not begun, as a status message: its sender sees whether it waits for a pause, a message, a slot or a worker. */
import { sql, type Transaction } from '../../store/store.ts'
import { OLDEST_UNSETTLED_ID } from '../lease/conversation-readiness.ts'
import type { StatusMessage } from '../settle/status-message.ts'

interface HeadRow {
  id: string
  task_id: string
  state: string
  in_ms: number
}

interface LoadRow {
  paused: number
  slots: number
  running: number
  waiting: number
}

interface WaitingTask {
  readonly id: string
  readonly workspace_id: string
  readonly conversation_id: string
}

export function* whyWaiting(task: WaitingTask): Transaction<StatusMessage> {
  const [head] = yield* sql<HeadRow>(
    `select m.id, m.task_id, m.state, m.ready_at - now_ms() as in_ms from conversations c
     join messages m on m.id = ${OLDEST_UNSETTLED_ID} where c.id = $1`,
    [task.conversation_id],
  )
  const [load] = yield* sql<LoadRow>(
    'select paused, slots, running, waiting from workspace_load where workspace_id = $1',
    [task.workspace_id],
  )
  return { parts: [{ text: reasonText(task, head, load) }], code: 'waiting' }
}

function reasonText(task: WaitingTask, head: HeadRow | undefined, load: LoadRow | undefined): string {
  if (load?.paused === 1) return 'waiting: the workspace is paused'
  if (head !== undefined && head.task_id !== task.id) {
    const soon = head.state === 'queued' && head.in_ms > 0 ? `, next try in ${Math.ceil(head.in_ms / 1000)} s` : ''
    return `waiting behind message ${head.id} of the same conversation${soon}`
  }
  if (load !== undefined && load.running >= load.slots) {
    return `waiting for a free slot: ${load.running} of ${load.slots} in use, ${load.waiting} waiting`
  }
  return 'waiting for a worker'
}
