/** The types of a workspace (an agent with an address), for the other layers. */
import type { Json } from '../protocol/a2a.ts'

/** What an agent may do without asking its owner. */
export type Permission = 'ask' | 'allowed_tools' | 'bypass'

/** Limits of what an owner may write, in `config.yaml` and over HTTP alike; more is refused. */
export const NAME_CHARACTERS_MAX = 100
export const ROLE_CHARACTERS_MAX = 2000
export const SHORT_TEXT_CHARACTERS_MAX = 200
/** Stands in place of a secret in a view of `runtime_config`. */
export const HIDDEN_SECRET = '[hidden]'
export const ATTEMPTS_MAX = 100
export const SLOTS_MAX = 1000
/** `max_turns_per_hour` without a setting. */
export const TURNS_PER_HOUR_DEFAULT = 60

export const DEFAULT_TIER = 2
/** Tier 1 means a sandbox. It is refused, because a workspace that says "sandboxed" and is not deceives its owner. */
export const SANDBOX_TIER = 1
export const NO_SANDBOX_REASON =
  'tier 1 means a sandbox, and this version has none. Tier 2 runs the agent without a sandbox, with the rights of the user who runs the platform'

/**
 * Prevents a name that looks like another one, forges a line of a log or a prompt, or cannot be stored: no control
 * characters (line breaks and NUL among them), no line separators, no bidirectional controls.
 */
export const isPlainLine = (text: string): boolean =>
  !/[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.test(text)
export const PLAIN_LINE_REASON = 'must be one line without control characters and without bidirectional controls'

/**
 * A model called `--yolo` would be an option of the agent's program. No part may begin with a dash, because some programs
 * get the name without its provider: `openai/--yolo`.
 */
export const isModelName = (text: string): boolean => text.split('/').every((part) => !part.trim().startsWith('-'))
export const MODEL_NAME_REASON = 'must not begin with a dash, also not after a slash'

/** `needs_login`: the agent's CLI has no log-in that its model provider accepts; the reason names the command to run. */
export type WorkspaceStatus = 'provisioning' | 'online' | 'needs_login' | 'degraded' | 'offline' | 'paused' | 'failed'

export interface StatusText {
  readonly text: string
  readonly atMs: number
}

export interface Workspace {
  readonly id: string
  readonly name: string
  readonly role: string
  /** The backend's name, or `external` when a bridge runs the agent. */
  readonly runtime: string
  readonly model?: string
  readonly parentId?: string
  readonly tier: number
  readonly maxConcurrentTasks: number
  /** First attempt plus retries. A message that fails this often becomes a dead letter. */
  readonly maxAttempts: number
  readonly workingDir: string
  readonly permission?: Permission
  /** The team whose file made the workspace (`molecule apply`). Only that team may prune it. */
  readonly team?: string
  readonly runtimeConfig: Readonly<Record<string, Json>>
  /** What the agent says it is doing. */
  readonly statusText?: StatusText
  readonly status: WorkspaceStatus
  readonly statusReason?: string
  /** It works, and could do more: one sentence for each thing that does not work with the program of its agent. */
  readonly limits?: readonly string[]
  readonly createdAtMs: number
}

/** True when a bridge runs the agent elsewhere: the platform only keeps its messages and leases them out. */
export const isExternal = ({ runtime }: { readonly runtime: string }): boolean => runtime === 'external'

/** Whether the backend of a workspace can run on this machine, with the reason when it cannot. */
export type BackendCheck = ({ readonly ok: true } | { readonly ok: false; readonly reason: string }) & {
  /** What does not work with the program that was found. */
  readonly limits?: readonly string[]
  /** For the owner: settings that have no effect. */
  readonly warnings?: readonly string[]
}

/** A new workspace, and what its owner should know about the settings. */
export interface CreatedWorkspace extends Workspace {
  readonly warnings: readonly string[]
}

/** The bridge that a brief is made for. It works in its own folder, and its sessions live on its own machine. */
export interface BriefedBridge {
  readonly host: string
  /** The backend that it runs, if it names one. Its turns then get the history and the turn limit of that backend. */
  readonly backend?: string | undefined
}

/** The input of `POST /workspaces`. Everything but the name has a default. */
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
  readonly team?: string
  /** A folder in `<data-dir>/templates` that is copied. */
  readonly template?: string
  /** False refuses a name that another workspace has. */
  readonly allowDuplicate?: boolean
  readonly runtimeConfig?: Readonly<Record<string, Json>>
}

