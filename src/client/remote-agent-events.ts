/**
 * Reads the answers of a remote agent, 1.0 or 0.3, into 1.0 types. Missing fields are accepted, because protocol
 * buffers leave out empty ones; ids, states and parts are checked.
 * Invariant: the result has the shape of its type, whatever the agent sent.
 */
import { MoleculeError } from '../errors.ts'
import {
  type Artifact,
  type Message,
  type Metadata,
  type Part,
  type StreamResponse,
  TASK_STATES,
  type Task,
  type TaskState,
  type TaskStatus,
} from '../protocol/a2a.ts'
import { shownFileName } from '../protocol/file-name.ts'
import { isJsonObject, type JsonObject, stringOf } from '../protocol/json.ts'
import { readAgentPart } from '../protocol/part.ts'

/** The answer to a send, or one event of a stream. 0.3 has a `kind`; 1.0 has one member with the event's name. */
export function readRemoteEvent(value: unknown): StreamResponse {
  const event = requireObject(value, 'the answer')
  if (event['kind'] === 'task' || 'task' in event) return { task: readRemoteTask(event['task'] ?? event) }
  if (event['kind'] === 'message' || 'message' in event) return { message: readMessage(event['message'] ?? event) }
  if (event['kind'] === 'status-update' || 'statusUpdate' in event) {
    const update = requireObject(event['statusUpdate'] ?? event, 'the status update')
    return { statusUpdate: { ...idsOf(update), status: readStatus(update['status']), ...metadataOf(update) } }
  }
  if (event['kind'] === 'artifact-update' || 'artifactUpdate' in event) {
    const update = requireObject(event['artifactUpdate'] ?? event, 'the artifact update')
    const chunk = { append: update['append'] === true, lastChunk: update['lastChunk'] === true }
    const artifact = readArtifact(update['artifact'])
    return { artifactUpdate: { ...idsOf(update), artifact, ...chunk, ...metadataOf(update) } }
  }
  throw notA2a('it is no task, message or update')
}

export function readRemoteTask(value: unknown): Task {
  const task = requireObject(value, 'the task')
  if (typeof task['id'] !== 'string' || task['id'] === '') throw notA2a('the task has no id')
  const artifacts = listOrEmpty(task['artifacts']).map(readArtifact)
  const history = listOrEmpty(task['history']).map(readMessage)
  return {
    id: task['id'],
    contextId: stringOf(task['contextId']),
    status: readStatus(task['status']),
    ...(artifacts.length > 0 && { artifacts }),
    ...(history.length > 0 && { history }),
    ...metadataOf(task),
  }
}

function readStatus(value: unknown): TaskStatus {
  const status = requireObject(value, 'the status')
  const { message, timestamp } = status
  return {
    state: readState(status['state']),
    ...(isJsonObject(message) && { message: readMessage(message) }),
    ...(typeof timestamp === 'string' && { timestamp }),
  }
}

/** `input-required` is TASK_STATE_INPUT_REQUIRED. An unknown state counts as working, because it may not be final. */
function readState(value: unknown): TaskState {
  const name = `TASK_STATE_${stringOf(value).toUpperCase().replaceAll('-', '_').replace('TASK_STATE_', '')}`
  return TASK_STATES.find((state) => state === name) ?? 'TASK_STATE_WORKING'
}

function readMessage(value: unknown): Message {
  const message = requireObject(value, 'the message')
  const { contextId, taskId } = message
  const extensions = stringsOf(message['extensions'])
  const referenceTaskIds = stringsOf(message['referenceTaskIds'])
  return {
    messageId: stringOf(message['messageId']),
    role: message['role'] === 'user' || message['role'] === 'ROLE_USER' ? 'ROLE_USER' : 'ROLE_AGENT',
    parts: readParts(message['parts']),
    ...(stringOf(contextId) !== '' && { contextId: stringOf(contextId) }),
    ...(stringOf(taskId) !== '' && { taskId: stringOf(taskId) }),
    ...(extensions.length > 0 && { extensions }),
    ...(referenceTaskIds.length > 0 && { referenceTaskIds }),
    ...metadataOf(message),
  }
}

function readArtifact(value: unknown): Artifact {
  const artifact = requireObject(value, 'the artifact')
  const { name, description } = artifact
  const extensions = stringsOf(artifact['extensions'])
  return {
    artifactId: stringOf(artifact['artifactId']),
    parts: readParts(artifact['parts']),
    ...(stringOf(name) !== '' && { name: shownFileName(stringOf(name)) }),
    ...(stringOf(description) !== '' && { description: stringOf(description) }),
    ...(extensions.length > 0 && { extensions }),
    ...metadataOf(artifact),
  }
}

/** Empty names count as absent, because protocol buffers cannot tell the two apart. */
function readParts(value: unknown): Part[] {
  return listOrEmpty(value).map((item, index) => {
    try {
      const { mediaType, filename, ...part } = readAgentPart(item, `parts[${index}]`)
      return { ...part, ...(mediaType ? { mediaType } : {}), ...(filename ? { filename } : {}) }
    } catch (cause) {
      throw notA2a((cause as Error).message, cause)
    }
  })
}

const idsOf = (update: JsonObject) => ({
  taskId: stringOf(update['taskId']),
  contextId: stringOf(update['contextId']),
})

function metadataOf({ metadata }: JsonObject): { metadata?: Metadata } {
  return isJsonObject(metadata) && Object.keys(metadata).length > 0 ? { metadata: metadata as Metadata } : {}
}

const listOrEmpty = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const stringsOf = (value: unknown): string[] => listOrEmpty(value).filter((item) => typeof item === 'string')

function requireObject(value: unknown, what: string): JsonObject {
  if (isJsonObject(value)) return value
  throw notA2a(`${what} is not an object`)
}

function notA2a(problem: string, cause?: unknown): MoleculeError {
  return new MoleculeError('agent_failed', `the remote agent's answer is not A2A: ${problem}`, { cause })
}
