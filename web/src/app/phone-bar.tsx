/** The bar at the bottom of a phone. */
import { type ReactNode, useState } from 'react'
import { logOut } from '../api/client.ts'
import { forgetSession } from '../api/queries.ts'
import { AllActionButtons } from '../canvas/stop-all.tsx'
import { useNeeds } from '../needs/use-needs.ts'
import { goTo, openView, usePlace } from '../route/route.ts'
import { Button } from '../ui/button.tsx'
import { classNames } from '../ui/class-names.ts'
import { Dialog } from '../ui/dialog.tsx'
import { BellIcon, FindIcon, MoreIcon, WorkspacesIcon } from '../ui/icons.tsx'
import { countText } from '../ui/text/times.ts'

export function PhoneBar({ onPalette }: { readonly onPalette: () => void }) {
  const { view } = usePlace()
  const [isMoreOpen, setMoreOpen] = useState(false)
  const needs = useNeeds()
  return (
    <nav
      aria-label="Views"
      className="flex shrink-0 justify-around border-line border-t bg-surface pb-[env(safe-area-inset-bottom)] md:hidden"
    >
      <BarButton title="Workspaces" icon={<WorkspacesIcon />} isCurrent={view === undefined} onClick={() => goTo({})} />
      {needs ? (
        <BarButton
          title="Needs you"
          icon={<BellIcon />}
          count={needs.count}
          isCurrent={view === 'needs'}
          onClick={() => openView('needs')}
        />
      ) : null}
      <BarButton title="Find" icon={<FindIcon />} onClick={onPalette} />
      <BarButton title="More" icon={<MoreIcon className="size-5" />} onClick={() => setMoreOpen(true)} />
      {isMoreOpen ? <MoreDialog onClose={() => setMoreOpen(false)} /> : null}
    </nav>
  )
}

interface BarButtonProps {
  readonly title: string
  readonly icon: ReactNode
  readonly count?: number
  readonly isCurrent?: boolean
  readonly onClick: () => void
}

function BarButton({ title, icon, count = 0, isCurrent = false, onClick }: BarButtonProps) {
  return (
    <button
      type="button"
      aria-current={isCurrent}
      onClick={onClick}
      className={classNames(
        'focus-inside relative flex h-16 flex-1 flex-col items-center justify-center gap-0.5 text-time',
        isCurrent ? 'font-[600] text-ink' : 'text-soft',
      )}
    >
      <span className="relative">
        {icon}
        {count > 0 ? (
          <span className="absolute -top-2 left-3 min-w-4 rounded-full bg-needs px-1 text-center text-chip text-surface">
            {countText(count)}
          </span>
        ) : null}
      </span>
      {title}
    </button>
  )
}

function MoreDialog({ onClose }: { readonly onClose: () => void }) {
  const leave = () => {
    logOut().then(forgetSession, forgetSession)
  }
  return (
    <Dialog title="More" onClose={onClose}>
      <div className="flex flex-col gap-2">
        <AllActionButtons onChoose={onClose} />
        <Button onClick={leave}>Log out</Button>
      </div>
    </Dialog>
  )
}
