/**
 * The message that explains a task's state. Everyone sees one clean sentence for a failed turn. The program's own text
 * is stored beside it and shown to the owner only, where a reader asks for `detail`. A door that asks for nothing
 * special, a stream and a chat can leak nothing.
 */
import type { Message, MessageContent } from '../../protocol/a2a.ts'
import { textOf } from '../../protocol/part.ts'
import type { Failure } from '../worker.ts'

/** As stored: the sentence and code of a failure, an agent's question, or the reason of a wait. */
export interface StatusMessage extends MessageContent {
  readonly code?: string
  readonly category?: string
  /** Finds the whole error in the log file. */
  readonly errorId?: string
  /** When the message is tried again. */
  readonly nextTryAtMs?: number
  /** For the owner: the whole message. */
  readonly detail?: string
  /** For the owner: the end of the program's stderr. */
  readonly stderr?: string
}

const STDERR_CHARACTERS_MAX = 500

/** A failure of the inbox itself has no sentence: its message is ours and safe to show. */
export function statusMessageOf(failure: Failure): StatusMessage {
  const { code, message, sentence, category, id, details } = failure
  if (sentence === undefined) return { parts: [{ text: message }], code }
  const stderr = details?.['stderr']
  return {
    parts: [{ text: sentence }],
    code,
    category,
    errorId: id,
    detail: message,
    ...(typeof stderr === 'string' && stderr !== '' && { stderr: stderr.slice(-STDERR_CHARACTERS_MAX) }),
  }
}

/**
 * The status of a message that is tried again. The worker says why; the time of a parked one is added here, because only
 * the clock of the store counts.
 */
export function retryStatus(
  status: StatusMessage,
  { parked, afterMs, nowMs }: { readonly parked: boolean; readonly afterMs: number; readonly nowMs: number },
): StatusMessage {
  if (afterMs === 0) return status
  const nextTryAtMs = nowMs + afterMs
  if (!parked) return { ...status, nextTryAtMs }
  const [first, ...others] = status.parts
  const text = `parked, next try at ${timeOfDay(nextTryAtMs)}: ${first?.text ?? ''}`
  return { ...status, parts: [{ ...first, text }, ...others], nextTryAtMs }
}

/** `19:05 UTC`. Enough for a wait of at most a day; programs read `next_try_at`. */
const timeOfDay = (ms: number): string => `${new Date(ms).toISOString().slice(11, 16)} UTC`

/** What everyone may see. */
export function withoutDetail({ detail: _detail, stderr: _stderr, ...status }: StatusMessage): StatusMessage {
  return status
}

/** What the owner sees: the program's own text after the sentence. */
function withDetail(status: StatusMessage): StatusMessage {
  if (status.detail === undefined) return status
  const sentence = textOf(status.parts)
  return { ...status, parts: [{ text: `${sentence}\n${status.detail}` }] }
}

export interface TaskIds {
  readonly id: string
  readonly contextId: string
}

/** The status as a message of the agent. With `detail`, as the owner sees it. */
export function toAgentMessage(
  task: TaskIds,
  given: { readonly messageId: string; readonly status: StatusMessage; readonly detail?: boolean | undefined },
): Message {
  const { messageId, status, detail = false } = given
  const {
    parts,
    code,
    category,
    errorId,
    nextTryAtMs,
    stderr,
    metadata: stored,
  } = detail ? withDetail(status) : withoutDetail(status)
  const metadata = {
    ...stored,
    ...(code !== undefined && { code }),
    ...(category !== undefined && { category }),
    ...(errorId !== undefined && { error_id: errorId }),
    ...(nextTryAtMs !== undefined && { next_try_at: new Date(nextTryAtMs).toISOString() }),
    ...(stderr !== undefined && { detail: stderr }),
  }
  const named = { messageId, taskId: task.id, contextId: task.contextId, role: 'ROLE_AGENT' } as const
  return { ...named, parts, ...(Object.keys(metadata).length > 0 && { metadata }) }
}
