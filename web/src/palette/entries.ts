/** What the palette finds: workspaces, the views of the page, and actions. */
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import type { PagePlace, PageView } from '../route/route.ts'

export interface PaletteEntry {
  readonly id: string
  readonly title: string
  /** What choosing it does, at the end of the line. */
  readonly hint: string
  readonly run: () => void
}

const ENTRIES_MAX = 12

/**
 * The entries with every word of the query in their title. Titles that begin with the query come first, then those with
 * a word that begins with it.
 */
export function findEntries(entries: readonly PaletteEntry[], query: string): PaletteEntry[] {
  const wanted = query.trim().toLowerCase()
  const words = wanted.split(/\s+/)
  const found = entries.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)))
  const rank = ({ title }: PaletteEntry): number => {
    const lower = title.toLowerCase()
    if (lower.startsWith(wanted)) return 0
    return lower.split(/\s+/).some((word) => word.startsWith(wanted)) ? 1 : 2
  }
  return found
    .map((entry, index) => ({ entry, index, rank: rank(entry) }))
    .sort((a, b) => a.rank - b.rank || a.index - b.index)
    .slice(0, ENTRIES_MAX)
    .map(({ entry }) => entry)
}

export interface EntryActions {
  readonly may: (action: string) => boolean
  readonly open: (place: PagePlace) => void
  readonly openView: (view: PageView) => void
  readonly restart: (workspace: WorkspaceSummary) => void
  readonly pause: (workspace: WorkspaceSummary) => void
  readonly resume: (workspace: WorkspaceSummary) => void
  /** What can be done to all workspaces now: Stop all, Resume all. */
  readonly all: readonly { readonly title: string; readonly run: () => void }[]
}

/** It opens over what is there; the other views take its place. */
const isOver = (view: PageView): boolean => view === 'needs' || view === 'new'

export function makeEntries(workspaces: Iterable<WorkspaceSummary>, actions: EntryActions): PaletteEntry[] {
  const { may, open, openView, restart, pause, resume } = actions
  const known = [...workspaces]
  const views = [
    { title: 'New workspace', view: 'new', action: 'workspace.create' },
    { title: 'Needs you', view: 'needs', action: 'pending.read' },
    { title: 'All workspaces as a list', view: 'list', action: 'workspace.read' },
    { title: 'All workspaces as a map', view: 'map', action: 'workspace.read' },
  ] as const
  return [
    ...known.map(({ id, name }) => ({
      id: `open ${id}`,
      title: name,
      hint: 'open the chat',
      run: () => open({ workspaceId: id, tab: 'chat' }),
    })),
    ...views
      .filter(({ action }) => may(action))
      .map(({ title, view }) => ({
        id: view,
        title,
        hint: 'open',
        run: () => (isOver(view) ? openView(view) : open({ view })),
      })),
    ...actions.all.map(({ title, run }) => ({ id: title, title, hint: 'action', run })),
    ...known.flatMap((workspace): PaletteEntry[] => {
      const { id, name, status } = workspace
      const entry = (verb: string, run: () => void) => ({
        id: `${verb} ${id}`,
        title: `${verb} ${name}`,
        hint: 'action',
        run,
      })
      return [
        ...(may('workspace.restart') ? [entry('Restart', () => restart(workspace))] : []),
        ...(may('workspace.pause')
          ? [status === 'paused' ? entry('Resume', () => resume(workspace)) : entry('Pause', () => pause(workspace))]
          : []),
      ]
    }),
  ]
}
