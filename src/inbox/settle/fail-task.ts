/** Dead letters in the making: a task fails with its reason, and whatever of it was unsettled ends with it. */
import { sql, type Transaction, together } from '../../store/store.ts'
import { type AddressedMessage, deliveryStatements } from '../deliver/delivery-rows.ts'
import type { Failure } from '../inbox.ts'
import type { LogItem } from '../read/event-log.ts'
import { messagesOfTask } from '../read/task-messages.ts'
import { setTaskState } from '../read/tasks.ts'
import { statusMessageOf, withoutDetail } from './status-message.ts'

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
