/**
 * How a task came to rest, as its last settle wrote it: final, or waiting for an answer. Given to whoever waits for that
 * task in this process, so that the most common call of all, a message and its answer, reads nothing back.
 */
import type { TaskState } from '../../protocol/a2a.ts'
import type { StoredReply } from '../read/event-log.ts'
import type { StatusMessage } from './status-message.ts'

export interface TaskResult {
  readonly state: TaskState
  readonly status?: StatusMessage
  readonly reply: StoredReply
  readonly atMs: number
}
