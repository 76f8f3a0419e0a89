/** The card of one workspace on the map. The whole card is one button; its menu lies above it. */
import { Handle, type Node, type NodeProps, Position } from '@xyflow/react'
import { memo } from 'react'
import type { WorkspaceSummary } from '../../../src/client/workspace-calls.ts'
import { goTo } from '../app/route.ts'
import { Chip } from '../ui/chip.tsx'
import { classNames } from '../ui/class-names.ts'
import { Dot } from '../ui/dot.tsx'
import { RunningTime, Time } from '../ui/time.tsx'
import { useCardWorkspace } from './card-source.ts'
import { type CardState, cardStateOf, labelOf } from './card-state.ts'
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
        'group relative w-62 rounded-card border bg-surface p-4 text-left shadow-card',
        isChosen || isTarget ? 'border-accent ring-2 ring-accent-soft' : 'border-line hover:border-edge',
      )}
    >
      <Handle type="target" position={Position.Top} className={HANDLE} isConnectable={false} />
      <button
        type="button"
        data-card={workspace.id}
        tabIndex={isTabStop ? 0 : -1}
        aria-label={labelOf(workspace, state)}
        aria-current={isChosen}
        className="absolute inset-0 rounded-card"
        onClick={() => goTo({ workspaceId: workspace.id })}
      />
      <CardContent workspace={workspace} state={state} />
      <WorkspaceMenu
        workspace={workspace}
        className="nodrag nopan absolute -top-3.5 -right-3.5 flex rounded-full border border-line bg-surface opacity-0 shadow-card focus-within:opacity-100 group-hover:opacity-100"
      />
      <Handle type="source" position={Position.Bottom} className={HANDLE} isConnectable={false} />
    </div>
  )
}

function CardContent({ workspace, state }: { readonly workspace: WorkspaceSummary; readonly state: CardState }) {
  const { dot, banner } = state
  return (
    <div className="pointer-events-none">
      <div className="flex items-center gap-2">
        <Dot state={dot} />
        <span title={workspace.name} className="min-w-0 flex-1 truncate font-[650] text-[15px] leading-5">
          {workspace.name}
        </span>
        <Permission workspace={workspace} />
        <Chip mono className="max-w-24" title={workspace.runtime}>
          {workspace.runtime}
        </Chip>
      </div>
      <p
        className={classNames(
          'mt-0.5 line-clamp-2 break-words pl-4 text-second',
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

function Permission({ workspace: { permission } }: { readonly workspace: WorkspaceSummary }) {
  return permission === 'bypass' ? <Chip title="It never asks before it acts">never asks</Chip> : null
}

function Counts({ state: { left, right, answeredAt } }: { readonly state: CardState }) {
  if (!(left || right || answeredAt)) return null
  return (
    <p className="mt-3 flex justify-between gap-2 text-faint text-time">
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
      title={text}
      className={classNames(
        'mt-3 flex gap-2 rounded-button border px-2.5 py-1.5 text-second leading-[18px]',
        kind === 'working'
          ? 'border-working-line bg-working-soft text-working'
          : 'border-transparent bg-needs-soft text-needs',
      )}
    >
      <span className={classNames('min-w-0 flex-1', kind === 'working' ? 'truncate' : 'line-clamp-2')}>{text}</span>
      {since === undefined ? null : <RunningTime since={since} />}
    </p>
  )
}

/** A text of this length may need two lines. Too low only leaves room; too high cuts the lowest card of the map. */
const LINE_CHARACTERS = 29

/** The height of a card from its content, for the layout; the card itself is as high as its content. */
export function estimateHeight(workspace: WorkspaceSummary): number {
  const { banner, left, right, answeredAt } = cardStateOf(workspace)
  const roleLines = workspace.role.length > LINE_CHARACTERS ? 2 : 1
  const bannerHeight =
    banner === undefined ? 0 : 12 + (banner.kind === 'needs' && banner.text.length > LINE_CHARACTERS ? 50 : 32)
  return 34 + 22 + roleLines * 20 + bannerHeight + (left || right || answeredAt ? 28 : 0)
}
