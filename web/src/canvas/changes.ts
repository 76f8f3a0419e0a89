/** Changes of one workspace: each is shown at once, says what it did, and offers the way back where there is one. */
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import { changeWorkspace } from '../../../src/client/workspaces.ts'
import { client, reasonOf } from '../api/client.ts'
import { keys, queryClient, readWorkspaces, type WorkspaceMap } from '../api/queries.ts'
import { showToast } from '../ui/toasts.tsx'

export const restart = (workspace: WorkspaceSummary) =>
  run(client.call('POST /workspaces/{id}/restart', { id: workspace.id }), () =>
    showToast(`${workspace.name} begins its next turn with a new agent.`),
  )

export const resume = (workspace: WorkspaceSummary) =>
  run(client.call('POST /workspaces/{id}/resume', { id: workspace.id }), () =>
    showToast(`${workspace.name} works again.`),
  )

export const pause = (workspace: WorkspaceSummary) =>
  run(client.call('POST /workspaces/{id}/pause', { id: workspace.id }), () =>
    showToast(`${workspace.name} is paused. It keeps its queue.`, {
      title: 'Resume',
      onChoose: () => resume(workspace),
    }),
  )

function run(change: Promise<WorkspaceSummary>, onDone: () => void): void {
  change.then(
    (changed) => {
      showChange(changed)
      onDone()
    },
    (error: unknown) => showToast(reasonOf(error)),
  )
}

/** Shows a change at once. The stream confirms it a moment later. */
function showChange(changed: WorkspaceSummary): void {
  queryClient.setQueryData<WorkspaceMap>(keys.workspaces, (before) => {
    const known = before?.get(changed.id)
    if (before === undefined || known === undefined) return before
    return new Map(before).set(changed.id, { ...known, ...changed })
  })
}

/** Puts a workspace below another one, or below none, and offers the way back. */
export function nest(workspace: WorkspaceSummary, parentId: string | null, isUndo = false): void {
  const before = workspace.parent_id ?? null
  if (before === parentId && !isUndo) return
  changeWorkspace(client, workspace.id, { parent_id: parentId }).then(
    (changed) => {
      showChange({ ...changed, parent_id: parentId })
      if (isUndo) return
      const parent = parentId === null ? undefined : readWorkspaces().get(parentId)
      const text = parent ? `${workspace.name} is now below ${parent.name}.` : `${workspace.name} has no parent now.`
      showToast(text, { title: 'Undo', onChoose: () => nest(workspace, before, true) })
    },
    (error: unknown) => showToast(reasonOf(error)),
  )
}
