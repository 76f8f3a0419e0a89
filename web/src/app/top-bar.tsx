/** The bar: the way home, the palette, the numbers of the platform, and the actions of the whole platform. */
import { logOut } from '../api/client.ts'
import { forgetSession, useMay, useMe, useWorkspaces } from '../api/queries.ts'
import { platformCounts } from '../canvas/platform-counts.ts'
import { AllActionButtons } from '../canvas/stop-all.tsx'
import { NeedsButton } from '../needs/needs-button.tsx'
import { openView } from '../route/route.ts'
import { Button, IconButton } from '../ui/button.tsx'
import { Logo, PlusIcon } from '../ui/icons.tsx'
import { Menu } from '../ui/menu.tsx'
import { costText, countText } from '../ui/text/times.ts'

export function TopBar({ onPalette }: { readonly onPalette: () => void }) {
  return (
    <header className="flex h-13 shrink-0 items-center gap-4 border-line border-b bg-surface px-4 max-md:h-14">
      <a href="#/" className="flex shrink-0 items-center gap-2 rounded-button font-[650]">
        <Logo />
        Molecule
      </a>
      <PaletteButton onClick={onPalette} />
      <div className="ml-auto flex items-center gap-2">
        <Counts />
        <div className="flex items-center gap-2 max-md:hidden">
          <AllActionButtons variant="quiet" />
          <NeedsButton />
        </div>
        <NewWorkspaceButton />
        <div className="max-md:hidden">
          <AccountMenu />
        </div>
      </div>
    </header>
  )
}

function PaletteButton({ onClick }: { readonly onClick: () => void }) {
  return (
    <button
      type="button"
      onClick={onClick}
      className="flex h-8 w-90 min-w-0 items-center justify-between gap-2 rounded-button border border-line bg-raised px-3 text-faint text-second hover:border-edge max-md:hidden"
    >
      <span className="truncate">Find a workspace, an action or a message</span>
      <kbd className="shrink-0 rounded-tag border border-line bg-surface px-1 font-mono text-chip">Ctrl K</kbd>
    </button>
  )
}

function Counts() {
  const workspaces = useWorkspaces()
  if (workspaces.size === 0) return null
  const { working, queued, costUsd, hasUnknownCost } = platformCounts(workspaces.values())
  return (
    <p className="mr-2 whitespace-nowrap text-second text-soft max-lg:hidden">
      <Figure text={countText(working)} /> working · <Figure text={countText(queued)} /> queued
      {costUsd === null ? null : (
        <>
          {' · '}
          <Figure text={costText(costUsd, hasUnknownCost)} /> today
        </>
      )}
    </p>
  )
}

const Figure = ({ text }: { readonly text: string }) => <strong className="font-[650] text-ink">{text}</strong>

function NewWorkspaceButton() {
  const may = useMay()
  if (!may('workspace.create')) return null
  const open = () => openView('new')
  return (
    <>
      <Button variant="ink" className="max-md:hidden" onClick={open}>
        New workspace
      </Button>
      <IconButton label="New workspace" className="md:hidden" onClick={open}>
        <PlusIcon />
      </IconButton>
    </>
  )
}

function AccountMenu() {
  const me = useMe()
  const leave = () => {
    logOut().then(forgetSession, forgetSession)
  }
  const label = `Logged in as ${me?.name ?? ''}, ${me?.role ?? ''}`
  return <Menu label={label} items={[{ title: 'Log out', onChoose: leave }]} />
}
