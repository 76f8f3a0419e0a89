/** Dead letters in the making: a task fails with its reason, and whatever of it was unsettled ends with it. */
import { sql, type Transaction, together } from '../store/store.ts'
import { type AddressedMessage, deliveryStatements } from './delivery-rows.ts'
import type { LogItem } from './event-log.ts'
import type { Failure } from './inbox.ts'
import { messagesOfTask } from './of-task.ts'
import { statusMessageOf, withoutDetail } from './said.ts'
import { setTaskState } from './tasks.ts'

export interface FailedTask {
  /** How many messages were unsettled and are dead now. */
  readonly ended: number
  readonly items: readonly LogItem[]
}

/** The task's other messages could only follow what will never be: they end with it. */
export function* failTask(taskId: string, failure: Failure): Transaction<FailedTask> {
  const ended = yield* sql<AddressedMessage>(
    `update messages set state = 'dead', outcome = 'dead', settled_at = now_ms()
     where ${messagesOfTask('messages', '$1')} and settled_at is null returning id, workspace_id, task_id, reply_to`,
    [taskId],
  )
  const status = statusMessageOf(failure)
  const publicStatus = withoutDetail(status)
  const deliveries = ended.flatMap((message) =>
    deliveryStatements(message, { state: 'TASK_STATE_FAILED', ...publicStatus }),
  )
  yield* together([setTaskState(taskId, 'TASK_STATE_FAILED', status), ...deliveries])
  return { ended: ended.length, items: [{ t: 'status', state: 'TASK_STATE_FAILED', ...publicStatus }] }
}
