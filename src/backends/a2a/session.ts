/**
 * What a relay remembers of the remote agent, and the message it sends. The note of a message is written as soon as the
 * remote agent has named its task, so that a second attempt asks for that task and never sends again. The session token
 * of a conversation holds the remote context, and the remote task if it waits for an answer.
 */
import type { Message, Metadata } from '../../protocol/a2a.ts'
import { DELEGATION_KEY, narrower, readLimits } from '../../protocol/delegation.ts'
import { isJsonObject, type JsonObject, parseJsonObject } from '../../protocol/json.ts'
import { fromRequestPart } from '../../protocol/part.ts'
import { extendRelayPath, RELAY_PATH_KEY } from '../../protocol/relay-path.ts'
import type { Turn } from '../backend.ts'

export interface UpstreamIds {
  readonly taskId?: string
  readonly contextId?: string
}

/** Written before the first send, so that a second attempt knows of it. */
export const SENDING_NOTE = 'sending'
export const UPSTREAM_NOTE = 'upstream'

export const writeUpstreamNote = (upstream: UpstreamIds): string => JSON.stringify(upstream)

/** The remote task, if an earlier attempt at this message has noted it. */
export function readUpstreamNote({ notes }: Turn): Required<Pick<UpstreamIds, 'taskId'>> | undefined {
  const { taskId } = readObject(notes[UPSTREAM_NOTE])
  return typeof taskId === 'string' ? { taskId } : undefined
}

/** The session token. `waiting`: the remote task waits for the next message of our task. */
export function writeSession({ contextId, taskId }: UpstreamIds, ourTaskId: string, waiting: boolean): string {
  return JSON.stringify({ contextId, ...(waiting && { taskId, ourTaskId }) })
}

/** Only a message of the same task of ours continues the remote task; every other begins a new one. */
function readSession({ sessionToken, request }: Turn): UpstreamIds {
  const { contextId, taskId, ourTaskId } = readObject(sessionToken)
  return {
    ...(typeof contextId === 'string' && { contextId }),
    ...(typeof taskId === 'string' && ourTaskId === request.task_id && { taskId }),
  }
}

/**
 * The message for the remote agent: the same content, under an id of ours that is the same on every attempt. The
 * caller's idempotency key is left out: for the remote agent all callers of this relay are one, and two may use one key.
 */
export function outgoingMessage(turn: Turn): Message {
  const { request } = turn
  const received = messageOf(request.raw)
  const { idempotency_key: _, ...metadata } = isJsonObject(received['metadata'])
    ? (received['metadata'] as Metadata)
    : {}
  const extensions = Array.isArray(received['extensions']) ? (received['extensions'] as string[]) : []
  return {
    messageId: `mol-${turn.messageId}`,
    role: 'ROLE_USER',
    parts: request.parts.map((part, index) => fromRequestPart(part, `parts[${index}]`)),
    ...readSession(turn),
    ...(extensions.length > 0 && { extensions }),
    metadata: {
      ...metadata,
      ...(metadata[DELEGATION_KEY] !== undefined && { [DELEGATION_KEY]: limitsForUpstream(metadata) }),
      [RELAY_PATH_KEY]: extendRelayPath(metadata, request.workspace_id),
    },
  }
}

/** A stranger learns how far the work may spread and what it may cost, and not who began it. */
function limitsForUpstream(metadata: Metadata): Metadata {
  const { cost_left_usd: left, max_cost_usd: given, ...limits } = readLimits(metadata)
  const cost = narrower(left, given)
  return { ...limits, ...(cost !== undefined && cost > 0 && { max_cost_usd: cost }) }
}

function messageOf(raw: unknown): Record<string, unknown> {
  const params = isJsonObject(raw) ? raw['params'] : undefined
  const message = isJsonObject(params) ? params['message'] : undefined
  return isJsonObject(message) ? message : {}
}

/** A token of another backend, or of an older form, counts as none. */
const readObject = (text: string | undefined): JsonObject => parseJsonObject(text ?? '') ?? {}
