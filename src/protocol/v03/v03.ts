/**
 * Translates messages, tasks and stream events between A2A 1.0 and 0.3. Doors and the A2A client call it at the edge;
 * inside, everything is 1.0.
 * Invariant: a round trip loses nothing, except two things of 0.3 that 1.0 does not have: the state `unknown`, and a
 * `final` that contradicts its state.
 */
import {
  type Artifact,
  isFinal,
  isInterrupted,
  type Message,
  type Role,
  type StreamResponse,
  type Task,
  type TaskArtifactUpdate,
  type TaskState,
  type TaskStatus,
  type TaskStatusUpdate,
} from '../a2a.ts'
import { partFromV03, partToV03 } from './v03-part.ts'
import type {
  V03Artifact,
  V03ArtifactUpdate,
  V03Event,
  V03Message,
  V03Role,
  V03StatusUpdate,
  V03Task,
  V03TaskState,
  V03TaskStatus,
} from './v03-types.ts'

export function messageToV03(message: Message): V03Message {
  return { ...message, kind: 'message', role: ROLE_TO_V03[message.role], parts: message.parts.map(partToV03) }
}

export function messageFromV03(message: V03Message): Message {
  const { kind: _kind, ...rest } = message
  return { ...rest, role: roleFromV03(message.role), parts: message.parts.map(partFromV03) }
}

export function taskToV03(task: Task): V03Task {
  const { status, artifacts, history, ...rest } = task
  return {
    ...rest,
    kind: 'task',
    status: statusToV03(status),
    ...(artifacts === undefined ? {} : { artifacts: artifacts.map(artifactToV03) }),
    ...(history === undefined ? {} : { history: history.map(messageToV03) }),
  }
}

export function taskFromV03(task: V03Task): Task {
  const { kind: _kind, status, artifacts, history, ...rest } = task
  return {
    ...rest,
    status: statusFromV03(status),
    ...(artifacts === undefined ? {} : { artifacts: artifacts.map(artifactFromV03) }),
    ...(history === undefined ? {} : { history: history.map(messageFromV03) }),
  }
}

/** One event of a stream, or the answer to a send. `untilFinal`: the stream goes on while the task waits for its caller. */
export function eventToV03(event: StreamResponse, { untilFinal = false } = {}): V03Event {
  if (event.task !== undefined) return taskToV03(event.task)
  if (event.message !== undefined) return messageToV03(event.message)
  if (event.statusUpdate !== undefined) return statusUpdateToV03(event.statusUpdate, untilFinal)
  return artifactUpdateToV03(event.artifactUpdate as TaskArtifactUpdate)
}

export function eventFromV03(event: V03Event): StreamResponse {
  switch (event.kind) {
    case 'task':
      return { task: taskFromV03(event) }
    case 'message':
      return { message: messageFromV03(event) }
    case 'status-update': {
      const { kind: _kind, final: _final, ...rest } = event
      return { statusUpdate: { ...rest, status: statusFromV03(event.status) } }
    }
    case 'artifact-update': {
      const { kind: _kind, ...rest } = event
      return { artifactUpdate: { ...rest, artifact: artifactFromV03(event.artifact) } }
    }
  }
}

function artifactToV03(artifact: Artifact): V03Artifact {
  return { ...artifact, parts: artifact.parts.map(partToV03) }
}

function artifactFromV03(artifact: V03Artifact): Artifact {
  return { ...artifact, parts: artifact.parts.map(partFromV03) }
}

function statusToV03(status: TaskStatus): V03TaskStatus {
  const { message, ...rest } = status
  const state = STATE_TO_V03[status.state]
  return message === undefined ? { ...rest, state } : { ...rest, state, message: messageToV03(message) }
}

function statusFromV03(status: V03TaskStatus): TaskStatus {
  const { message, ...rest } = status
  const state = STATE_FROM_V03[status.state]
  return message === undefined ? { ...rest, state } : { ...rest, state, message: messageFromV03(message) }
}

/** `final` closes a 0.3 stream. So it is also true when the task waits for its caller, unless the stream then goes on. */
function statusUpdateToV03(update: TaskStatusUpdate, untilFinal: boolean): V03StatusUpdate {
  const { state } = update.status
  const final = isFinal(state) || (!untilFinal && isInterrupted(state))
  return { ...update, kind: 'status-update', status: statusToV03(update.status), final }
}

function artifactUpdateToV03(update: TaskArtifactUpdate): V03ArtifactUpdate {
  return { ...update, kind: 'artifact-update', artifact: artifactToV03(update.artifact) }
}

const roleFromV03 = (role: V03Role): Role => (role === 'user' ? 'ROLE_USER' : 'ROLE_AGENT')

const ROLE_TO_V03: Readonly<Record<Role, V03Role>> = { ROLE_USER: 'user', ROLE_AGENT: 'agent' }

const STATE_TO_V03: Readonly<Record<TaskState, V03TaskState>> = {
  TASK_STATE_SUBMITTED: 'submitted',
  TASK_STATE_WORKING: 'working',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_CANCELED: 'canceled',
  TASK_STATE_INPUT_REQUIRED: 'input-required',
  TASK_STATE_REJECTED: 'rejected',
  TASK_STATE_AUTH_REQUIRED: 'auth-required',
}

const STATE_FROM_V03: Readonly<Record<V03TaskState, TaskState>> = {
  submitted: 'TASK_STATE_SUBMITTED',
  working: 'TASK_STATE_WORKING',
  completed: 'TASK_STATE_COMPLETED',
  failed: 'TASK_STATE_FAILED',
  canceled: 'TASK_STATE_CANCELED',
  'input-required': 'TASK_STATE_INPUT_REQUIRED',
  rejected: 'TASK_STATE_REJECTED',
  'auth-required': 'TASK_STATE_AUTH_REQUIRED',
  // Not known to have ended: a final state here would close a task on a guess.
  unknown: 'TASK_STATE_WORKING',
}
