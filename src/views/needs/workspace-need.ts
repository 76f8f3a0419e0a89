/** The need of a workspace that cannot work by itself. */
import type { Workspace, WorkspaceLoad } from '../../workspaces/workspace.ts'
import type { FoundNeed } from './need-rows.ts'

/** What the needs of a workspace follow from. */
export type NeedyWorkspace = Pick<Workspace, 'id' | 'name' | 'status' | 'statusReason' | 'runtimeConfig'> &
  Partial<Pick<WorkspaceLoad, 'queueDepth'>>

/**
 * Undefined for a workspace that works, and for one that a person has paused. `offline` needs a person only while messages
 * wait, and `degraded` goes on by itself.
 */
export function needOfWorkspace(workspace: Omit<NeedyWorkspace, 'name' | 'runtimeConfig'>): FoundNeed | undefined {
  const { id, status, statusReason, queueDepth = 0 } = workspace
  const need = (kind: FoundNeed['kind'], reason: string): FoundNeed => ({
    kind,
    id,
    workspace_id: id,
    since: null,
    reason,
  })
  const waiting = queueDepth === 1 ? '1 message waits' : `${queueDepth} messages wait`
  if (status === 'needs_login') return need('login', statusReason ?? 'its agent is not logged in')
  if (status === 'failed') return need('workspace', statusReason ?? 'it cannot run')
  if (status !== 'offline' || queueDepth === 0) return undefined
  return need('workspace', `it is offline and ${waiting}${statusReason === undefined ? '' : `: ${statusReason}`}`)
}
