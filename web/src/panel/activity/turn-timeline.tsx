/** One turn as a timeline: when, what, how long. A failed command is not red, because the agent goes on from it. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { readStory } from '../../../../src/client/story.ts'
import { printable } from '../../../../src/printable.ts'
import { client } from '../../api/client.ts'
import { keys } from '../../api/queries.ts'
import { writePlace } from '../../route/route.ts'
import { classNames } from '../../ui/class-names.ts'
import { ErrorBoundary } from '../../ui/error-boundary.tsx'
import { DiffText } from '../../ui/text/diff-text.tsx'
import { Markdown } from '../../ui/text/markdown.tsx'
import { beginningOf } from '../../ui/text/markdown-text.ts'
import { clockTime, relativeTime, tookTime } from '../../ui/text/times.ts'
import { StoryPane } from './story-pane.tsx'
import { isShown, type Step, type StepFilter, type TurnSteps } from './timeline.ts'

const TITLE_OF_NOTES = 'Notes'
/** A longer answer is cut, and opened by a button. Its Markdown is closed where it is cut, as in a growing answer. */
const DETAIL_CHARACTERS = 240

export interface TurnTimelineProps {
  readonly workspaceId: string
  readonly turn: TurnSteps
  /** The first words of the message; undefined where the page has not read them. */
  readonly title: string | undefined
  readonly filter: StepFilter
  readonly isChosen: boolean
  readonly onChoose: (taskId: string) => void
}

export function TurnTimeline({ workspaceId, turn, title, filter, isChosen, onChoose }: TurnTimelineProps) {
  const { taskId, startedAt, endedAt, steps } = turn
  return (
    <li className={classNames('border-line border-b px-5 pt-4 pb-3 last:border-b-0', isChosen && '@4xl:bg-raised')}>
      <div className="flex items-start justify-between gap-4 pb-2">
        <h3 className="min-w-0 font-[650]">
          {taskId === undefined ? (
            TITLE_OF_NOTES
          ) : (
            <button
              type="button"
              aria-pressed={isChosen}
              onClick={() => onChoose(taskId)}
              className="max-w-full text-left font-[650] hover:text-accent max-md:min-h-10"
            >
              <TurnTitle taskId={taskId} title={title} />
            </button>
          )}
        </h3>
        <span className="shrink-0 text-faint text-time leading-5">{spanText(startedAt, endedAt)}</span>
      </div>
      {isChosen && taskId !== undefined ? (
        <div className="mb-3 rounded-box border border-line bg-raised p-4 @4xl:hidden">
          <StoryPane workspaceId={workspaceId} taskId={taskId} />
        </div>
      ) : null}
      <ol aria-label="Steps">
        {steps
          .filter((step) => isShown(step, filter))
          .map((step) => (
            <ErrorBoundary key={step.key} what="This step" text={[step.verb, step.subject, step.detail].join(' ')}>
              <StepLine step={step} />
            </ErrorBoundary>
          ))}
      </ol>
    </li>
  )
}

/** A turn that began while the tab was open has no title yet: it is read once. */
function TurnTitle({ taskId, title }: { readonly taskId: string; readonly title: string | undefined }) {
  const { data } = useQuery({
    queryKey: keys.workspace('', 'title', taskId),
    queryFn: async () => (await readStory(client, taskId)).text,
    enabled: title === undefined,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <span dir="auto" className="line-clamp-2 break-words">
      {title ?? data ?? 'A message'}
    </span>
  )
}

function spanText(startedAt: string, endedAt: string): string {
  const [start, end] = [new Date(startedAt), new Date(endedAt)]
  const day = start.toDateString() === new Date().toDateString() ? '' : `${relativeTime(start.getTime(), Date.now())}, `
  const [from, to] = [clockTime(start), clockTime(end)]
  return from === to ? `${day}${from}` : `${day}${from} to ${to}`
}

const LOOKS = {
  sent: 'bg-accent',
  done: 'bg-ok',
  failed: 'bg-soft',
  waiting: 'border-2 border-edge bg-surface',
  running: 'bg-working-dot ring-4 ring-working-soft',
}

function StepLine({ step }: { readonly step: Step }) {
  const { at, look, verb, subject, detail } = step
  return (
    <li className="group flex gap-3 max-md:gap-2">
      <time dateTime={at} className="w-15 shrink-0 py-1.5 font-mono text-faint text-time leading-5">
        {new Date(at).toLocaleTimeString('en-GB')}
      </time>
      <span aria-hidden="true" className="relative w-2 shrink-0">
        <span className="absolute top-4 bottom-[-12px] left-[3.5px] w-px bg-line group-last:hidden" />
        <span className={classNames('absolute top-3 size-2 rounded-full', LOOKS[look])} />
      </span>
      <div className="min-w-0 flex-1 py-1.5">
        <div className="flex items-baseline justify-between gap-3">
          <p className="min-w-0 break-words">
            {printable(verb)}
            {subject === undefined ? null : (
              <code className="ml-2 break-words font-mono text-second">{printable(subject)}</code>
            )}
            <StepLink step={step} />
          </p>
          <span className="shrink-0 text-faint text-time">{noteText(step)}</span>
        </div>
        {detail ? <StepDetail text={detail} isCut={step.isCut === true} /> : null}
        {step.diffs?.map(({ path, diff }) => (
          <DiffText key={path} diff={diff} />
        ))}
      </div>
    </li>
  )
}

function StepLink({ step: { taskId, kind } }: { readonly step: Step }) {
  if (taskId === undefined || kind !== 'delegation') return null
  return <TaskLink taskId={taskId} />
}

/** The workspace of a delegated task is known only by its task. */
function TaskLink({ taskId }: { readonly taskId: string }) {
  const { data } = useQuery({
    queryKey: keys.workspace('', 'place', taskId),
    queryFn: async () => (await readStory(client, taskId)).workspace_id,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  })
  if (data === undefined) return null
  return (
    <a href={writePlace({ workspaceId: data, tab: 'activity' })} className="ml-2 text-accent text-second">
      See its work
    </a>
  )
}

function noteText({ look, note, tookMs }: Step): string {
  // An agent that reports the start and the end together says nothing about the time between them.
  const took = tookMs === undefined || tookMs === 0 ? '' : tookTime(tookMs)
  return [look === 'running' ? 'running' : took, note].filter(Boolean).join(' · ')
}

function StepDetail({ text, isCut }: { readonly text: string; readonly isCut: boolean }) {
  const [isOpen, setOpen] = useState(false)
  const isLong = text.length > DETAIL_CHARACTERS
  return (
    <div className="text-soft">
      <Markdown
        text={isLong && !isOpen ? beginningOf(text, DETAIL_CHARACTERS) : text}
        isStreaming={isCut || (isLong && !isOpen)}
      />
      {isLong ? (
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
          className="pt-1 font-[550] text-accent text-second max-md:min-h-10"
        >
          {isOpen ? 'Show less' : 'Show all'}
        </button>
      ) : null}
    </div>
  )
}
