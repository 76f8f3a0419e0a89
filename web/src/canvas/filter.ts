/** The filter of the list: by state, and by a text in name, role or runtime. Pure. */
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import type { DotState } from '../ui/dot.tsx'
import { cardStateOf } from './card-state.ts'

export const STATE_FILTERS: readonly { readonly state: DotState; readonly title: string }[] = [
  { state: 'working', title: 'Working' },
  { state: 'needs', title: 'Needs you' },
  { state: 'online', title: 'Online' },
  { state: 'paused', title: 'Paused' },
  { state: 'offline', title: 'Offline' },
]

export interface ListFilter {
  readonly text: string
  readonly state: DotState | undefined
}

export function filterWorkspaces(
  workspaces: Iterable<WorkspaceSummary>,
  { text, state }: ListFilter,
): WorkspaceSummary[] {
  const wanted = text.trim().toLowerCase()
  return [...workspaces].filter((workspace) => {
    if (state !== undefined && !cardStateOf(workspace).states.includes(state)) return false
    if (wanted === '') return true
    return [workspace.name, workspace.role, workspace.runtime].some((value) => value.toLowerCase().includes(wanted))
  })
}

/** A workspace that is paused and needs a person counts in both states. */
export function countStates(workspaces: Iterable<WorkspaceSummary>): ReadonlyMap<DotState, number> {
  const counts = new Map<DotState, number>()
  for (const workspace of workspaces) {
    for (const state of cardStateOf(workspace).states) counts.set(state, (counts.get(state) ?? 0) + 1)
  }
  return counts
}
