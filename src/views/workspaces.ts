/**
 * A workspace as a caller may see it. `workspaces/` makes the workspace of its row, because its commands and the doors need
 * its status and its parent; here it gets the names of the wire, and loses what is not for the caller.
 */
import type { ApiAnswer } from '../api/api.ts'
import { hideSecrets } from '../workspaces/hide-secrets.ts'
import { seesConfig, seesStatusText } from '../workspaces/may-talk.ts'
import type { Identity } from '../workspaces/tokens.ts'
import type { Workspace, WorkspaceLoad } from '../workspaces/workspace.ts'
import { instant, instantOf } from './instant.ts'
import { publicReason } from './public-reason.ts'
import type { WorkspaceCard } from './workspace-cards.ts'

export type WorkspaceAnswer = ApiAnswer<'GET /workspaces/{id}'>

/** All of it, as owners see it. Without a card in the answer to a change. */
export const wholeWorkspace = (
  workspace: Workspace & Partial<WorkspaceLoad>,
  card?: WorkspaceCard,
): WorkspaceAnswer => ({
  id: workspace.id,
  name: workspace.name,
  role: workspace.role,
  runtime: workspace.runtime,
  status: workspace.status,
  status_reason: workspace.statusReason,
  limits: workspace.limits,
  queue_depth: workspace.queueDepth,
  running: workspace.running,
  current_task: workspace.currentTask ?? null,
  current_since: instantOf(workspace.currentSinceMs),
  ...card,
  status_text: workspace.statusText?.text,
  status_text_at: instantOf(workspace.statusText?.atMs),
  model: workspace.model,
  parent_id: workspace.parentId,
  tier: workspace.tier,
  max_concurrent_tasks: workspace.maxConcurrentTasks,
  max_attempts: workspace.maxAttempts,
  working_dir: workspace.workingDir,
  permission: workspace.permission,
  team: workspace.team,
  runtime_config: hideSecrets(workspace.runtimeConfig) as WorkspaceAnswer['runtime_config'],
  created_at: instant(workspace.createdAtMs),
})

/** What this caller may see of it. */
export function workspaceFor(
  caller: Pick<Identity, 'role' | 'workspaceId'>,
  workspace: Workspace & WorkspaceLoad,
  card: WorkspaceCard | undefined,
): WorkspaceAnswer {
  const whole = wholeWorkspace(workspace, card)
  if (seesConfig(caller)) return whole
  const shown = withoutConfig(whole)
  if (caller.role === 'viewer') return shown
  // Other callers' messages are for people only: a program or a peer does not see what the workspace works on.
  const { status_text: text, status_text_at: at = null, ...rest } = shown
  const known = withoutWork(rest)
  return seesStatusText(caller, workspace.id) && text !== undefined
    ? { ...known, status_text: text, status_text_at: at }
    : known
}

function withoutWork(answer: WorkspaceAnswer): WorkspaceAnswer {
  const { current_task: _task, current_since: _since, last_answered_at: _answered, ...rest } = answer
  const { today: _today, needs_you: _needs, limits: _limits, ...known } = rest
  return known
}

/** For a viewer, a program and a peer: no settings, and no path in the reason. */
function withoutConfig(answer: WorkspaceAnswer): WorkspaceAnswer {
  const { runtime_config: _config, working_dir: _folder, status_reason: reason, needs_you: needs, ...shown } = answer
  return {
    ...shown,
    status_reason: reason && publicReason(reason),
    needs_you: needs && { count: needs.count, reason: publicReason(needs.reason) },
  }
}
