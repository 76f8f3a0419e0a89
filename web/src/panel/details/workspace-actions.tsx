/** Pause, resume, stop, restart and delete as buttons. What the role may not do is not shown. */
import { useState } from 'react'
import { client } from '../../api/client.ts'
import { useMay } from '../../api/queries.ts'
import { DeleteDialog } from '../../canvas/action-dialogs.tsx'
import { pause, restart, resume } from '../../canvas/changes.ts'
import { Button } from '../../ui/button.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { usePanelAction } from '../refresh.ts'
import type { TabProps } from '../tab.ts'

export function WorkspaceActions({ workspace }: TabProps) {
  const may = useMay()
  const { isBusy, run } = usePanelAction()
  const [isDeleting, setDeleting] = useState(false)
  const { id, name, status, running = 0 } = workspace
  const isPaused = status === 'paused'
  const stop = async () => {
    if (await run(() => client.call('POST /workspaces/{id}/stop', { id })))
      showToast(`Stopped the turns of ${name} and paused it`, { title: 'Resume', onChoose: () => resume(workspace) })
  }
  if (!may('workspace.pause') && !may('workspace.restart') && !may('workspace.delete')) return null
  return (
    <div className="flex flex-wrap gap-2">
      {may('workspace.pause') ? (
        <Button onClick={() => (isPaused ? resume(workspace) : pause(workspace))}>
          {isPaused ? 'Resume' : 'Pause'}
        </Button>
      ) : null}
      {may('workspace.pause') && running > 0 && !isPaused ? (
        <Button disabled={isBusy} onClick={stop}>
          Stop
        </Button>
      ) : null}
      {may('workspace.restart') ? <Button onClick={() => restart(workspace)}>Restart</Button> : null}
      {may('workspace.delete') ? (
        <Button variant="quiet" onClick={() => setDeleting(true)}>
          Delete…
        </Button>
      ) : null}
      {isDeleting ? <DeleteDialog workspace={workspace} onClose={() => setDeleting(false)} /> : null}
    </div>
  )
}
