/** The numbers of the whole platform, from its workspaces. Pure. */
import type { WorkspaceSummary } from '../../../src/client/views.ts'

export interface PlatformCounts {
  /** Running turns. */
  readonly working: number
  /** Workspaces with no running turn and a turn that waits: for a person, or for another workspace. */
  readonly waiting: number
  readonly queued: number
  /** Workspaces that are not paused. */
  readonly active: number
  readonly paused: number
  /** Null where no turn of today reported a cost. */
  readonly costUsd: number | null
  readonly hasUnknownCost: boolean
}

export function platformCounts(workspaces: Iterable<WorkspaceSummary>): PlatformCounts {
  let [working, waiting, queued, active, paused, unknown] = [0, 0, 0, 0, 0, 0]
  let costUsd: number | null = null
  for (const { running = 0, current_task: task, queue_depth: depth = 0, status, today } of workspaces) {
    working += running
    if (running === 0 && task) waiting += 1
    queued += depth
    if (status === 'paused') paused += 1
    else active += 1
    if (today === undefined) continue
    unknown += today.unknown_turns
    if (today.cost_usd !== null) costUsd = (costUsd ?? 0) + today.cost_usd
  }
  return { working, waiting, queued, active, paused, costUsd, hasUnknownCost: unknown > 0 }
}
