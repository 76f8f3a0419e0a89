/**
 * Derives the status of a workspace on every read, so that no stored status can go stale. A workspace that the platform
 * runs is online while the platform is. A workspace that runs elsewhere is online while its heartbeats arrive, and
 * `degraded` when they arrive and its messages are not taken. Either is `degraded` while a limit of its model provider
 * holds its messages.
 */
import { formatDuration } from '../duration.ts'
import { SILENCE_MS_MAX, whyOffline } from '../inbox/offline.ts'
import type { WorkspaceStatus } from './workspace.ts'

/** A worker with a free slot takes a ready message within milliseconds. After this time the workspace is `degraded`. */
const UNCLAIMED_MS_MAX = 60_000
const ERROR_RATE_MAX = 0.5
/** States that a runtime reports when it is alive and cannot work. */
const DEGRADED_STATES: ReadonlySet<string> = new Set(['wedged', 'degraded', 'failed'])

/** The content of a heartbeat. */
export interface HeartbeatReport {
  readonly current_task?: string
  readonly active_tasks?: number
  readonly error_rate?: number
  /** `stopped` signs the workspace off: it is offline at once, unless another bridge of it is connected. */
  readonly runtime_state?: string
  readonly uptime_seconds?: number
  /** One sentence that says what is wrong; empty = nothing. */
  readonly problem?: string
  /** What does not work with the program of the agent, one sentence each. */
  readonly limits?: readonly string[]
}

export interface PresenceInput {
  readonly nowMs: number
  readonly stored: WorkspaceStatus
  readonly storedReason?: string | undefined
  readonly paused: boolean
  /** True when the platform's own runtime runs its turns. */
  readonly hosted: boolean
  readonly heardAtMs?: number | undefined
  /** Its last bridge signed off. */
  readonly hasSignedOff?: boolean
  readonly report?: HeartbeatReport | undefined
  /** Since when the oldest message is ready and not taken although a slot is free. */
  readonly readySinceMs?: number | undefined
  /** The stored status of the task whose parked message is tried next. */
  readonly parkedStatus?: string | undefined
  /** What is stored about the log-in of the agent (`logins.ts`). A bridge reports that of its own machine. */
  readonly loginState?: string | undefined
  /** How many of its turns wait for a permission. */
  readonly permissionsAsked?: number
}

export interface Presence {
  readonly status: WorkspaceStatus
  readonly statusReason?: string
}

export function presenceOf(input: PresenceInput): Presence {
  if (input.paused) return { status: 'paused', statusReason: 'messages are accepted and none is started' }
  if (input.stored === 'failed') return toPresence('failed', input.storedReason)
  const { heardAtMs, hasSignedOff, nowMs, hosted } = input
  const offlineReason = hosted ? undefined : whyOffline({ nowMs, heardAtMs, hasSignedOff })
  if (offlineReason !== undefined) return toPresence('offline', offlineReason)
  const loginProblem = loginProblemOf(input)
  if (loginProblem !== undefined && input.stored === 'online') return toPresence('needs_login', loginProblem)
  const silentMs = nowMs - (heardAtMs ?? nowMs)
  const degradedReason = silentMs > SILENCE_MS_MAX ? undefined : whyDegraded(input)
  return degradedReason === undefined
    ? toPresence(input.stored, input.storedReason ?? permissionReason(input))
    : toPresence('degraded', degradedReason)
}

/** The state that a bridge reports while its agent has no log-in. A platform that does not know it shows the problem. */
export const NEEDS_LOGIN_STATE = 'needs_login'

function loginProblemOf({ hosted, loginState, report }: PresenceInput): string | undefined {
  if (hosted) return loginState === undefined ? undefined : (JSON.parse(loginState) as { problem?: string }).problem
  return report?.runtime_state === NEEDS_LOGIN_STATE ? report.problem || 'its agent is not logged in' : undefined
}

/** Otherwise a workspace that does nothing until its owner answers would look like one that works. */
function permissionReason({ permissionsAsked = 0 }: PresenceInput): string | undefined {
  if (permissionsAsked === 0) return undefined
  const turns = permissionsAsked === 1 ? 'a turn waits' : `${permissionsAsked} turns wait`
  return `${turns} for your permission: see "molecule pending"`
}

function whyDegraded({ report, hosted, readySinceMs, nowMs, parkedStatus }: PresenceInput): string | undefined {
  // Before the report of a bridge, which knows the failure and not the next time.
  if (parkedStatus !== undefined) return `a message waits: ${sentenceOf(parkedStatus)}`
  const { error_rate: errorRate = 0, runtime_state: state = '', problem = '' } = report ?? {}
  if (problem !== '') return problem
  if (DEGRADED_STATES.has(state)) return `its runtime reports the state ${state}`
  if (errorRate >= ERROR_RATE_MAX) return `${Math.round(errorRate * 100)} % of its turns fail`
  const waitedMs = nowMs - (readySinceMs ?? nowMs)
  if (hosted || waitedMs <= UNCLAIMED_MS_MAX) return undefined
  return `it is alive and takes no messages: one has waited for ${formatDuration(Math.floor(waitedMs / 1000) * 1000)}`
}

/** The public sentence of a task's status, with the reason and the next time. Every reader of the workspace may see it. */
function sentenceOf(status: string): string {
  const { parts } = JSON.parse(status) as { readonly parts: readonly { readonly text?: string }[] }
  return (parts[0]?.text ?? '').replace(/^waiting: /, '')
}

const toPresence = (status: WorkspaceStatus, statusReason: string | undefined): Presence =>
  statusReason === undefined ? { status } : { status, statusReason }
