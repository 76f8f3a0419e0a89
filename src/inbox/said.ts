/**
 * What a task's state is explained with. A failed turn is told in one clean sentence to everybody; what the program
 * itself said is kept beside it and shown only where the owner is known to look. So a door that asks for nothing
 * special, a stream and a chat can leak nothing.
 */
import type { Message, Words } from '../protocol/a2a.ts'
import type { Failure } from './inbox.ts'

/** A failure's sentence and code, an agent's question. As stored. */
export interface Said extends Words {
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
export function saidOf(failure: Failure): Said {
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
export function publicly({ detail: _detail, stderr: _stderr, ...said }: Said): Said {
  return said
}

/** With what only the owner sees: the program's own words after the sentence. */
function toOwner(said: Said): Said {
  if (said.detail === undefined) return said
  const sentence = said.parts.map(({ text }) => text ?? '').join('')
  return { ...said, parts: [{ text: `${sentence}\n${said.detail}` }] }
}

export interface TaskName {
  readonly id: string
  readonly contextId: string
}

export interface Telling {
  readonly messageId: string
  readonly said: Said
  /** The owner looks: details are shown. */
  readonly detail?: boolean | undefined
}

/** As the agent's message. */
export function statusMessage(task: TaskName, { messageId, said, detail = false }: Telling): Message {
  const { parts, code, category, errorId, stderr, metadata: kept } = detail ? toOwner(said) : publicly(said)
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
