/** One tree: the first message with its budget, and below it every task that it led to, each under its parent. */
import type { CSSProperties } from 'react'
import type { DelegationTreeView } from '../../../../src/client/views.ts'
import { client } from '../../api/client.ts'
import { useMay } from '../../api/queries.ts'
import { writePlace } from '../../route/route.ts'
import { Button } from '../../ui/button.tsx'
import { classNames } from '../../ui/class-names.ts'
import { Dot } from '../../ui/dot.tsx'
import { Cost, RunningTime, Time } from '../../ui/text/time.tsx'
import { costText, tookTime } from '../../ui/text/times.ts'
import { showToast } from '../../ui/toasts.tsx'
import { refresh, usePanelAction } from '../refresh.ts'
import { isOpenState, stateLook } from './task-state.ts'
import { DEPTH_SHOWN_MAX, type TreeLine, treeLines } from './tree-lines.ts'

type DelegatedTaskView = DelegationTreeView['tasks'][number]

export interface DelegationTreeProps {
  readonly tree: DelegationTreeView
  /** The workspace of the panel, whose rows are marked. */
  readonly workspaceId: string
}

export function DelegationTree({ tree, workspaceId }: DelegationTreeProps) {
  const [root] = tree.tasks
  if (root === undefined) return null
  const turns = tree.tasks.reduce((sum, task) => sum + task.turns, 0)
  const open = tree.tasks.filter(({ state }) => isOpenState(state)).length
  return (
    <article aria-label={root.text} className="overflow-hidden rounded-card border border-line bg-surface shadow-card">
      <header className="flex flex-col gap-3 border-line border-b px-5 py-4 max-md:px-4">
        <div className="flex flex-wrap items-center justify-end gap-x-3 gap-y-1">
          <h3 className="min-w-0 grow basis-52 break-words font-[650]">{root.text || 'A message'}</h3>
          <span className="text-faint text-time">{root.sent_at ? <Time at={root.sent_at} /> : null}</span>
          <StopButton root={root} open={open} workspaceId={workspaceId} />
        </div>
        {tree.budget ? <BudgetBar budget={tree.budget} /> : null}
      </header>
      <table className="w-full border-collapse text-second">
        <caption className="sr-only">Delegations of this message</caption>
        <thead>
          <tr className="border-line border-b text-left text-faint text-time">
            <th className="py-2 pl-5 font-[400] max-md:pl-4">Who, and what for</th>
            <th className="py-2 font-[400]">
              <span className="block @3xl:w-40">State</span>
            </th>
            <th className="py-2 text-right font-[400]">
              <span className="block @3xl:w-20">Time</span>
            </th>
            <th className="py-2 pr-5 pl-3 text-right font-[400] max-md:pr-4">
              <span className="block @3xl:w-24">Cost</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {tree.tasks.map((task, index) => (
            <TaskRow
              key={task.task_id}
              task={task}
              lines={treeLines(tree.tasks, index)}
              isOwn={task.workspace_id === workspaceId}
              refreshId={workspaceId}
            />
          ))}
        </tbody>
      </table>
      <footer className="flex flex-wrap items-center justify-between gap-2 border-line border-t px-5 py-3 text-second text-soft max-md:px-4">
        <span>
          {turns} {turns === 1 ? 'turn' : 'turns'} of at most 50 · {open} open of at most 10
          {tree.hidden > 0 ? ` · ${tree.hidden} not shown to you` : ''}
        </span>
        <a href={writePlace({ workspaceId: root.workspace_id, tab: 'activity' })} className="font-[550] text-accent">
          Explain
        </a>
      </footer>
    </article>
  )
}

interface StopButtonProps {
  readonly root: DelegatedTaskView
  readonly open: number
  readonly workspaceId: string
}

/** Cancelling the first task ends all that it delegated. */
function StopButton({ root, open, workspaceId }: StopButtonProps) {
  const may = useMay()
  const { isBusy, run } = usePanelAction()
  if (open === 0 || !isOpenState(root.state) || !may('task.cancel')) return null
  const stop = async () => {
    if (await run(() => client.cancelTask(root.workspace_id, root.task_id))) {
      showToast('Stopped, with all that it delegated')
      refresh(workspaceId, 'delegations')
    }
  }
  return (
    <Button disabled={isBusy} onClick={stop}>
      Stop all of it
    </Button>
  )
}

function BudgetBar({ budget }: { readonly budget: NonNullable<DelegationTreeView['budget']> }) {
  const { max_cost_usd: max, cost_usd: spent, unknown_turns: unknown } = budget
  const percent = Math.min(100, (spent / max) * 100)
  return (
    <div className="flex flex-col gap-1.5 text-second">
      <div className="flex items-center gap-3">
        <span className="text-soft">Budget</span>
        <span aria-hidden="true" className="h-2 flex-1 overflow-hidden rounded-full border border-line bg-raised">
          <span
            style={{ '--spent': `${percent}%` } as CSSProperties}
            className={classNames('block h-full w-(--spent)', budget.state === 'asked' ? 'bg-needs' : 'bg-accent')}
          />
        </span>
        <span className="text-soft">
          <b className="font-[650] text-ink">{costText(spent, unknown > 0)}</b> of {costText(max)}
        </span>
      </div>
      {unknown > 0 ? (
        <p className="text-soft">
          {unknown === 1 ? 'One turn' : `${unknown} turns`} of unknown cost {unknown === 1 ? 'is' : 'are'} not in this
          sum.
        </p>
      ) : null}
      {budget.state === 'asked' ? <p className="text-needs">It is spent. The rest waits until you raise it.</p> : null}
    </div>
  )
}

