/**
 * The card of one workspace on the map. The whole card is one button, which has its title too: nothing else on the card
 * feels the mouse. Its menu lies above it.
 */
import { Handle, type Node, type NodeProps, Position } from '@xyflow/react'
import { memo } from 'react'
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import { PERMISSION_SENTENCES, permissionOf } from '../create/permission-sentences.ts'
import { useWantedFocus } from '../route/focus.ts'
import { goTo } from '../route/route.ts'
import { Chip } from '../ui/chip.tsx'
import { classNames } from '../ui/class-names.ts'
import { Dot } from '../ui/dot.tsx'
import { RunningTime, Time } from '../ui/text/time.tsx'
import { useCardWorkspace } from './card-source.ts'
import { type CardState, cardStateOf, hintOf, labelOf } from './card-state.ts'
import { WorkspaceMenu } from './workspace-menu.tsx'

/** The workspace itself is not here: see `card-source.ts`. */
export interface CardData extends Record<string, unknown> {
  readonly isChosen: boolean
  /** Another card is held above it: dropping nests that card. */
  readonly isTarget: boolean
  /** Reached with Tab; the others with arrow keys. */
  readonly isTabStop: boolean
}

export type CardNode = Node<CardData, 'card'>

/** The ends of the wires are not places to click, so they are not seen. */
const HANDLE = 'pointer-events-none! size-px! min-h-0! min-w-0! border-0! bg-transparent! opacity-0!'

/** A card that React Flow only moves or measures does not render again. */
export const Card = memo(
  WorkspaceCard,
  (before: NodeProps<CardNode>, now: NodeProps<CardNode>) => before.data === now.data,
)

function WorkspaceCard({ id, data: { isChosen, isTarget, isTabStop } }: NodeProps<CardNode>) {
  const workspace = useCardWorkspace(id)
  // It was deleted; its node goes next.
  if (workspace === undefined) return null
  const state = cardStateOf(workspace)
  return (
    <div
      data-workspace={workspace.id}
      className={classNames(
        'group relative flex h-40 w-62 flex-col rounded-card border bg-surface p-4 text-left shadow-card',
        isChosen || isTarget ? 'border-accent ring-2 ring-accent-soft' : 'border-line hover:border-edge',
      )}
    >
      <Handle type="target" position={Position.Top} className={HANDLE} isConnectable={false} />
      <button
        type="button"
        data-card={workspace.id}
        tabIndex={isTabStop ? 0 : -1}
        aria-label={labelOf(workspace, state)}
        title={hintOf(workspace, state)}
        aria-current={isChosen}
        className="absolute inset-0 rounded-card"
        onClick={() => goTo({ workspaceId: workspace.id })}
      />
      {isTabStop ? <TabStopFocus id={workspace.id} /> : null}
      <CardContent workspace={workspace} state={state} />
      <WorkspaceMenu
        workspace={workspace}
        isTabStop={isTabStop}
        className="nodrag nopan absolute -top-3.5 -right-3.5 flex rounded-full border border-line bg-surface opacity-0 shadow-card focus-within:opacity-100 group-hover:opacity-100"
      />
      <Handle type="source" position={Position.Bottom} className={HANDLE} isConnectable={false} />
    </div>
  )
}

/** The way to the map by keyboard ends at its card with the tab stop. */
function TabStopFocus({ id }: { readonly id: string }) {
  useWantedFocus({ view: 'map' }, () => document.querySelector<HTMLElement>(`[data-card="${CSS.escape(id)}"]`)?.focus())
  return null
}

function CardContent({ workspace, state }: { readonly workspace: WorkspaceSummary; readonly state: CardState }) {
  const { dot, banner } = state
  return (
    <div className="pointer-events-none flex min-h-0 flex-1 flex-col">
      <div className="flex shrink-0 items-center gap-2">
        <Dot state={dot} />
        <span className="min-w-0 flex-1 truncate font-[650] text-[15px] leading-5">{workspace.name}</span>
        <Permission workspace={workspace} />
        {workspace.limits ? <Chip>limited</Chip> : null}
        <Chip mono className="max-w-24">
          {workspace.runtime}
        </Chip>
      </div>
      <p
        dir="auto"
        className={classNames(
          'mt-0.5 shrink-0 break-words pl-4 text-second',
          banner ? 'line-clamp-1 break-all' : 'line-clamp-2',
          workspace.role ? 'text-soft' : 'text-faint',
        )}
      >
        {workspace.role || 'No role yet'}
      </p>
      {banner ? <Banner {...banner} /> : null}
      <Counts state={state} />
    </div>
  )
}

function Permission({ workspace }: { readonly workspace: WorkspaceSummary }) {
  if (permissionOf(workspace) !== 'bypass') return null
  const [badge] = PERMISSION_SENTENCES.bypass
  return <Chip>{badge}</Chip>
}

function Counts({ state: { left, right, answeredAt } }: { readonly state: CardState }) {
  if (!(left || right || answeredAt)) return null
  return (
    <p className="mt-auto flex shrink-0 justify-between gap-2 text-faint text-time">
      <span className="min-w-0 truncate">{left}</span>
      <span className="shrink-0">
        {right === '' && answeredAt !== undefined ? (
          <>
            answered <Time at={answeredAt} />
          </>
        ) : (
          right
        )}
      </span>
    </p>
  )
}

function Banner({ kind, text, since }: NonNullable<CardState['banner']>) {
  return (
    <p
      data-banner={kind}
      className={classNames(
        'mt-2 flex shrink-0 gap-2 rounded-button border px-2.5 py-1.5 text-second leading-[18px]',
        kind === 'working'
          ? 'border-working-line bg-working-soft text-working'
          : 'border-transparent bg-needs-soft text-needs',
      )}
    >
      <span dir="auto" className={classNames('min-w-0 flex-1', kind === 'working' ? 'truncate' : 'line-clamp-2')}>
        {text}
      </span>
      {since === undefined ? null : <RunningTime since={since} />}
    </p>
  )
}
