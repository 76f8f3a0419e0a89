/** A workspace as the page shows it: with the names of the workspaces that it waits for. */
import type { OpenDelegationView, WorkspaceSummary } from '../../../src/client/views.ts'

export interface ShownWorkspace extends WorkspaceSummary {
  /** It has asked them, and they have not answered. */
  readonly waitsFor?: readonly string[]
}

type Shown = ReadonlyMap<string, ShownWorkspace>

/** The same objects for the same workspace and names, so that only changed cards render again. */
const known = new WeakMap<WorkspaceSummary, { readonly key: string; readonly shown: ShownWorkspace }>()

export function withWaits(
  workspaces: ReadonlyMap<string, WorkspaceSummary>,
  open: readonly OpenDelegationView[],
): Shown {
  const byFrom = Map.groupBy(open, ({ from }) => from)
  if (byFrom.size === 0) return workspaces
  const shown = new Map<string, ShownWorkspace>(workspaces)
  for (const [from, all] of byFrom) {
    const workspace = workspaces.get(from)
    const waitsFor = all.flatMap(({ to }) => workspaces.get(to)?.name ?? [])
    if (workspace !== undefined && waitsFor.length > 0) shown.set(from, show(workspace, waitsFor))
  }
  return shown
}

function show(workspace: WorkspaceSummary, waitsFor: readonly string[]): ShownWorkspace {
  const key = waitsFor.join('\n')
  const before = known.get(workspace)
  if (before?.key === key) return before.shown
  const shown = { ...workspace, waitsFor }
  known.set(workspace, { key, shown })
  return shown
}
