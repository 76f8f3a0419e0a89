/**
 * Compares the file of a team with the platform: which workspaces to create, to change and, with `prune`, to delete, and
 * in which order, with their schedules. Names identify workspaces. Reads from the platform and changes nothing.
 */
import type { PlatformClient } from '../../client/platform-client.ts'
import type { ScheduleView, WorkspaceSummary } from '../../client/views.ts'
import { checkNewWorkspace, checkWorkspaceChange, listWorkspaces } from '../../client/workspaces.ts'
import { MoleculeError } from '../../errors.ts'
import { SCHEDULES_MAX } from '../../workspaces/schedules.ts'
import { compareSchedules, type ScheduleWrite } from './compare-schedules.ts'
import { compareWorkspace, type FieldChange, isBudgetKey, type PromptChange } from './compare-workspace.ts'
import type { TeamFile } from './team-file.ts'
import { joinTeam, orderByParents, type ParentTarget, parentsAfter } from './team-tree.ts'

export interface TeamPlan {
  readonly team: string
  /** In the order in which they are made: a parent before its children, deletions last. */
  readonly changes: readonly WorkspacePlan[]
  /** For the owner, beside the changes. */
  readonly notes: readonly string[]
}

export type WorkspacePlan = WorkspaceUpdate | PlannedDeletion

export interface WorkspaceUpdate {
  readonly action: 'create' | 'change'
  readonly name: string
  /** Of the existing workspace. */
  readonly id?: string
  /** For people; secrets are hidden. */
  readonly fields: readonly FieldChange[]
  /** Of `POST` or `PATCH`, without the parent. */
  readonly body: Readonly<Record<string, unknown>>
  /** Absent: the parent stays. Null: no parent. */
  readonly parent?: ParentTarget | null
  readonly prompts: readonly PromptChange[]
  readonly schedules: readonly ScheduleWrite[]
  at(...keys: readonly string[]): string
}

export interface PlannedDeletion {
  readonly action: 'delete'
  readonly kind: 'workspace' | 'schedule'
  /** Of a schedule with the name of its workspace. */
  readonly name: string
  readonly id: string
}

export interface PlanOptions {
  readonly prune: boolean
  /** Also writes the secrets of the file, which cannot be compared with the stored ones. */
  readonly writeSecrets: boolean
}

export async function planTeam(file: TeamFile, client: PlatformClient, options: PlanOptions): Promise<TeamPlan> {
  const existing = await listWorkspaces(client)
  const schedules = await client.all('GET /schedules', 'schedules')
  const team = joinTeam(file, existing)
  const names = new Set(file.workspaces.map(({ name }) => name))
  const leftOver = existing.filter(({ name, team: madeBy }) => madeBy === file.team && !names.has(name))
  const deleted = options.prune ? leftOver : []
  const order = orderByParents(team, existing)
  requireNothingBelow(deleted, parentsAfter(team, existing), existing)
  const updates: WorkspaceUpdate[] = []
  for (const member of order) {
    const { wanted, found } = member
    const own = schedules.filter(({ workspace_id: id }) => id === found?.id)
    const changed = await compareWorkspace({ ...member, existing }, client, options)
    const times = compareSchedules(wanted, own, file.team)
    const fields = [...changed.fields, ...times.fields]
    const update = { ...changed, fields, schedules: times.schedules, name: wanted.name, at: wanted.at }
    if (found === undefined) updates.push({ ...update, action: 'create', body: { ...changed.body, team: file.team } })
    else if (fields.length > 0) updates.push({ ...update, action: 'change', id: found.id })
  }
  requireRoom(updates, schedules)
  const leftOverSchedules = findLeftOver(file, schedules, { existing, gone: leftOver })
  return {
    team: file.team,
    changes: [...updates, ...(options.prune ? leftOverSchedules : []), ...deepestFirst(deleted, existing)],
    notes: [
      ...updates.flatMap(({ id }) =>
        otherTeamNote(
          existing.find((workspace) => workspace.id === id),
          file.team,
        ),
      ),
      ...(options.prune ? [] : leftOver.map(({ name }) => leftOverNote(`"${name}"`))),
      ...(options.prune ? [] : leftOverSchedules.map(({ name }) => leftOverNote(name))),
      ...(await checkUpdates(updates, client)),
    ],
  }
}