/** Live numbers of a workspace, from the counters of the inbox. */
export interface WorkspaceLoad {
  readonly queueDepth: number
  readonly running: number
  /** The text of the running message, or the number of running turns; undefined when idle. */
  readonly currentTask?: string
  /** When the oldest running turn began. */
  readonly currentSinceMs?: number
  /** How many of its turns wait for a permission. */
  readonly permissionsAsked?: number
}

/** The input of `PATCH`. Null removes a value. The keys of `runtimeConfig` are merged into the stored ones. */
export interface WorkspaceChange {
  readonly name?: string
  /** False refuses a name that another workspace has. */
  readonly allowDuplicate?: boolean
  readonly role?: string
  readonly runtime?: string
  readonly model?: string | null
  readonly parentId?: string | null
  readonly tier?: number
  readonly maxConcurrentTasks?: number
  readonly maxAttempts?: number
  readonly workingDir?: string
  readonly permission?: Permission | null
  readonly runtimeConfig?: Readonly<Record<string, Json>>
}

export interface WorkspaceQuery {
  /** The last workspace of the page before. */
  readonly after?: string
  readonly limit: number
}

export interface WorkspacePage {
  readonly workspaces: readonly (Workspace & WorkspaceLoad)[]
  /** The `after` of the next page; absent on the last one. */
  readonly next?: string
}

/** Workspaces of one name that a lookup returns; the message about an ambiguous name lists them. */
export const NAMESAKES_MAX = 20

/**
 * Contract: `create` makes the folder, stores the workspace and resolves when it is online, or `failed` with the
 * reason. Invalid input is refused with `invalid_request` before anything is made.
 */
export interface Workspaces {
  create(input: NewWorkspace): Promise<CreatedWorkspace>
  /** Refuses what `create` would refuse, and makes nothing. */
  check(input: NewWorkspace): Promise<BackendCheck>
  get(id: string): Promise<(Workspace & WorkspaceLoad) | undefined>
  /** The ids of the workspaces with this name, the oldest first, and at most `NAMESAKES_MAX`. */
  idsNamed(name: string): Promise<readonly string[]>
  /** In the order of their ids. A page ends at `limit` workspaces or at 1 MiB, and has at least one. */
  list(query: WorkspaceQuery): Promise<WorkspacePage>
  /** Every workspace, read page by page: other callers run between two pages. */
  all(): Promise<(Workspace & WorkspaceLoad)[]>
}

/**
 * Changes to an existing workspace. Contract: each method throws `not_found` for an unknown workspace and resolves when
 * the change is durable. `remove` ends all messages with a reason and is final: the id is never used again. A paused
 * workspace accepts messages and starts none; `now` also stops the running turns, whose messages run again after the
 * pause. `stop` pauses too, and cancels the tasks of the running turns: they never run again.
 */
export interface WorkspaceLifecycle {
  change(id: string, change: WorkspaceChange): Promise<Workspace & WorkspaceLoad>
  /** Refuses what `change` would refuse, except a parent that makes a cycle, and changes nothing. */
  checkChange(id: string, change: WorkspaceChange): Promise<BackendCheck>
  /** Returns the removed ids, children first. */
  remove(id: string, options: { readonly cascade: boolean }): Promise<string[]>
  restart(id: string): Promise<Workspace & WorkspaceLoad>
  pause(id: string, options: { readonly now: boolean }): Promise<Workspace & WorkspaceLoad>
  /** Also returns the ids of the cancelled tasks. */
  stop(id: string): Promise<{ readonly workspace: Workspace & WorkspaceLoad; readonly canceled: readonly string[] }>
  resume(id: string): Promise<Workspace & WorkspaceLoad>
}
