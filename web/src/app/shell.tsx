/** The page with a session: bar, canvas, panel, and the views that open over them. */
import { lazy, Suspense, useEffect, useState } from 'react'
import { useLivePlatform } from '../api/live.ts'
import { useWorkspacesMaybe } from '../api/queries.ts'
import { CanvasView } from '../canvas/canvas-view.tsx'
import { Panel } from '../panel/panel.tsx'
import { classNames } from '../ui/class-names.ts'
import { Toasts } from '../ui/toasts.tsx'
import { PhoneBar } from './phone-bar.tsx'
import { ReconnectLine } from './reconnect-line.tsx'
import { goTo, usePlace } from './route.ts'
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
  const { workspaceId, tab, view } = usePlace()
  const workspaces = useWorkspacesMaybe()
  const opened = workspaceId === undefined ? undefined : workspaces?.get(workspaceId)
  usePaletteKey(() => setPaletteOpen(true))
  return (
    <div className="flex h-dvh flex-col">
      <TopBar onPalette={() => setPaletteOpen(true)} />
      <ReconnectLine />
      <div className="flex min-h-0 flex-1">
        <main className={classNames('relative min-w-0 flex-1', opened && 'max-md:hidden')}>
          <Suspense fallback={null}>{workspaces?.size === 0 ? <FirstRun /> : <CanvasView />}</Suspense>
        </main>
        {opened ? <Panel workspace={opened} tab={tab} /> : null}
      </div>
      {opened ? null : <PhoneBar onPalette={() => setPaletteOpen(true)} />}
      <Suspense fallback={null}>
        <Overlays view={view} isPaletteOpen={isPaletteOpen} onPaletteClose={() => setPaletteOpen(false)} />
      </Suspense>
      <Toasts />
    </div>
  )
}

interface OverlaysProps {
  readonly view: string | undefined
  readonly isPaletteOpen: boolean
  readonly onPaletteClose: () => void
}

function Overlays({ view, isPaletteOpen, onPaletteClose }: OverlaysProps) {
  const close = () => goTo({})
  return (
    <>
      {view === 'needs' ? <NeedsDrawer onClose={close} /> : null}
      {view === 'new' ? <CreateDialog onClose={close} /> : null}
      {isPaletteOpen ? <Palette onClose={onPaletteClose} /> : null}
    </>
  )
}

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
