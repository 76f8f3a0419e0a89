/** The side panel of one workspace: its name, and the tabs of `tabs.ts`. The whole screen on a phone. */
import { Suspense } from 'react'
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import { printable, printableName } from '../../../src/printable.ts'
import { useMay } from '../api/queries.ts'
import { asSentence } from '../api/sentence.ts'
import { cardStateOf } from '../canvas/card-state.ts'
import { WorkspaceMenu } from '../canvas/workspace-menu.tsx'
import { PANEL, useWantedFocus } from '../route/focus.ts'
import { goTo } from '../route/route.ts'
import { IconButton } from '../ui/button.tsx'
import { classNames } from '../ui/class-names.ts'
import { Dot } from '../ui/dot.tsx'
import { Loading } from '../ui/empty-state.tsx'
import { ErrorBoundary } from '../ui/error-boundary.tsx'
import { BackIcon, CloseIcon } from '../ui/icons.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { useUnsavedTabs } from '../ui/use-draft.ts'
import { TABS } from './tabs.ts'

const PANEL_ID = 'panel-content'

export function Panel({ workspace, tab }: { readonly workspace: WorkspaceSummary; readonly tab: string | undefined }) {
  const may = useMay()
  const tabs = TABS.filter(({ action }) => action === undefined || may(action))
  const chosen = tabs.find(({ id }) => id === tab) ?? tabs[0]
  const Content = chosen?.content
  const unsaved = useUnsavedTabs(workspace.id)
  return (
    <aside
      data-panel
      tabIndex={-1}
      aria-label={workspace.name}
      className={classNames(
        'focus-inside flex min-w-0 shrink-0 flex-col border-line border-l bg-surface max-md:w-full max-md:border-l-0',
        chosen?.isWide ? 'w-[clamp(480px,calc(100vw-296px),1160px)]' : 'w-120',
      )}
    >
      <PanelHeader workspace={workspace} />
      <div className="shrink-0 border-line border-b">
        <Tabs
          label="Views of the workspace"
          tabs={tabs}
          unsaved={unsaved}
          chosen={chosen?.id ?? ''}
          onChoose={(id) => goTo({ workspaceId: workspace.id, tab: id })}
          panelId={PANEL_ID}
        />
      </div>
      <div
        id={PANEL_ID}
        role="tabpanel"
        aria-labelledby={`tab-${chosen?.id}`}
        className="flex min-h-0 flex-1 flex-col overflow-y-auto"
      >
        <ErrorBoundary key={chosen?.id} what={`The tab ${chosen?.title}`}>
          <Suspense fallback={<Loading />}>
            {Content ? <Content key={workspace.id} workspace={workspace} /> : null}
            <ContentFocus workspaceId={workspace.id} tab={chosen?.id} />
          </Suspense>
        </ErrorBoundary>
      </div>
    </aside>
  )
}

/** Stands after the content, so that the focus comes when the content is there. A chat gives it to its composer. */
function ContentFocus({ workspaceId, tab }: { readonly workspaceId: string; readonly tab: string | undefined }) {
  useWantedFocus({ workspaceId, ...(tab && { tab }) }, () => {
    const panel = document.querySelector<HTMLElement>(PANEL)
    const composer = tab === 'chat' ? panel?.querySelector<HTMLElement>('textarea') : undefined
    ;(composer ?? panel)?.focus()
  })
  return null
}

function PanelHeader({ workspace }: { readonly workspace: WorkspaceSummary }) {
  const { role, runtime, model, limits = [] } = workspace
  const { dot, word } = cardStateOf(workspace)
  const close = () => goTo({})
  return (
    <header className="flex items-start gap-2 px-5 pt-4 pb-2 max-md:px-3">
      <IconButton label="Back" className="-ml-1 md:hidden" onClick={close}>
        <BackIcon />
      </IconButton>
      <div className="min-w-0 flex-1">
        <h2 title={workspace.name} className="flex items-center gap-2 font-[650] text-title">
          <Dot state={dot} />
          <span className="truncate">{workspace.name}</span>
        </h2>
        <p className="truncate pl-4 text-second text-soft">
          {printable([word, role, runtime, model && printableName(model)].filter(Boolean).join(' · '))}
        </p>
        {limits.map((limit) => (
          <p key={limit} data-limit="" className="mt-1 break-words pl-4 text-second text-working">
            {asSentence(limit)}
          </p>
        ))}
      </div>
      <WorkspaceMenu workspace={workspace} />
      <IconButton label="Close" className="max-md:hidden" onClick={close}>
        <CloseIcon />
      </IconButton>
    </header>
  )
}
