/**
 * The types of A2A 1.0, which are also our own: messages and tasks are stored and passed on in this form. Only `v03.ts`
 * knows the form of 0.3.
 */

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }
export type Metadata = { readonly [key: string]: Json }

/** Exactly one of text, raw (base64), url, data. */
export interface Part {
  readonly text?: string
  readonly raw?: string
  readonly url?: string
  readonly data?: Json
  readonly mediaType?: string
  readonly filename?: string
  readonly metadata?: Metadata
}

export type Role = 'ROLE_USER' | 'ROLE_AGENT'

export interface Message {
  readonly messageId: string
  readonly contextId?: string
  readonly taskId?: string
  readonly role: Role
  readonly parts: readonly Part[]
  readonly metadata?: Metadata
  readonly extensions?: readonly string[]
  readonly referenceTaskIds?: readonly string[]
}

/** The content of a status or a reply, without ids and role. */
export type MessageContent = Pick<Message, 'parts' | 'metadata'>

export const TASK_STATES = [
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_AUTH_REQUIRED',
] as const

export type TaskState = (typeof TASK_STATES)[number]

export interface TaskStatus {
  readonly state: TaskState
  readonly message?: Message
  /** ISO 8601. */
  readonly timestamp?: string
}

export interface Artifact {
  readonly artifactId: string
  readonly name?: string
  readonly description?: string
  readonly parts: readonly Part[]
  readonly metadata?: Metadata
  readonly extensions?: readonly string[]
}

export interface Task {
  readonly id: string
  readonly contextId: string
  readonly status: TaskStatus
  readonly artifacts?: readonly Artifact[]
  readonly history?: readonly Message[]
  readonly metadata?: Metadata
}

export interface TaskStatusUpdate {
  readonly taskId: string
  readonly contextId: string
  readonly status: TaskStatus
  readonly metadata?: Metadata
}

export interface TaskArtifactUpdate {
  readonly taskId: string
  readonly contextId: string
  readonly artifact: Artifact
  readonly append?: boolean
  readonly lastChunk?: boolean
  readonly metadata?: Metadata
}

/** One event of a stream, and the answer to a send: exactly one member. */
export interface StreamResponse {
  readonly task?: Task
  readonly message?: Message
  readonly statusUpdate?: TaskStatusUpdate
  readonly artifactUpdate?: TaskArtifactUpdate
}

const FINAL_STATES: ReadonlySet<TaskState> = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
])

/** For people: `TASK_STATE_INPUT_REQUIRED` becomes `input required`. */
export const taskStateText = (state: string): string =>
  state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', ' ')

const END_TEXTS: Partial<Readonly<Record<TaskState, string>>> = {
  TASK_STATE_FAILED: 'the task failed',
  TASK_STATE_CANCELED: 'the task was cancelled',
  TASK_STATE_REJECTED: 'the task was rejected',
  TASK_STATE_INPUT_REQUIRED: 'the agent asks',
  TASK_STATE_AUTH_REQUIRED: 'the agent needs a permission or a log-in',
}

/** Why a task gave no answer: `the task failed: the agent's program is missing`. */
export function taskEndText(state: TaskState, reason: string): string {
  const end = END_TEXTS[state] ?? `the task is ${taskStateText(state)}`
  return reason === '' ? end : `${end}: ${reason}`
}

/** A task in a final state never changes again. */
export const isFinal = (state: TaskState): boolean => FINAL_STATES.has(state)

/** The task waits for its caller: a blocking call returns, a stream ends, and a new message continues it. */
export const isInterrupted = (state: TaskState): boolean =>
  state === 'TASK_STATE_INPUT_REQUIRED' || state === 'TASK_STATE_AUTH_REQUIRED'
