/**
 * What a task's state is explained with. A failed turn is told in one clean sentence to everybody; what the program
 * itself said is kept beside it and shown only where the owner is known to look. So a door that asks for nothing
 * special, a stream and a chat can leak nothing.
 */
import type { Message, MessageContent } from '../../protocol/a2a.ts'
import type { Failure } from '../inbox.ts'

/** A failure's sentence and code, an agent's question. As stored. */
export interface StatusMessage extends MessageContent {
  readonly code?: string
  readonly category?: string
  /** Where the log has everything. */
  readonly errorId?: string
  /** For the owner: the whole message. */
  readonly detail?: string
  /** For the owner: the end of what the program wrote to stderr. */
  readonly stderr?: string
}

const STDERR_CHARACTERS_MAX = 500

/** A failure of the inbox itself has no sentence: its message is ours and clean. */
export function statusMessageOf(failure: Failure): StatusMessage {
  const { code, message, sentence, category, id, details } = failure
  if (sentence === undefined) return { parts: [{ text: message }], code }
  const stderr = details?.['stderr']
  return {
    parts: [{ text: sentence }],
    code,
    ...(category !== undefined && { category }),
    ...(id !== undefined && { errorId: id }),
    detail: message,
    ...(typeof stderr === 'string' && stderr !== '' && { stderr: stderr.slice(-STDERR_CHARACTERS_MAX) }),
  }
}

/** What everybody may see of it. */
export function withoutDetail({ detail: _detail, stderr: _stderr, ...status }: StatusMessage): StatusMessage {
  return status
}

/** With what only the owner sees: the program's own words after the sentence. */
function withDetail(status: StatusMessage): StatusMessage {
  if (status.detail === undefined) return status
  const sentence = status.parts.map(({ text }) => text ?? '').join('')
  return { ...status, parts: [{ text: `${sentence}\n${status.detail}` }] }
}

export interface TaskIds {
  readonly id: string
  readonly contextId: string
}

export interface StatusMessageOptions {
  readonly messageId: string
  readonly status: StatusMessage
  /** The owner looks: details are shown. */
  readonly detail?: boolean | undefined
}

/** As the agent's message. */
export function toAgentMessage(task: TaskIds, { messageId, status, detail = false }: StatusMessageOptions): Message {
  const { parts, code, category, errorId, stderr, metadata: kept } = detail ? withDetail(status) : withoutDetail(status)
  const metadata = {
    ...kept,
    ...(code !== undefined && { code }),
    ...(category !== undefined && { category }),
    ...(errorId !== undefined && { error_id: errorId }),
    ...(stderr !== undefined && { detail: stderr }),
  }
  const named = { messageId, taskId: task.id, contextId: task.contextId, role: 'ROLE_AGENT' } as const
  return { ...named, parts, ...(Object.keys(metadata).length > 0 && { metadata }) }
}
