/**
 * Stops everything: cancels what runs and pauses every workspace. What waits is kept. The way back stays until no
 * workspace is paused, for every person. Each asks first. The header, the palette and the phone's menu open the dialogs.
 */
import { useState, useSyncExternalStore } from 'react'
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import { client, reasonOf } from '../api/client.ts'
import { readWorkspaces, useMay, useWorkspaces } from '../api/queries.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { countText } from '../ui/text/times.ts'
import { showToast } from '../ui/toasts.tsx'
import { namesOf } from './action-dialogs.tsx'
import { platformCounts } from './platform-counts.ts'

type AllAction = 'stop' | 'resume'

const listeners = new Set<() => void>()
let asked: AllAction | undefined

/** Opens the question. */
function ask(action: AllAction | undefined): void {
  asked = action
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** What can be done to all workspaces now, by this session. Each asks first. */
export function useAllActions(): readonly { readonly title: string; readonly run: () => void }[] {
  const may = useMay()
  const { active, paused } = platformCounts(useWorkspaces().values())
  if (!may('workspace.pause') || active + paused === 0) return []
  const stop = { title: 'Stop all', run: () => ask('stop') }
  return paused === 0 ? [stop] : [stop, { title: 'Resume all', run: () => ask('resume') }]
}

interface AllActionButtonsProps {
  readonly variant?: 'quiet'
  /** Called before the question opens. */
  readonly onChoose?: () => void
}

export function AllActionButtons({ variant, onChoose }: AllActionButtonsProps) {
  return useAllActions().map(({ title, run }) => (
    <Button
      key={title}
      {...(variant && { variant })}
      onClick={() => {
        onChoose?.()
        run()
      }}
    >
      {title}
    </Button>
  ))
}

/** The question that is open. */
export function AllActionDialogs() {
  const action = useSyncExternalStore(subscribe, () => asked)
  const close = () => ask(undefined)
  if (action === 'stop') return <StopAllDialog onClose={close} />
  return action === 'resume' ? <ResumeAllDialog onClose={close} /> : null
}

interface AllDialogProps {
  readonly onClose: () => void
}

function StopAllDialog({ onClose }: AllDialogProps) {
  const { working, waiting, active, paused } = platformCounts(useWorkspaces().values())
  const { isBusy, problem, run } = useQuestion(onClose)
  if (active === 0 && working === 0 && waiting === 0) {
    return (
      <Dialog
        title="Everything is stopped"
        onClose={onClose}
        actions={
          <>
            <Button onClick={() => ask('resume')}>Resume all</Button>
            <Button variant="ink" onClick={onClose}>
              Close
            </Button>
          </>
        }
      >
        <p className="text-soft">
          No turn runs, and {paused === 1 ? 'the only workspace is' : `all ${countText(paused)} workspaces are`} paused.
        </p>
      </Dialog>
    )
  }
  return (
    <Dialog
      title="Stop all workspaces?"
      onClose={onClose}
      actions={
        <>
          <Button disabled={isBusy} onClick={() => run(stopAll)}>
            Stop all
          </Button>
          <Button variant="ink" onClick={onClose}>
            Keep them working
          </Button>
        </>
      }
    >
      <p className="text-soft">
        {working === 0 ? 'No turn runs now.' : `${count(working, 'running turn')} will be cancelled.`}{' '}
        {waiting === 0 ? '' : 'Turns that wait for an answer will be cancelled too. '}
        {active === 0 ? '' : `${count(active, 'workspace')} will pause until you choose Resume all. `}
        Messages that wait are kept.
      </p>
      <Problem text={problem} />
    </Dialog>
  )
}

function ResumeAllDialog({ onClose }: AllDialogProps) {
  const paused = pausedOf(useWorkspaces().values())
  const { isBusy, problem, run } = useQuestion(onClose)
  const waiting = paused.reduce((sum, { queue_depth: depth = 0 }) => sum + depth, 0)
  return (
    <Dialog
      title="Resume all workspaces?"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Keep them paused</Button>
          <Button variant="ink" disabled={isBusy} onClick={() => run(() => resumeAll(paused))}>
            Resume all
          </Button>
        </>
      }
    >
      <p className="text-soft">
        {paused.length === 1 ? 'One workspace is' : `${countText(paused.length)} workspaces are`} paused:{' '}
        <strong className="break-words text-ink">{namesOf(paused)}</strong>.{' '}
        {waiting === 0
          ? 'No message waits.'
          : `${count(waiting, 'message')} that wait${waiting === 1 ? 's' : ''} will run.`}
      </p>
      <Problem text={problem} />
    </Dialog>
  )
}

const Problem = ({ text }: { readonly text: string | undefined }) =>
  text === undefined ? null : (
    <p role="alert" className="mt-3 rounded-button bg-needs-soft px-3 py-2 text-needs text-second">
      {text}
    </p>
  )

function useQuestion(onClose: () => void) {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  const run = (work: () => Promise<void>) => {
    setBusy(true)
    work().then(onClose, (error: unknown) => {
      setBusy(false)
      setProblem(reasonOf(error))
    })
  }
  return { isBusy, problem, run }
}

const pausedOf = (workspaces: Iterable<WorkspaceSummary>): WorkspaceSummary[] =>
  [...workspaces].filter(({ status }) => status === 'paused')

/** Removes "Undo the pause", once nothing is left to undo. */
let withdrawUndo: (() => void) | undefined

async function stopAll(): Promise<void> {
  const before = new Set(pausedOf(readWorkspaces().values()).map(({ id }) => id))
  const { stopped, failed } = await client.call('POST /stop')
  const turns = stopped.reduce((sum, { canceled }) => sum + canceled.length, 0)
  // What was paused before stays paused.
  const own = stopped.filter(({ id }) => !before.has(id))
  const trouble = failed.length === 0 ? '' : ` ${count(failed.length, 'workspace')} could not be stopped.`
  const resume = () => void resumeAll(own).catch((error: unknown) => showToast(reasonOf(error)))
  withdrawUndo = showToast(`Stopped ${count(turns, 'turn')} and paused ${count(own.length, 'workspace')}.${trouble}`, {
    title: 'Undo the pause',
    onChoose: resume,
  })
}

/** Calls at the same time: one after the other would be slow for many workspaces. */
const CALLS_MAX = 6

/** A workspace that fails does not keep the others from their turn. */
async function resumeAll(workspaces: readonly Pick<WorkspaceSummary, 'id' | 'name'>[]): Promise<void> {
  const left = [...workspaces]
  const failures: string[] = []
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      try {
        await client.call('POST /workspaces/{id}/resume', { id: next.id })
      } catch (thrown) {
        failures.push(`${next.name}: ${reasonOf(thrown)}`)
      }
    }
  }
  await Promise.all(Array.from({ length: CALLS_MAX }, work))
  const [first] = failures
  if (first !== undefined) {
    throw new Error(`${count(failures.length, 'workspace')} could not be resumed. ${first}`)
  }
  withdrawUndo?.()
  showToast(
    workspaces.length === 1 ? '1 workspace works again.' : `${count(workspaces.length, 'workspace')} work again.`,
  )
}

const count = (value: number, noun: string): string => `${countText(value)} ${noun}${value === 1 ? '' : 's'}`
