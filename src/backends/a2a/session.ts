/**
 * What a relay remembers of the other side, and the message it sends there. The note of a message is written as soon as
 * the other side has named its task, so that a second attempt asks for that task and never sends again. The session of
 * a conversation holds its context, and the task that waits for an answer, if one does.
 */
import type { Message, Metadata } from '../../protocol/a2a.ts'
import { isJsonObject, type JsonObject, parseJsonObject } from '../../protocol/json.ts'
import { fromRequestPart } from '../../protocol/part.ts'
import { extendRelayPath, RELAY_PATH_KEY } from '../../protocol/relay-path.ts'
import type { Turn } from '../backend.ts'

export interface UpstreamIds {
  readonly taskId?: string
  readonly contextId?: string
}

/** Before the first send, so that a second attempt can tell that there was one. */
export const SENDING_NOTE = 'sending'
export const UPSTREAM_NOTE = 'upstream'

export const writeUpstreamNote = (upstream: UpstreamIds): string => JSON.stringify(upstream)

/** The other side's task, where an earlier attempt at this message learned it. */
export function readUpstreamNote({ notes }: Turn): Required<Pick<UpstreamIds, 'taskId'>> | undefined {
  const { taskId } = readObject(notes[UPSTREAM_NOTE])
  return typeof taskId === 'string' ? { taskId } : undefined
}

/** The session token. `waiting`: the other side's task waits for the next message of this task of ours. */
export function writeSession({ contextId, taskId }: UpstreamIds, ourTaskId: string, waiting: boolean): string {
  return JSON.stringify({ contextId, ...(waiting && { taskId, ourTaskId }) })
}

/** The other side's task is gone on with only by a message of the same task of ours; any other begins a new one. */
function readSession({ sessionToken, request }: Turn): UpstreamIds {
  const { contextId, taskId, ourTaskId } = readObject(sessionToken)
  return {
    ...(typeof contextId === 'string' && { contextId }),
    ...(typeof taskId === 'string' && ourTaskId === request.task_id && { taskId }),
  }
}

/**
 * The message as it goes out: the same words under an id of ours that is the same on every attempt. The caller's own
 * idempotency key stays here: over there all callers of this relay are one, and two may use the same key.
 */
export function outgoingMessage(turn: Turn): Message {
  const { request } = turn
  const given = messageOf(request.raw)
  const { idempotency_key: _, ...metadata } = isJsonObject(given['metadata']) ? (given['metadata'] as Metadata) : {}
  const extensions = Array.isArray(given['extensions']) ? (given['extensions'] as string[]) : []
  return {
    messageId: `mol-${turn.messageId}`,
    role: 'ROLE_USER',
    parts: request.parts.map((part, index) => fromRequestPart(part, `parts[${index}]`)),
    ...readSession(turn),
    ...(extensions.length > 0 && { extensions }),
    metadata: { ...metadata, [RELAY_PATH_KEY]: extendRelayPath(metadata, request.workspace_id) },
  }
}

function messageOf(raw: unknown): Record<string, unknown> {
  const params = isJsonObject(raw) ? raw['params'] : undefined
  const message = isJsonObject(params) ? params['message'] : undefined
  return isJsonObject(message) ? message : {}
}

/** A token of another backend, or of an older form, counts as none. */
const readObject = (text: string | undefined): JsonObject => parseJsonObject(text ?? '') ?? {}
