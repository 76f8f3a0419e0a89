/** Dead letters in the making: a task fails with its reason, and whatever of it was unsettled ends with it. */
import { sql, type Transaction, together } from '../store/store.ts'
import { type Addressed, deliver } from './delivery-rows.ts'
import type { Item } from './event-log.ts'
import type { Failure } from './inbox.ts'
import { ofTask } from './of-task.ts'
import { publicly, saidOf } from './said.ts'
import { setTaskState } from './tasks.ts'

export interface EndedTask {
  /** How many messages were unsettled and are dead now. */
  readonly ended: number
  readonly items: readonly Item[]
}

/** The task's other messages could only follow what will never be: they end with it. */
export function* endTask(taskId: string, failure: Failure): Transaction<EndedTask> {
  const ended = yield* sql<Addressed>(
    `update messages set state = 'dead', outcome = 'dead', settled_at = now_ms()
     where ${ofTask('messages', '$1')} and settled_at is null returning id, workspace_id, task_id, reply_to`,
    [taskId],
  )
  const said = saidOf(failure)
  const told = publicly(said)
  const deliveries = ended.flatMap((message) => deliver(message, { state: 'TASK_STATE_FAILED', ...told }))
  yield* together([setTaskState(taskId, 'TASK_STATE_FAILED', said), ...deliveries])
  return { ended: ended.length, items: [{ t: 'status', state: 'TASK_STATE_FAILED', ...told }] }
}
