/** What a person can do with one workspace: the items of its menu, and the dialogs that they open. */
import { useState } from 'react'
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import { useMay } from '../api/queries.ts'
import { Menu, type MenuItem } from '../ui/menu.tsx'
import { DeleteDialog, MoveDialog, RenameDialog } from './action-dialogs.tsx'
import { pause, restart, resume } from './changes.ts'

type OpenDialog = 'rename' | 'move' | 'delete' | undefined

/** The menu of a workspace. Without any item that the session may use there is no menu. */
export function WorkspaceMenu({
  workspace,
  ...look
}: {
  readonly workspace: WorkspaceSummary
  readonly className?: string
  readonly isTabStop?: boolean
}) {
  const may = useMay()
  const [dialog, setDialog] = useState<OpenDialog>()
  const close = () => setDialog(undefined)
  const items = menuItems(workspace, may, setDialog)
  return (
    <>
      <Menu label={`Actions for ${workspace.name}`} items={items} {...look} />
      {dialog === 'rename' ? <RenameDialog workspace={workspace} onClose={close} /> : null}
      {dialog === 'move' ? <MoveDialog workspace={workspace} onClose={close} /> : null}
      {dialog === 'delete' ? <DeleteDialog workspace={workspace} onClose={close} /> : null}
    </>
  )
}

function menuItems(
  workspace: WorkspaceSummary,
  may: (action: string) => boolean,
  open: (dialog: OpenDialog) => void,
): MenuItem[] {
  const items: (MenuItem & { readonly action: string })[] = [
    { title: 'Rename…', action: 'workspace.change', onChoose: () => open('rename') },
    { title: 'Move below…', action: 'workspace.change', onChoose: () => open('move') },
    { title: 'Restart', action: 'workspace.restart', onChoose: () => restart(workspace) },
    workspace.status === 'paused'
      ? { title: 'Resume', action: 'workspace.pause', onChoose: () => resume(workspace) }
      : { title: 'Pause', action: 'workspace.pause', onChoose: () => pause(workspace) },
    { title: 'Delete…', action: 'workspace.delete', onChoose: () => open('delete') },
  ]
  return items.filter(({ action }) => may(action))
}
