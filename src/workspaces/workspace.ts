/** What a workspace is, as the rest of the house sees it: an agent with an address. */
import type { Json } from '../protocol/a2a.ts'

/** What an agent may do without asking. */
export type Permission = 'ask' | 'allowed_tools' | 'bypass'

/** Limits of what an owner may write, in `config.yaml` and over HTTP alike; more is refused. */
export const NAME_CHARACTERS_MAX = 100
export const ROLE_CHARACTERS_MAX = 2000
export const SHORT_TEXT_CHARACTERS_MAX = 200
export const ATTEMPTS_MAX = 100
export const SLOTS_MAX = 1000

export type WorkspaceStatus = 'provisioning' | 'online' | 'degraded' | 'offline' | 'paused' | 'failed'

export interface StatusText {
  readonly text: string
  readonly atMs: number
}

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
  readonly permission?: Permission
  readonly runtimeConfig: Readonly<Record<string, Json>>
  /** What it says it is doing, in its own words. */
  readonly statusText?: StatusText
  readonly status: WorkspaceStatus
  readonly statusReason?: string
  readonly createdAtMs: number
}

/** A bridge runs it, somewhere else: the platform keeps its mail and hands it out. */
export const isExternal = ({ runtime }: { readonly runtime: string }): boolean => runtime === 'external'

/** Whether the backend of a workspace can run on this machine, with the reason when it cannot. */
export type BackendCheck = { readonly ok: true } | { readonly ok: false; readonly reason: string }

/** The bridge that a brief is made for. It works in its own folder, and its sessions live on its own machine. */
export interface BriefedBridge {
  readonly host: string
  /** The backend that it runs, if it names one. Its turns then get the history and the turn limit of that backend. */
  readonly backend?: string | undefined
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
  readonly permission?: Permission
  /** A folder of `<data-dir>/templates` to start from. */
  readonly template?: string
  readonly runtimeConfig?: Readonly<Record<string, Json>>
}

/** Live numbers of a workspace, read from the inbox's own counters. */
export interface WorkspaceLoad {
  readonly queueDepth: number
  readonly running: number
  /** What it is working on: the message's text, or how many turns run; undefined when idle. */
  readonly currentTask?: string
}

/** What `PATCH` may say; null takes a value away. Keys of `runtimeConfig` are merged into those that are there. */
export interface WorkspaceChange {
  readonly name?: string
  readonly role?: string
  readonly runtime?: string
  readonly model?: string | null
  readonly parentId?: string | null
  readonly tier?: number
  readonly maxConcurrentTasks?: number
  readonly maxAttempts?: number
  readonly workingDir?: string
  readonly permission?: Permission
  readonly runtimeConfig?: Readonly<Record<string, Json>>
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

/**
 * What becomes of a workspace after it was made. Contract: each throws `not_found` for one that is not there, and
 * answers when the change is durable. `remove` ends all its messages with a reason and is final: the id is never used
 * again. A paused workspace takes messages and begins none; `now` also stops the turns that run.
 */
export interface WorkspaceLifecycle {
  change(id: string, change: WorkspaceChange): Promise<Workspace & WorkspaceLoad>
  /** Gives the ids that went, the workspace's own last. */
  remove(id: string, options: { readonly cascade: boolean }): Promise<string[]>
  restart(id: string): Promise<Workspace & WorkspaceLoad>
  pause(id: string, options: { readonly now: boolean }): Promise<Workspace & WorkspaceLoad>
  resume(id: string): Promise<Workspace & WorkspaceLoad>
}
