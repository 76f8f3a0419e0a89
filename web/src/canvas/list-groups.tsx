/** The groups of the list. Wide: a grid of short lines. On a phone: a card for each family with a row each. */
import { memo } from 'react'
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import { usePlace, writePlace } from '../route/route.ts'
import { Chip } from '../ui/chip.tsx'
import { classNames } from '../ui/class-names.ts'
import { Dot } from '../ui/dot.tsx'
import { RunningTime } from '../ui/text/time.tsx'
import { countText } from '../ui/text/times.ts'
import { cardStateOf, lineOf } from './card-state.ts'
import type { ListGroup } from './families.ts'
import { usePhone } from './use-phone.ts'

export function ListGroups({ groups }: { readonly groups: readonly ListGroup[] }) {
  const isPhone = usePhone()
  const { workspaceId } = usePlace()
  const Group = isPhone ? PhoneGroup : WideGroup
  return (
    <div>
      {groups.map(({ parent, members }) => (
        <Group key={parent?.id ?? ''} parent={parent} members={members} chosenId={workspaceId} />
      ))}
    </div>
  )
}

interface GroupProps extends ListGroup {
  readonly chosenId: string | undefined
}

function WideGroup({ parent, members, chosenId }: GroupProps) {
  return (
    <section className="mt-4 first:mt-0" aria-label={parent?.name ?? 'No parent'}>
      <h2 className="mb-1.5 flex items-center gap-2 text-second">
        {parent === undefined ? (
          <span className="font-[650]">No parent</span>
        ) : (
          <a
            href={writePlace({ workspaceId: parent.id })}
            className="flex min-w-0 items-center gap-2 rounded-tag font-[650]"
          >
            <Dot state={cardStateOf(parent).dot} />
            <span className="truncate">{parent.name}</span>
          </a>
        )}
        <span className="text-faint">{countText(members.length)}</span>
      </h2>
      <ul className="grid grid-cols-[repeat(auto-fill,minmax(208px,1fr))] gap-x-2 gap-y-1">
        {members.map(({ workspace }) => (
          <li key={workspace.id}>
            <WideRow workspace={workspace} isChosen={workspace.id === chosenId} />
          </li>
        ))}
      </ul>
    </section>
  )
}

interface RowProps {
  readonly workspace: WorkspaceSummary
  readonly isChosen: boolean
}

const ROW_LOOKS = {
  working: 'border-working-line bg-working-soft',
  needs: 'border-needs-line bg-needs-soft',
}

const NOTE_COLOURS = { working: 'text-working', needs: 'text-needs', none: 'text-faint' }

/** The name wins over the task, the task over the runtime. */
const WideRow = memo(function ListRow({ workspace, isChosen }: RowProps) {
  const state = cardStateOf(workspace)
  const { dot, word, banner } = state
  const isQuiet = dot === 'offline' || dot === 'paused'
  const quietLine = isQuiet ? word : workspace.runtime
  return (
    <a
      href={writePlace({ workspaceId: workspace.id })}
      data-workspace={workspace.id}
      aria-current={isChosen}
      title={banner ? `${workspace.name}: ${banner.text}` : workspace.name}
      className={classNames(
        'flex h-8 items-center gap-2 rounded-button border px-2.5 text-second',
        banner ? ROW_LOOKS[banner.kind] : 'border-line bg-surface hover:border-edge',
        isChosen && 'ring-2 ring-accent',
      )}
    >
      <Dot state={dot} />
      <span className={classNames('max-w-3/4 shrink-0 truncate', isQuiet && 'text-soft')}>{workspace.name}</span>
      <span className="sr-only">{word}</span>
      <span className={classNames('ml-auto min-w-0 truncate pl-1 text-time', NOTE_COLOURS[banner?.kind ?? 'none'])}>
        {banner ? lineOf(state) : quietLine}
      </span>
      {banner?.since === undefined ? null : (
        <span className="shrink-0 text-time text-working">
          <RunningTime since={banner.since} />
        </span>
      )}
    </a>
  )
})

function PhoneGroup({ parent, members, chosenId }: GroupProps) {
  const rows = parent === undefined ? members : [{ workspace: parent, depth: 0 }, ...members]
  return (
    <ul className="mt-4 overflow-hidden rounded-card border border-line bg-surface first:mt-0">
      {rows.map(({ workspace, depth }, index) => (
        <li key={workspace.id}>
          <PhoneRow workspace={workspace} isChosen={workspace.id === chosenId} depth={depth} isFirst={index === 0} />
        </li>
      ))}
    </ul>
  )
}

const PHONE_INDENTS = ['pl-4', 'pl-9', 'pl-14']

const PhoneRow = memo(function FamilyRow(props: RowProps & { readonly depth: number; readonly isFirst: boolean }) {
  const { workspace, depth, isFirst } = props
  const state = cardStateOf(workspace)
  const { dot, word, banner } = state
  const { queue_depth: waiting = 0 } = workspace
  return (
    <a
      href={writePlace({ workspaceId: workspace.id })}
      data-workspace={workspace.id}
      className={classNames('focus-inside block pr-4', PHONE_INDENTS[Math.min(depth, 2)])}
    >
      <span className="flex gap-3">
        <Dot state={dot} className="mt-4.5" />
        <span className={classNames('min-w-0 flex-1 py-2.5', !isFirst && 'border-line border-t')}>
          <span className="flex items-center justify-between gap-2">
            <span className="min-w-0 truncate font-[600] text-[15px] leading-[22px]">{workspace.name}</span>
            <span className="sr-only">{word}</span>
            <Chip mono>{workspace.runtime}</Chip>
          </span>
          <span className="flex justify-between gap-2 text-second text-soft">
            <span className={classNames('min-w-0 truncate', banner && NOTE_COLOURS[banner.kind])}>{lineOf(state)}</span>
            {banner?.since !== undefined ? (
              <span className="text-working">
                <RunningTime since={banner.since} />
              </span>
            ) : (
              <span className="shrink-0">{waiting > 0 && banner ? `${countText(waiting)} waiting` : ''}</span>
            )}
          </span>
        </span>
      </span>
    </a>
  )
})