interface TaskRowProps {
  readonly task: DelegatedTaskView
  readonly lines: readonly TreeLine[]
  readonly isOwn: boolean
  readonly refreshId: string
}

function TaskRow({ task, lines, isOwn, refreshId }: TaskRowProps) {
  const { word, dot, className } = stateLook(task.state)
  const name = task.workspace_name ?? 'A deleted workspace'
  const depth = Math.min(task.depth, DEPTH_SHOWN_MAX)
  return (
    <tr className={isOwn ? 'bg-accent-soft' : undefined}>
      <td className="relative w-full max-w-0 py-2 pl-5 max-md:pl-4">
        <TreeLines lines={lines} />
        <div style={{ '--depth': depth } as CSSProperties} className="flex gap-2 pl-[calc(var(--depth)*20px)]">
          <span className="flex h-5 items-center">
            <Dot state={dot} />
          </span>
          <div className="min-w-0">
            <p className="flex flex-wrap items-baseline gap-x-2">
              {task.workspace_name === null ? (
                <span className="truncate">{name}</span>
              ) : (
                <a
                  href={writePlace({ workspaceId: task.workspace_id, tab: 'activity' })}
                  title={name}
                  className="truncate rounded-tag font-[600] text-body hover:text-accent"
                >
                  <span className="sr-only">{`Level ${task.depth}: `}</span>
                  {name}
                </a>
              )}
              <ReplayButton task={task} refreshId={refreshId} />
            </p>
            <p dir="auto" className="line-clamp-2 break-words text-soft">
              {task.text}
            </p>
          </div>
        </div>
      </td>
      <td className={classNames('py-2 pr-3 align-top leading-5 max-md:max-w-24', className)}>
        {word}
        {task.turns > 1 && isOpenState(task.state) ? ` · attempt ${task.turns}` : ''}
      </td>
      <td className="whitespace-nowrap py-2 text-right align-top leading-5">
        <TaskTime task={task} />
      </td>
      <td className="whitespace-nowrap py-2 pr-5 pl-3 text-right align-top leading-5 max-md:pr-4">
        <TaskCost task={task} />
      </td>
    </tr>
  )
}

/** The wires at the left of a row. Each level is 20 px wide, and its wire is below the dot of its parent. */
function TreeLines({ lines }: { readonly lines: readonly TreeLine[] }) {
  return lines.map(({ level, shape }) => (
    <span
      key={level}
      aria-hidden="true"
      style={{ '--level': level } as CSSProperties}
      className="absolute inset-y-0 left-[calc(20px+var(--level)*20px-17px)] w-3 max-md:left-[calc(16px+var(--level)*20px-17px)]"
    >
      {shape === 'pass' ? null : (
        <span className="absolute top-0 h-[18px] w-full rounded-bl-chip border-line border-b border-l" />
      )}
      {shape === 'end' ? null : <span className="absolute inset-y-0 border-line border-l" />}
    </span>
  ))
}

function TaskTime({ task: { sent_at: sent, ended_at: ended } }: { readonly task: DelegatedTaskView }) {
  if (sent === undefined) return null
  return ended === undefined ? <RunningTime since={sent} /> : tookTime(Date.parse(ended) - Date.parse(sent))
}

/** A turn that reported nothing has no row of usage: a shell command costs nothing that is known. */
function TaskCost({ task: { usage, ended_at: ended } }: { readonly task: DelegatedTaskView }) {
  if (usage === undefined) return <span className="text-faint">{ended === undefined ? 'not yet' : 'none'}</span>
  return <Cost usd={usage.cost_usd} hasUnknown={usage.unknown_cost_turns > 0} />
}

function ReplayButton({ task, refreshId }: { readonly task: DelegatedTaskView; readonly refreshId: string }) {
  const may = useMay()
  const { isBusy, run } = usePanelAction()
  if (task.state !== 'TASK_STATE_FAILED' || task.workspace_name === null || !may('dead-letter.handle')) return null
  const replay = async () => {
    const letter = { id: task.workspace_id, message: task.task_id }
    if (!(await run(() => client.call('POST /workspaces/{id}/dead-letters/{message}/replay', letter)))) return
    showToast(`It runs again in ${task.workspace_name}`)
    refresh(refreshId, 'delegations')
  }
  return (
    <button
      type="button"
      disabled={isBusy}
      onClick={replay}
      className="shrink-0 rounded-tag font-[550] text-accent max-md:min-h-10"
    >
      Run again<span className="sr-only">{` ${task.text}`}</span>
    </button>
  )
}
