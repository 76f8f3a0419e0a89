/** The page with a session: bar, canvas, panel, and the views that open over them. */
import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react'
import { useLivePlatform } from '../api/live.ts'
import { useWorkspacesMaybe } from '../api/queries.ts'
import { CanvasView } from '../canvas/canvas-view.tsx'
import { AllActionDialogs } from '../canvas/stop-all.tsx'
import { Panel } from '../panel/panel.tsx'
import { useEscape, useFocusBack } from '../route/focus.ts'
import { closeView, goTo, type PageView, usePlace } from '../route/route.ts'
import { Button } from '../ui/button.tsx'
import { classNames } from '../ui/class-names.ts'
import { useAskBeforeLeaving } from '../ui/drafts.ts'
import { ErrorBoundary } from '../ui/error-boundary.tsx'
import { Toasts } from '../ui/toasts.tsx'
import { PhoneBar } from './phone-bar.tsx'
import { ReconnectLine } from './reconnect-line.tsx'
import { TopBar } from './top-bar.tsx'

// Each is a chunk of its own, loaded when it is first shown.
const CreateDialog = lazy(() =>
  import('../create/create-dialog.tsx').then((chunk) => ({ default: chunk.CreateDialog })),
)
const FirstRun = lazy(() => import('../create/first-run.tsx').then((chunk) => ({ default: chunk.FirstRun })))
const NeedsDrawer = lazy(() => import('../needs/needs-drawer.tsx').then((chunk) => ({ default: chunk.NeedsDrawer })))
const Palette = lazy(() => import('../palette/palette.tsx').then((chunk) => ({ default: chunk.Palette })))

export function Shell() {
  useLivePlatform()
  const [isPaletteOpen, setPaletteOpen] = useState(false)
  const { workspaceId, tab, view, isUnknown = false } = usePlace()
  const workspaces = useWorkspacesMaybe()
  const opened = workspaceId === undefined ? undefined : workspaces?.get(workspaceId)
  usePaletteKey(() => setPaletteOpen(true))
  useEscape()
  useAskBeforeLeaving()
  useFocusBack(opened?.id)
  return (
    <div className="flex h-dvh flex-col">
      <ErrorBoundary what="The bar">
        <TopBar onPalette={() => setPaletteOpen(true)} />
      </ErrorBoundary>
      <ReconnectLine />
      {isUnknown || (workspaceId !== undefined && workspaces !== undefined && opened === undefined) ? (
        <UnknownAddress what={isUnknown ? 'This address leads nowhere.' : 'There is no workspace at this address.'} />
      ) : null}
      <div className="flex min-h-0 flex-1">
        <main className={classNames('relative min-w-0 flex-1', opened && 'max-md:hidden')}>
          <ErrorBoundary what="The list of workspaces">
            <Suspense fallback={null}>{workspaces?.size === 0 ? <FirstRun /> : <CanvasView />}</Suspense>
          </ErrorBoundary>
        </main>
        {opened ? (
          <ErrorBoundary key={opened.id} what="This workspace" action={<Button onClick={toStart}>Close</Button>}>
            <Panel workspace={opened} tab={tab} />
          </ErrorBoundary>
        ) : null}
      </div>
      {opened ? null : <PhoneBar onPalette={() => setPaletteOpen(true)} />}
      <Suspense fallback={null}>
        <Overlays view={view} isPaletteOpen={isPaletteOpen} onPaletteClose={() => setPaletteOpen(false)} />
      </Suspense>
      <AllActionDialogs />
      <Toasts />
    </div>
  )
}

const toStart = () => goTo({})

/** The start is shown below it. */
const UnknownAddress = ({ what }: { readonly what: string }) => (
  <p role="alert" className="flex shrink-0 items-center gap-3 border-line border-b bg-raised px-4 py-1.5 text-second">
    <span className="min-w-0 flex-1">{what} You see the start.</span>
    <Button variant="quiet" onClick={toStart}>
      Close
    </Button>
  </p>
)

interface OverlaysProps {
  readonly view: PageView | undefined
  readonly isPaletteOpen: boolean
  readonly onPaletteClose: () => void
}

function Overlays({ view, isPaletteOpen, onPaletteClose }: OverlaysProps) {
  return (
    <>
      {view === 'needs' ? (
        <Overlay what="What needs you" onClose={closeView}>
          <NeedsDrawer onClose={closeView} />
        </Overlay>
      ) : null}
      {view === 'new' ? (
        <Overlay what="The new workspace" onClose={closeView}>
          <CreateDialog onClose={closeView} />
        </Overlay>
      ) : null}
      {isPaletteOpen ? (
        <Overlay what="The search" onClose={onPaletteClose}>
          <Palette onClose={onPaletteClose} />
        </Overlay>
      ) : null}
    </>
  )
}

interface OverlayProps {
  readonly what: string
  readonly onClose: () => void
  readonly children: ReactNode
}

const Overlay = ({ what, onClose, children }: OverlayProps) => (
  <ErrorBoundary what={what} action={<Button onClick={onClose}>Close</Button>}>
    {children}
  </ErrorBoundary>
)

function usePaletteKey(open: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      open()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  })
}
