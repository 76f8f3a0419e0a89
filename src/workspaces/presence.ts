/**
 * Derives the status of a workspace on every read, so that no stored status can go stale. A workspace that the platform
 * runs is online while the platform is. A workspace that runs elsewhere is online while its heartbeats arrive, and
 * `degraded` when they arrive and its messages are not taken.
 */
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
  /** How many of its turns wait for a permission. */
  readonly permissionsAsked?: number
}

export interface Presence {
  readonly status: WorkspaceStatus
  readonly statusReason?: string
}

export function presenceOf(input: PresenceInput): Presence {
  if (input.paused) return { status: 'paused', statusReason: 'paused: messages are accepted and none is started' }
  if (input.stored === 'failed') return toPresence('failed', input.storedReason)
  const { heardAtMs, hasSignedOff, nowMs, hosted } = input
  const offlineReason = hosted ? undefined : whyOffline({ nowMs, heardAtMs, hasSignedOff })
  if (offlineReason !== undefined) return toPresence('offline', offlineReason)
  const silentMs = nowMs - (heardAtMs ?? nowMs)
  const degradedReason = silentMs > SILENCE_MS_MAX ? undefined : whyDegraded(input)
  return degradedReason === undefined
    ? toPresence(input.stored, input.storedReason ?? permissionReason(input))
    : toPresence('degraded', degradedReason)
}

/** Otherwise a workspace that does nothing until its owner answers would look like one that works. */
function permissionReason({ permissionsAsked = 0 }: PresenceInput): string | undefined {
  if (permissionsAsked === 0) return undefined
  const turns = permissionsAsked === 1 ? 'a turn waits' : `${permissionsAsked} turns wait`
  return `${turns} for your permission: see "molecule pending"`
}

function whyDegraded({ report, hosted, readySinceMs, nowMs }: PresenceInput): string | undefined {
  const { error_rate: errorRate = 0, runtime_state: state = '', problem = '' } = report ?? {}
  if (problem !== '') return problem
  if (DEGRADED_STATES.has(state)) return `its runtime reports the state ${state}`
  if (errorRate >= ERROR_RATE_MAX) return `${Math.round(errorRate * 100)} % of its turns fail`
  const waitedMs = nowMs - (readySinceMs ?? nowMs)
  if (hosted || waitedMs <= UNCLAIMED_MS_MAX) return undefined
  return `it is alive and takes no messages: one has waited for ${Math.floor(waitedMs / 1000)} s`
}

const toPresence = (status: WorkspaceStatus, statusReason: string | undefined): Presence =>
  statusReason === undefined ? { status } : { status, statusReason }
