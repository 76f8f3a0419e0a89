/** Joins the workspaces of a team file with those of the platform, and finds the tree of parents after an apply. */
import type { WorkspaceSummary } from '../../client/views.ts'
import { MoleculeError } from '../../errors.ts'
import type { TeamFile, TeamWorkspace } from './team-file.ts'

/** `name` is a workspace of the file that does not exist yet. */
export type ParentTarget = { readonly id: string } | { readonly name: string }

/** A workspace of the file, the workspace of that name on the platform, and its parent as the file wants it. */
export interface JoinedMember {
  readonly wanted: TeamWorkspace
  readonly found: WorkspaceSummary | undefined
  readonly parent: ParentTarget | undefined
}

/** Throws `bad_config` with the line for a name that two workspaces have, and for an unknown parent. */
export function joinTeam({ workspaces }: TeamFile, existing: readonly WorkspaceSummary[]): JoinedMember[] {
  const named = Map.groupBy(existing, ({ name }) => name)
  const own = new Set(workspaces.map(({ name }) => name))
  const problems: string[] = []
  const only = (name: string, at: string): WorkspaceSummary | undefined => {
    const found = named.get(name) ?? []
    if (found.length > 1) {
      const ids = found.map(({ id }) => id).join(', ')
      problems.push(`${at}: ${found.length} workspaces are called "${name}" (${ids}); rename or delete all but one`)
    }
    return found[0]
  }
  const members = workspaces.map((wanted): JoinedMember => {
    const found = only(wanted.name, wanted.at())
    const { parent } = wanted
    if (parent === undefined) return { wanted, found, parent: undefined }
    const known = named.get(parent)?.[0]
    if (own.has(parent)) return { wanted, found, parent: known === undefined ? { name: parent } : { id: known.id } }
    const outside = existing.find(({ id }) => id === parent) ?? only(parent, wanted.at('parent'))
    if (outside !== undefined) return { wanted, found, parent: { id: outside.id } }
    problems.push(`${wanted.at('parent')}: there is no workspace "${parent}" in the file or on the platform`)
    return { wanted, found, parent: undefined }
  })
  if (problems.length > 0) throw new MoleculeError('bad_config', problems.join('\n'))
  return members
}

/** The key of a workspace in the tree: its id, or its name while it has none. */
const keyOf = ({ wanted, found }: JoinedMember): string => found?.id ?? newKey(wanted.name)

const newKey = (name: string): string => `new ${name}`

/** The parent of every workspace, existing or new, after the file was applied. */
export function parentsAfter(
  team: readonly JoinedMember[],
  existing: readonly WorkspaceSummary[],
): Map<string, string | undefined> {
  const parents = new Map(existing.map(({ id, parent_id: parent }) => [id, parent ?? undefined]))
  for (const member of team) {
    const { parent } = member
    if (parent === undefined) parents.set(keyOf(member), undefined)
    else parents.set(keyOf(member), 'id' in parent ? parent.id : newKey(parent.name))
  }
  return parents
}

/**
 * The members of the team, each after all workspaces that will be above it. In this order no change of a parent meets an
 * old parent below it, which the platform would refuse as a cycle.
 */
export function orderByParents(
  team: readonly JoinedMember[],
  existing: readonly WorkspaceSummary[],
): readonly JoinedMember[] {
  const parents = parentsAfter(team, existing)
  const depths = new Map(team.map((member) => [member, depthOf(member, parents)]))
  return [...team].sort((a, b) => (depths.get(a) ?? 0) - (depths.get(b) ?? 0))
}

function depthOf(member: JoinedMember, parents: ReadonlyMap<string, string | undefined>): number {
  let depth = 0
  for (let above = parents.get(keyOf(member)); above !== undefined; above = parents.get(above)) {
    depth++
    if (depth <= parents.size) continue
    const { wanted } = member
    const message = `${wanted.at('parent')}: "${wanted.parent}" is below "${wanted.name}" itself on the platform`
    throw new MoleculeError('bad_config', message)
  }
  return depth
}
