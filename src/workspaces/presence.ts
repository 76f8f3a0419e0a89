/**
 * Whether a workspace is there. Derived whenever it is read, from what is stored, so that it cannot go stale: a
 * workspace that the platform runs is there while the platform is; one that runs elsewhere is there as long as it is
 * heard of, and whoever is heard of but leaves its mail lying is `degraded`.
 */
import type { WorkspaceStatus } from './workspace.ts'

/** Three heartbeats missed, at one in 30 s. */
export const SILENCE_MS_MAX = 90_000
/** A consumer with a free slot takes ready mail within milliseconds; this long means that it does not. */
const UNCLAIMED_MS_MAX = 60_000
const ERROR_RATE_MAX = 0.5
/** What a runtime says of itself when it lives and cannot work. */
const DEGRADED_STATES: ReadonlySet<string> = new Set(['wedged', 'degraded', 'failed'])

/** What the last heartbeat said. */
export interface HeartbeatReport {
  readonly current_task?: string
  readonly active_tasks?: number
  readonly error_rate?: number
  readonly runtime_state?: string
  readonly uptime_seconds?: number
  /** What is wrong with it, in a sentence; empty = nothing. */
  readonly problem?: string
}

export interface PresenceInput {
  readonly nowMs: number
  readonly stored: WorkspaceStatus
  readonly storedReason?: string | undefined
  readonly paused: boolean
  /** The platform's own runtime works for it. */
  readonly hosted: boolean
  readonly heardAtMs?: number | undefined
  readonly report?: HeartbeatReport | undefined
  /** Since when its oldest message is ready and not taken though a slot is free. */
  readonly readySinceMs?: number | undefined
}

export interface Presence {
  readonly status: WorkspaceStatus
  readonly statusReason?: string
}

export function presenceOf(input: PresenceInput): Presence {
  if (input.paused) return { status: 'paused', statusReason: 'paused: messages are kept and none is begun' }
  if (input.stored === 'failed') return toPresence('failed', input.storedReason)
  const { heardAtMs, nowMs, hosted } = input
  if (!hosted && heardAtMs === undefined) return toPresence('offline', 'it has never connected')
  const silentMs = nowMs - (heardAtMs ?? nowMs)
  if (!hosted && silentMs > SILENCE_MS_MAX) {
    return toPresence('offline', `nothing was heard of it for ${Math.floor(silentMs / 1000)} s`)
  }
  const degradedReason = silentMs > SILENCE_MS_MAX ? undefined : whyDegraded(input)
  return degradedReason === undefined
    ? toPresence(input.stored, input.storedReason)
    : toPresence('degraded', degradedReason)
}

function whyDegraded({ report, hosted, readySinceMs, nowMs }: PresenceInput): string | undefined {
  const { error_rate: errorRate = 0, runtime_state: state = '', problem = '' } = report ?? {}
  if (problem !== '') return problem
  if (DEGRADED_STATES.has(state)) return `its runtime says that it is ${state}`
  if (errorRate >= ERROR_RATE_MAX) return `${Math.round(errorRate * 100)} % of its turns fail`
  const waitedMs = nowMs - (readySinceMs ?? nowMs)
  if (hosted || waitedMs <= UNCLAIMED_MS_MAX) return undefined
  return `it is alive and takes no mail: a message has waited for ${Math.floor(waitedMs / 1000)} s`
}

const toPresence = (status: WorkspaceStatus, statusReason: string | undefined): Presence =>
  statusReason === undefined ? { status } : { status, statusReason }