function requireNothingBelow(
  deleted: readonly WorkspaceSummary[],
  parents: ReadonlyMap<string, string | undefined>,
  existing: readonly WorkspaceSummary[],
): void {
  const gone = new Map(deleted.map(({ id, name }) => [id, name]))
  for (const [id, parent] of parents) {
    const above = gone.get(parent ?? '')
    if (above === undefined || gone.has(id)) continue
    const name = existing.find((workspace) => workspace.id === id)?.name ?? id.replace(/^new /, '')
    const message = `--prune cannot delete "${above}": "${name}" is below it and stays; give "${name}" another parent first`
    throw new MoleculeError('unsupported_operation', message)
  }
}

/** The schedules that this team made and that the file no longer has, except those that go with their workspace. */
function findLeftOver(
  file: TeamFile,
  schedules: readonly ScheduleView[],
  { existing, gone }: { readonly existing: readonly WorkspaceSummary[]; readonly gone: readonly WorkspaceSummary[] },
): PlannedDeletion[] {
  const names = new Map(existing.map(({ id, name }) => [id, name]))
  for (const { id } of gone) names.delete(id)
  return schedules.flatMap(({ id, name, team, workspace_id: workspaceId }): PlannedDeletion[] => {
    const workspace = names.get(workspaceId)
    const wanted = file.workspaces.find((one) => one.name === workspace)?.schedules ?? []
    const isOwn = team === file.team && workspace !== undefined && !wanted.some((schedule) => schedule.name === name)
    return isOwn ? [{ action: 'delete', kind: 'schedule', id, name: `schedule "${name}" of "${workspace}"` }] : []
  })
}

/** Prevents that the last schedules of a file are refused when the first are made. */
function requireRoom(updates: readonly WorkspaceUpdate[], schedules: readonly ScheduleView[]): void {
  const added = updates.flatMap((update) => update.schedules).filter(({ id }) => id === undefined).length
  if (added === 0 || schedules.length + added <= SCHEDULES_MAX) return
  const message = `the file adds ${added} schedules to ${schedules.length}, and a platform has at most ${SCHEDULES_MAX}`
  throw new MoleculeError('bad_config', message)
}

function deepestFirst(deleted: readonly WorkspaceSummary[], existing: readonly WorkspaceSummary[]): PlannedDeletion[] {
  const parents = new Map(existing.map(({ id, parent_id: parent }) => [id, parent ?? undefined]))
  const depthOf = (id: string | undefined): number => (id === undefined ? 0 : 1 + depthOf(parents.get(id)))
  return [...deleted]
    .sort((a, b) => depthOf(b.id) - depthOf(a.id))
    .map(({ id, name }) => ({ action: 'delete', kind: 'workspace', id, name }))
}

/** Two files that name one workspace would change it back and forth. */
const otherTeamNote = (found: WorkspaceSummary | undefined, team: string): string[] =>
  found?.team === undefined || found.team === team ? [] : [`"${found.name}" was made by the team "${found.team}"`]

const leftOverNote = (what: string): string =>
  `${what} was made by this team and is not in the file; --prune deletes it`

/** Lets the platform check every new setting before the first change, so that a bad file changes nothing. */
async function checkUpdates(updates: readonly WorkspaceUpdate[], client: PlatformClient): Promise<string[]> {
  const notes: string[] = []
  for (const { name, id, body, at } of updates) {
    if (Object.keys(body).length === 0) continue
    try {
      const check =
        id === undefined ? checkNewWorkspace(client, { ...body, name }) : checkWorkspaceChange(client, id, body)
      const { ok, reason, warnings } = await check
      notes.push(...warnings.map((warning) => `"${name}": ${warning}`))
      if (!ok) notes.push(`"${name}" will not be able to run yet: ${reason}`)
    } catch (thrown) {
      if (!(thrown instanceof MoleculeError) || thrown.code !== 'invalid_request') throw thrown
      // The line of the platform's own file would mislead beside the line of this one.
      const problem = thrown.message.replace(/^\S*config\.yaml:\d+: /, '')
      const message = `${at(...keyIn(problem))}: "${name}": ${problem}`
      throw new MoleculeError('bad_config', message, { cause: thrown })
    }
  }
  return notes
}

/** The key of the file that a refusal of the platform is about. */
function keyIn(message: string): string[] {
  const option = /(?:runtime_config\.|option ")([\w-]+)/.exec(message)?.[1]
  if (option !== undefined) return [isBudgetKey(option) ? 'budgets' : 'runtime_config', option]
  const key = /\b(working_dir|permission|role|model|max_attempts|max_concurrent_tasks)\b/.exec(message)?.[1]
  return [key ?? 'runtime']
}
