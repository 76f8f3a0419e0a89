/** What a workspace is, as the rest of the house sees it: an agent with an address. */
import type { Json } from '../protocol/a2a.ts'

export type WorkspaceStatus = 'provisioning' | 'online' | 'degraded' | 'offline' | 'paused' | 'failed'

export interface Workspace {
  readonly id: string
  readonly name: string
  readonly role: string
  /** The backend's name, or `external` for one that a bridge runs. */
  readonly runtime: string
  readonly model?: string
  readonly parentId?: string
  readonly tier: number
  readonly maxConcurrentTasks: number
  /** First try plus retries, before a message becomes a dead letter. */
  readonly maxAttempts: number
  readonly workingDir: string
  readonly runtimeConfig: Readonly<Record<string, Json>>
  readonly status: WorkspaceStatus
  readonly statusReason?: string
  readonly createdAtMs: number
}

/** What `POST /workspaces` may say; everything but the name has a default. */
export interface NewWorkspace {
  readonly name: string
  readonly role?: string
  readonly runtime?: string
  readonly model?: string
  readonly parentId?: string
  readonly tier?: number
  readonly maxConcurrentTasks?: number
  readonly maxAttempts?: number
  readonly workingDir?: string
  readonly runtimeConfig?: Readonly<Record<string, Json>>
}

/** Live numbers of a workspace, read from the inbox's own counters. */
export interface WorkspaceLoad {
  readonly queueDepth: number
  readonly running: number
  /** What it is working on: the message's text, or how many turns run; undefined when idle. */
  readonly currentTask?: string
}

/**
 * Contract: `create` provisions the folder, records the workspace and answers when it is online, or `failed` with the
 * reason; input that cannot be a workspace is refused with `invalid_request` before anything is made.
 */
export interface Workspaces {
  create(input: NewWorkspace): Promise<Workspace>
  get(id: string): Promise<(Workspace & WorkspaceLoad) | undefined>
  list(): Promise<(Workspace & WorkspaceLoad)[]>
}
