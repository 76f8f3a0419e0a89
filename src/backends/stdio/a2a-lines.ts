/**
 * The calls to the program of a stdio workspace, and the parser of its replies. Pure. A call is the A2A request as it
 * arrived, in its own version. The platform adds the facts that a sender cannot forge (the sender, the workspace) and the
 * brief in `params.metadata.molecule`.
 */
import { MoleculeError } from '../../errors.ts'
import type { Part } from '../../protocol/a2a.ts'
import { isJsonObject, type JsonObject } from '../../protocol/json.ts'
import { readAgentPart, textOf } from '../../protocol/part.ts'
import type { Request } from '../../protocol/request.ts'
import type { Finality } from '../backend.ts'
import { agentReason } from '../engine/failure/agent-errors.ts'
import type { EndEvent } from '../engine/turn-engine.ts'

export interface ProgramCall {
  readonly method: string
  readonly params: JsonObject
}

export function requestOf(request: Request, brief: object = {}): ProgramCall {
  const { raw, parts: _parts, method, ...known } = request
  const params = isJsonObject(raw) && isJsonObject(raw['params']) ? raw['params'] : {}
  const metadata = isJsonObject(params['metadata']) ? params['metadata'] : {}
  const message = isJsonObject(params['message']) ? params['message'] : messageOf(request)
  return { method, params: { ...params, message, metadata: { ...metadata, molecule: { ...known, ...brief } } } }
}

/** For a request that did not arrive as an A2A call. */
const messageOf = ({ message_id: messageId, parts }: Request): JsonObject => ({ messageId, role: 'ROLE_USER', parts })

/** In the A2A version of the message. */
export const cancelOf = ({ method, task_id: id }: Request): ProgramCall => ({
  method: method.includes('/') ? 'tasks/cancel' : 'CancelTask',
  params: { id },
})

/** A reply is a text, a response (`{parts}`), an A2A message or an A2A task, of version 1.0 or 0.3. */
export function readReply(result: unknown): EndEvent {
  try {
    return read(result)
  } catch (cause) {
    return failed(`the reply of the program is invalid: ${(cause as Error).message}`, cause)
  }
}

function read(result: unknown): EndEvent {
  if (typeof result === 'string') return done([{ text: result }])
  if (!isJsonObject(result)) return failed('the program replied with neither a text nor an object')
  const inner = result['task'] ?? result['message']
  if (isJsonObject(inner)) return read(inner)
  if (isJsonObject(result['status'])) return readTask(result, result['status'])
  if (Array.isArray(result['parts'])) return done(partsOf(result))
  return failed('the program replied with an object that has neither parts nor a status')
}

function readTask(task: JsonObject, status: JsonObject): EndEvent {
  const state = String(status['state']).toLowerCase().replace('task_state_', '').replaceAll('-', '_')
  const message = isJsonObject(status['message']) ? partsOf(status['message']) : []
  const artifacts = Array.isArray(task['artifacts']) ? task['artifacts'].filter(isJsonObject).flatMap(partsOf) : []
  if (state === 'failed' || state === 'canceled') {
    const text = textOf(message)
    return { type: 'failed', error: agentReason(text || `the program left its task as ${state}`) }
  }
  const finality = FINALITIES.find((known) => known === state)
  if (finality === undefined) return failed(`the program left its task as ${JSON.stringify(status['state'])}`)
  if (finality === 'completed') return done(artifacts.length > 0 ? artifacts : message)
  // A question, or why it refuses, is no result: it stands in the status of the task alone.
  return { type: 'done', parts: artifacts, finality, ...(message.length > 0 && { said: { parts: message } }) }
}

const FINALITIES: readonly Finality[] = ['completed', 'input_required', 'auth_required', 'rejected']

function partsOf({ parts }: JsonObject): Part[] {
  if (!Array.isArray(parts)) return []
  return parts.map((part: unknown, index) => readAgentPart(part, `parts[${index}]`))
}

const done = (parts: readonly Part[]): EndEvent => ({
  type: 'done',
  parts: parts.length === 0 ? [{ text: '' }] : parts,
  finality: 'completed',
})

const failed = (message: string, cause?: unknown): EndEvent => ({
  type: 'failed',
  error: new MoleculeError('unreadable_output', message, { cause }),
})
