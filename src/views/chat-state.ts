/** The state of one message as a person sees it in a chat. */
import type { ApiAnswer } from '../api/api.ts'
import type { TaskState } from '../protocol/a2a.ts'

/** `parked`: tried again at a time, for another reason than a limit of the model provider. */
type ChatState = ApiAnswer<'GET /workspaces/{id}/conversations'>['conversations'][number]['state']

export interface ChatStateRow {
  readonly state: string
  readonly task_state: TaskState
  readonly parks: number
  readonly failures: number
  readonly losses: number
  readonly ready_at: number
  readonly now: number
  /** 1 for the newest message of its task that is no answer to an ask: only that one is in the state of the task. */
  readonly is_newest: number
}

export function chatStateOf(row: ChatStateRow): ChatState {
  switch (row.state) {
    case 'queued':
      return queuedState(row)
    case 'leased':
      return isAsking(row.task_state) ? 'waiting_for_you' : 'running'
    case 'stopping':
    case 'canceled':
      return 'stopped'
    case 'dead':
      return 'failed'
    // The running turn has it. What that turn asks next is shown at the message of the turn.
    case 'answer':
      return 'answered'
    default:
      return row.is_newest === 1 ? settledState(row.task_state) : 'answered'
  }
}

function queuedState({ ready_at: readyAtMs, now, parks }: ChatStateRow): ChatState {
  if (readyAtMs <= now) return 'queued'
  return parks > 0 ? 'rate_limited' : 'parked'
}

function settledState(taskState: TaskState): ChatState {
  if (isAsking(taskState)) return 'waiting_for_you'
  return taskState === 'TASK_STATE_REJECTED' ? 'failed' : 'answered'
}

const isAsking = (state: TaskState): boolean =>
  state === 'TASK_STATE_INPUT_REQUIRED' || state === 'TASK_STATE_AUTH_REQUIRED'
