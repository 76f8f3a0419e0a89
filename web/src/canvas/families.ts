/** Workspaces by parent: trees, everything below one of them, and groups for the list. Pure. */
import type { WorkspaceSummary } from '../../../src/client/views.ts'

export interface FamilyTree {
  readonly workspace: WorkspaceSummary
  readonly children: readonly FamilyTree[]
}

/** Made once: `localeCompare` makes one for each comparison. "Worker 2" comes before "Worker 10". */
const BY_NAME = new Intl.Collator('en', { numeric: true })

type WorkspaceOrder = (a: WorkspaceSummary, b: WorkspaceSummary) => number

const byName: WorkspaceOrder = (a, b) => BY_NAME.compare(a.name, b.name) || byId(a, b)
const byId: WorkspaceOrder = (a, b) => (a.id < b.id ? -1 : 1)

/** The oldest first: a workspace that is new or renamed leaves the others in their places. */
export const byAge: WorkspaceOrder = (a, b) => Date.parse(a.created_at) - Date.parse(b.created_at) || byId(a, b)

/** The workspaces as trees, by name. A parent that is unknown, or that would close a circle, counts as none. */
export function buildFamilies(workspaces: Iterable<WorkspaceSummary>, order: WorkspaceOrder = byName): FamilyTree[] {
  const all = [...workspaces].sort(order)
  const known = new Map(all.map((workspace) => [workspace.id, workspace]))
  const byParent = Map.groupBy(all, (workspace) => parentOf(workspace, known))
  const build = (workspace: WorkspaceSummary): FamilyTree => ({
    workspace,
    children: (byParent.get(workspace.id) ?? []).map(build),
  })
  return (byParent.get(undefined) ?? []).map(build)
}

function parentOf(
  { id, parent_id: parent }: WorkspaceSummary,
  known: ReadonlyMap<string, WorkspaceSummary>,
): string | undefined {
  const seen = new Set([id])
  for (let at = parent; at; at = known.get(at)?.parent_id) {
    if (seen.has(at)) return undefined
    seen.add(at)
  }
  return parent && known.has(parent) ? parent : undefined
}

/** Everything below a workspace, at any depth. */
export function descendantsOf(id: string, all: ReadonlyMap<string, WorkspaceSummary>): WorkspaceSummary[] {
  const flatten = ({ workspace, children }: FamilyTree): WorkspaceSummary[] => [workspace, ...children.flatMap(flatten)]
  const find = (trees: readonly FamilyTree[]): FamilyTree | undefined => {
    for (const tree of trees) {
      const found = tree.workspace.id === id ? tree : find(tree.children)
      if (found !== undefined) return found
    }
    return undefined
  }
  return find(buildFamilies(all.values()))?.children.flatMap(flatten) ?? []
}

export interface ListGroup {
  /** The workspace above the others; undefined for those without a family. */
  readonly parent: WorkspaceSummary | undefined
  readonly members: readonly { readonly workspace: WorkspaceSummary; readonly depth: number }[]
}

/** One group for each family, then one for the workspaces without a family. */
export function groupByParent(workspaces: Iterable<WorkspaceSummary>): ListGroup[] {
  const families = buildFamilies(workspaces)
  const members = (trees: readonly FamilyTree[], depth: number): ListGroup['members'] =>
    trees.flatMap(({ workspace, children }) => [{ workspace, depth }, ...members(children, depth + 1)])
  const groups: ListGroup[] = families
    .filter(({ children }) => children.length > 0)
    .map(({ workspace, children }) => ({ parent: workspace, members: members(children, 1) }))
  const single = families.filter(({ children }) => children.length === 0)
  return single.length === 0 ? groups : [...groups, { parent: undefined, members: members(single, 0) }]
}
