/** Fails a task with a reason. Its unsettled messages become dead letters: they could only follow what has failed. */
import { runStatement, type Transaction, together } from '../../store/store.ts'
import { type AddressedMessage, deliveryStatements } from '../rows/delivery.ts'
import type { LogItem } from '../rows/log.ts'
import { failMessages } from '../rows/message.ts'
import { statusMessageOf, withoutDetail } from '../rows/status-message.ts'
import { setTaskState } from '../rows/task.ts'
import type { Failure } from '../worker.ts'

export interface FailedTask {
  /** How many messages became dead letters. */
  readonly ended: number
  readonly items: readonly LogItem[]
}

export function* failTask(taskId: string, failure: Failure): Transaction<FailedTask> {
  const ended = yield* runStatement<AddressedMessage>(failMessages(taskId))
  const status = statusMessageOf(failure)
  const publicStatus = withoutDetail(status)
  const deliveries = ended.flatMap((message) =>
    deliveryStatements(message, { state: 'TASK_STATE_FAILED', ...publicStatus }),
  )
  yield* together([setTaskState(taskId, 'TASK_STATE_FAILED', status), ...deliveries])
  return { ended: ended.length, items: [{ t: 'status', state: 'TASK_STATE_FAILED', ...publicStatus }] }
}
