/** The tools that the agent used, one small line each: what, and how long. A click shows the whole. */
import { useState } from 'react'
import type { ChatToolView } from '../../../../../src/client/live-conversation.ts'
import { printableName } from '../../../../../src/printable.ts'
import { classNames } from '../../../ui/class-names.ts'
import { Dot } from '../../../ui/dot.tsx'
import { CheckIcon, CloseIcon } from '../../../ui/icons.tsx'
import { DiffText } from '../../../ui/text/diff-text.tsx'
import { tookTime } from '../../../ui/text/times.ts'
import { isDiff, toolText } from '../../../ui/text/tool-text.ts'
import type { TabProps } from '../../tab.ts'

/** More lines than this are folded: the first ones of a running turn, all of an answered one. */
const LINES_MAX = 5

interface ToolLinesProps extends TabProps {
  readonly tools: readonly ChatToolView[]
  readonly isRunning: boolean
  /** The turn waits for a person. */
  readonly isWaiting: boolean
  readonly hasMore: boolean
}

export function ToolLines({ tools, isRunning, isWaiting, hasMore, workspace }: ToolLinesProps) {
  const [isOpen, setOpen] = useState(false)
  if (tools.length === 0) return null
  const isFolded = tools.length > LINES_MAX && !isOpen
  const folded = isFolded ? tools.length - (isRunning ? LINES_MAX - 1 : 0) : 0
  return (
    <div className="flex min-w-0 flex-col gap-1">
      {tools.length > LINES_MAX ? (
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
          className="self-start text-left text-faint text-time hover:text-ink max-md:min-h-10"
        >
          {isOpen ? 'Fewer steps' : `${folded}${hasMore ? ' or more' : ''} ${isRunning ? 'earlier ' : ''}steps`}
        </button>
      ) : null}
      {tools.slice(folded).map((tool, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: tools are only added at the end.
        <ToolLine key={folded + index} tool={tool} isRunning={isRunning} isWaiting={isWaiting} workspace={workspace} />
      ))}
    </div>
  )
}

interface ToolLineProps extends TabProps, Pick<ToolLinesProps, 'isRunning' | 'isWaiting'> {
  readonly tool: ChatToolView
}

function ToolLine({ tool, isRunning, isWaiting, workspace }: ToolLineProps) {
  const [isOpen, setOpen] = useState(false)
  const { line, details } = toolText(tool, workspace.working_dir)
  const whole = details ?? line
  return (
    <div className="min-w-0">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full min-w-0 items-center gap-2 text-left font-mono text-soft text-time hover:text-ink max-md:min-h-8"
      >
        <ToolMark state={tool.state} isRunning={isRunning} isWaiting={isWaiting} />
        <span className="min-w-0 truncate">{line}</span>
        {tool.duration_ms === undefined ? null : (
          <span className="shrink-0 text-faint">{tookTime(tool.duration_ms)}</span>
        )}
      </button>
      {isOpen ? (
        <div className="mt-1 mb-1 ml-5 min-w-0 text-time">
          <p className="text-faint">
            {printableName(tool.name)}, {WORDS[tool.state]} at {new Date(tool.at).toLocaleTimeString()}
          </p>
          <ToolDetails whole={whole} diffs={tool.diffs ?? []} />
        </div>
      ) : null}
    </div>
  )
}

interface ToolDetailsProps {
  readonly whole: string
  readonly diffs: NonNullable<ChatToolView['diffs']>
}

/** A diff shows more than the input that made it. */
function ToolDetails({ whole, diffs }: ToolDetailsProps) {
  if (diffs.length > 0) return diffs.map(({ path, diff }) => <DiffText key={path} diff={diff} />)
  if (isDiff(whole)) return <DiffText diff={whole} />
  return (
    <pre className="mt-1 whitespace-pre-wrap break-all rounded-button border border-line bg-raised px-2.5 py-1.5 font-mono">
      {whole}
    </pre>
  )
}

const WORDS = { started: 'begun', finished: 'done, begun', failed: 'failed, begun' }

interface ToolMarkProps extends Pick<ToolLinesProps, 'isRunning' | 'isWaiting'> {
  readonly state: ChatToolView['state']
}

/** A failed command is not red: the agent goes on by itself. */
function ToolMark({ state, isRunning, isWaiting }: ToolMarkProps) {
  const place = 'inline-flex size-3.5 shrink-0 items-center justify-center'
  if (state === 'finished') {
    return (
      <span className={classNames(place, 'text-ok-ink')}>
        <CheckIcon />
        <span className="sr-only">done</span>
      </span>
    )
  }
  if (state === 'started' && (isRunning || isWaiting)) {
    return (
      <span className={place}>
        <Dot state={isRunning ? 'working' : 'offline'} />
        <span className="sr-only">{isRunning ? 'runs' : 'waits'}</span>
      </span>
    )
  }
  return (
    <span className={classNames(place, 'text-faint')}>
      <CloseIcon className="size-3" />
      <span className="sr-only">{state === 'failed' ? 'failed' : 'did not end'}</span>
    </span>
  )
}
