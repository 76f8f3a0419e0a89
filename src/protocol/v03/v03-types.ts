/**
 * The types of A2A 0.3, for callers that still use it. `v03.ts` and `v03-part.ts` translate them to 1.0; no other code
 * uses them, except the edges of the doors.
 */
import type { Json, Metadata } from '../a2a.ts'

export interface V03TextPart {
  readonly kind: 'text'
  readonly text: string
  readonly metadata?: Metadata
}

interface V03FileName {
  readonly mimeType?: string
  readonly name?: string
}

/** Either `bytes` (base64) or `uri`. */
export type V03File =
  | (V03FileName & { readonly bytes: string; readonly uri?: never })
  | (V03FileName & { readonly uri: string; readonly bytes?: never })

export interface V03FilePart {
  readonly kind: 'file'
  readonly file: V03File
  readonly metadata?: Metadata
}

export interface V03DataPart {
  readonly kind: 'data'
  readonly data: { readonly [key: string]: Json }
  readonly metadata?: Metadata
}

export type V03Part = V03TextPart | V03FilePart | V03DataPart

export type V03Role = 'user' | 'agent'

export interface V03Message {
  readonly kind: 'message'
  readonly messageId: string
  readonly contextId?: string
  readonly taskId?: string
  readonly role: V03Role
  readonly parts: readonly V03Part[]
  readonly metadata?: Metadata
  readonly extensions?: readonly string[]
  readonly referenceTaskIds?: readonly string[]
}

export type V03TaskState =
  | 'submitted'
  | 'working'
  | 'completed'
  | 'failed'
  | 'canceled'
  | 'input-required'
  | 'rejected'
  | 'auth-required'
  | 'unknown'

export interface V03TaskStatus {
  readonly state: V03TaskState
  readonly message?: V03Message
  readonly timestamp?: string
}

export interface V03Artifact {
  readonly artifactId: string
  readonly name?: string
  readonly description?: string
  readonly parts: readonly V03Part[]
  readonly metadata?: Metadata
  readonly extensions?: readonly string[]
}

export interface V03Task {
  readonly kind: 'task'
  readonly id: string
  readonly contextId: string
  readonly status: V03TaskStatus
  readonly artifacts?: readonly V03Artifact[]
  readonly history?: readonly V03Message[]
  readonly metadata?: Metadata
}

export interface V03StatusUpdate {
  readonly kind: 'status-update'
  readonly taskId: string
  readonly contextId: string
  readonly status: V03TaskStatus
  /** The stream ends after this event. */
  readonly final: boolean
  readonly metadata?: Metadata
}

export interface V03ArtifactUpdate {
  readonly kind: 'artifact-update'
  readonly taskId: string
  readonly contextId: string
  readonly artifact: V03Artifact
  readonly append?: boolean
  readonly lastChunk?: boolean
  readonly metadata?: Metadata
}

/** One event of a stream; the answer to a send is one of the first two. */
export type V03Event = V03Task | V03Message | V03StatusUpdate | V03ArtifactUpdate

export interface V03PushConfig {
  readonly id?: string
  readonly url: string
  readonly token?: string
  readonly authentication?: { readonly schemes: readonly string[]; readonly credentials?: string }
}

export interface V03TaskPushConfig {
  readonly taskId: string
  readonly pushNotificationConfig: V03PushConfig
}
