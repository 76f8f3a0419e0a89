/** Stops everything: cancels what runs and pauses every workspace, after a question. What waits is kept. */
import { useState } from 'react'
import { client, reasonOf } from '../api/client.ts'
import { useMay, useWorkspaces } from '../api/queries.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { countText } from '../ui/times.ts'
import { showToast } from '../ui/toasts.tsx'
import { platformCounts } from './platform-counts.ts'

export function StopAllButton() {
  const may = useMay()
  const [isOpen, setOpen] = useState(false)
  const workspaces = useWorkspaces()
  if (!may('workspace.pause') || workspaces.size === 0) return null
  return (
    <>
      <Button variant="quiet" onClick={() => setOpen(true)}>
        Stop all
      </Button>
      {isOpen ? <StopAllDialog onClose={() => setOpen(false)} /> : null}
    </>
  )
}

export function StopAllDialog({ onClose }: { readonly onClose: () => void }) {
  const { working, active } = platformCounts(useWorkspaces().values())
  const [problem, setProblem] = useState<string>()
  const stop = () => {
    stopAll().then(onClose, (error: unknown) => setProblem(reasonOf(error)))
  }
  return (
    <Dialog
      title="Stop all workspaces?"
      onClose={onClose}
      actions={
        <>
          <Button onClick={stop}>Stop all</Button>
          <Button variant="ink" onClick={onClose}>
            Keep them working
          </Button>
        </>
      }
    >
      <p className="text-soft">
        {working === 0 ? 'No turn runs now.' : `${count(working, 'running turn')} will be cancelled.`}{' '}
        {count(active, 'workspace')} will pause until you resume {active === 1 ? 'it' : 'them'}. Messages that wait are
        kept.
      </p>
      {problem === undefined ? null : (
        <p role="alert" className="mt-3 rounded-button bg-needs-soft px-3 py-2 text-needs text-second">
          {problem}
        </p>
      )}
    </Dialog>
  )
}

async function stopAll(): Promise<void> {
  const { stopped, failed } = await client.stopAll()
  const turns = stopped.reduce((sum, { canceled }) => sum + canceled.length, 0)
  const text = `Stopped ${count(turns, 'turn')} and paused ${count(stopped.length, 'workspace')}.`
  const trouble = failed.length === 0 ? '' : ` ${count(failed.length, 'workspace')} could not be stopped.`
  const resume = () => void Promise.allSettled(stopped.map(({ id }) => client.runWorkspaceAction(id, 'resume')))
  showToast(text + trouble, { title: 'Resume', onChoose: resume })
}

const count = (value: number, noun: string): string => `${countText(value)} ${noun}${value === 1 ? '' : 's'}`
