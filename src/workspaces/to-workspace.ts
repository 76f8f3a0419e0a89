/** Makes a workspace of its row: settings, presence, and what it works on. The statements are in `workspace-rows.ts`. */

import { SILENCE_MS_MAX } from '../inbox/offline.ts'
import { restoreEnvelope } from '../protocol/envelope.ts'
import { textOf } from '../protocol/part.ts'
import { truncate } from '../truncate.ts'
import { type HeartbeatReport, presenceOf } from './presence.ts'
import type { Workspace, WorkspaceLoad, WorkspaceStatus } from './workspace.ts'

/** Stored as one JSON column: always read whole, never searched. */
export interface WorkspaceSettings extends StoredWorkspaceFields {
  /** Of the last `config.yaml` that the platform wrote or read. Missing in rows of earlier versions. */
  readonly configHash?: string
}

type StoredWorkspaceFields = Pick<
  Workspace,
  | 'model'
  | 'parentId'
  | 'tier'
  | 'permission'
  | 'team'
  | 'maxConcurrentTasks'
  | 'maxAttempts'
  | 'workingDir'
  | 'runtimeConfig'
  | 'statusText'
  | 'limits'
>

export interface WorkspaceRow {
  id: string
  name: string
  role: string
  runtime: string
  settings: string
  status: WorkspaceStatus
  status_reason: string | null
  created_at: number
  hosted: number
  paused: number
  slots: number
  running: number
  waiting: number
  turns: number
  since: number | null
  working_on: string | null
  /** The size of the message, in lists, which leave out a large one. */
  working_bytes?: number | null
  heard_at: number | null
  signed_off_at: number | null
  asked: number | null
  report: string | null
  ready_since: number | null
  parked_status: string | null
  login_state: string | null
  now: number
}

export function toWorkspace(row: WorkspaceRow): Workspace & WorkspaceLoad {
  const report = row.report === null ? undefined : (JSON.parse(row.report) as HeartbeatReport)
  const task = currentTask(row, report)
  const settings = JSON.parse(row.settings) as WorkspaceSettings
  // A bridge reports those of its own machine.
  const limits = row.hosted === 1 ? settings.limits : report?.limits
  return {
    ...withoutLimits(settings),
    id: row.id,
    name: row.name,
    role: row.role,
    runtime: row.runtime,
    ...presenceOf({
      nowMs: row.now,
      stored: row.status,
      storedReason: row.status_reason ?? undefined,
      paused: row.paused === 1,
      hosted: row.hosted === 1,
      heardAtMs: row.heard_at ?? undefined,
      hasSignedOff: row.signed_off_at !== null,
      permissionsAsked: Number(row.asked ?? 0),
      report,
      loginState: row.login_state ?? undefined,
      parkedStatus: row.parked_status ?? undefined,
      readySinceMs: row.running < row.slots ? (row.ready_since ?? undefined) : undefined,
    }),
    createdAtMs: row.created_at,
    queueDepth: row.waiting,
    running: row.running,
    ...(limits !== undefined && limits.length > 0 && { limits }),
    currentTask: task,
    ...(row.since !== null && { currentSinceMs: row.since }),
    ...(Number(row.asked ?? 0) > 0 && { permissionsAsked: Number(row.asked) }),
  }
}

function withoutLimits({ limits: _, ...settings }: WorkspaceSettings): WorkspaceSettings {
  return settings
}

const CURRENT_TASK_CHARACTERS_MAX = 120

/**
 * The task of a recent heartbeat, else the leased message. A report of a dead process would show an old task for ever.
 */
function currentTask(row: WorkspaceRow, report: HeartbeatReport | undefined): string | undefined {
  const isRecent = row.heard_at !== null && row.now - row.heard_at <= SILENCE_MS_MAX
  if (isRecent && report?.current_task) return report.current_task
  if (row.turns > 1) return `${row.turns} turns running`
  if (row.working_on !== null) return describeMessage(row.working_on)
  return row.turns === 1 && row.working_bytes ? `a message of ${Math.ceil(row.working_bytes / 1024)} KB` : undefined
}

function describeMessage(envelope: string): string {
  const text = textOf(restoreEnvelope(envelope).message.parts, ' ').replaceAll(/\s+/g, ' ').trim()
  return truncate(text, CURRENT_TASK_CHARACTERS_MAX)
}
