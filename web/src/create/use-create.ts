/** Makes a workspace and opens its chat. */
import { useMutation } from '@tanstack/react-query'
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import { type CreatedWorkspaceView, createWorkspace, type WorkspaceBody } from '../../../src/client/workspaces.ts'
import { client } from '../api/client.ts'
import { keys, queryClient, type WorkspaceMap } from '../api/queries.ts'
import { goTo } from '../route/route.ts'

export function useCreate(after: (workspace: CreatedWorkspaceView) => void = openChat) {
  return useMutation({
    // Two cards of one name could not be told apart.
    mutationFn: (body: WorkspaceBody) => createWorkspace(client, { ...body, allow_duplicate: false }),
    onSuccess(workspace) {
      // Its panel opens at once; the event that announces it may come later.
      queryClient.setQueryData<WorkspaceMap>(keys.workspaces, (before) => new Map(before).set(workspace.id, workspace))
      after(workspace)
    },
  })
}

export const openChat = ({ id }: WorkspaceSummary): void => goTo({ workspaceId: id, tab: 'chat' })
