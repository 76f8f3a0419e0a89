/**
 * Writes workspaces of the platform as a team file, so that applying the file changes nothing. Settings at their default
 * are left out. Secrets are left out too, with a comment, because the platform never shows them.
 */
import { Document, isMap, visit } from 'yaml'
import type { PlatformClient } from '../../client/platform-client.ts'
import type { ScheduleView, WorkspaceSummary } from '../../client/views.ts'
import { readWorkspaceFile } from '../../client/workspaces.ts'
import { MoleculeError } from '../../errors.ts'
import { DEFAULT_ATTEMPTS, DEFAULT_SLOTS } from '../../workspaces/config/config-file.ts'
import { holdsHidden } from '../../workspaces/hide-secrets.ts'
import { amountOf, isBudgetKey } from './compare-workspace.ts'
import { escapeVariable, TEAM_FILE_BYTES_MAX } from './read-yaml.ts'
import { OWN_KEYS, PROMPT_FILES } from './team-file.ts'

/** The name of the team where the workspaces were not all made by one. */
const DEFAULT_TEAM = 'team'

interface ExportedTeam {
  readonly team: string
  readonly workspaces: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export async function exportTeam(
  chosen: readonly WorkspaceSummary[],
  all: readonly WorkspaceSummary[],
  client: PlatformClient,
): Promise<{ readonly value: unknown; readonly text: string; readonly notes: readonly string[] }> {
  requireUniqueNames(chosen)
  const notes: string[] = []
  const allSchedules = await client.all('GET /schedules', 'schedules')
  const entries: [string, Record<string, unknown>][] = []
  for (const workspace of chosen) {
    const prompts = await readPrompts(workspace, client, notes)
    const schedules = schedulesOf(workspace, allSchedules, notes)
    entries.push([workspace.name, settingsOf({ workspace, prompts, schedules }, all)])
  }
  const [team = DEFAULT_TEAM, ...otherTeams] = new Set(chosen.map((workspace) => workspace.team))
  const name = otherTeams.length === 0 ? team : DEFAULT_TEAM
  const document = toDocument({ team: name, workspaces: Object.fromEntries(entries) }, chosen)
  const text = document.toString({ lineWidth: 0 })
  if (Buffer.byteLength(text) <= TEAM_FILE_BYTES_MAX) return { value: document.toJS(), text, notes }
  const message = `the file would have more than ${TEAM_FILE_BYTES_MAX} bytes; name fewer workspaces`
  throw new MoleculeError('too_large', message)
}

function requireUniqueNames(chosen: readonly WorkspaceSummary[]): void {
  for (const [name, same] of Map.groupBy(chosen, (workspace) => workspace.name)) {
    if (same.length < 2) continue
    const ids = same.map(({ id }) => id).join(', ')
    const message = `${same.length} workspaces are called "${name}" (${ids}); a team file needs one name for each`
    throw new MoleculeError('invalid_request', message)
  }
}

async function readPrompts(
  { id, name }: WorkspaceSummary,
  client: PlatformClient,
  notes: string[],
): Promise<Record<string, string>> {
  const prompts: Record<string, string> = {}
  try {
    for (const file of PROMPT_FILES) {
      const text = await readWorkspaceFile(client, id, file)
      if (text?.includes('\uFFFD')) notes.push(`${file} of "${name}" is not UTF-8 and is left out`)
      else if (text !== undefined) prompts[file] = text
    }
  } catch (thrown) {
    // On a database that several platforms share, the files may be on the machine of another one.
    if (!(thrown instanceof MoleculeError) || thrown.code !== 'unsupported_operation') throw thrown
    notes.push(`the prompts of "${name}" are left out: ${thrown.message}`)
  }
  return prompts
}

/** A schedule without what is at its default, under its name. Two of one name cannot be told apart. */
function schedulesOf(
  { id, name: workspace }: WorkspaceSummary,
  all: readonly ScheduleView[],
  notes: string[],
): Record<string, unknown> {
  const own = Map.groupBy(
    all.filter(({ workspace_id: workspaceId }) => workspaceId === id),
    ({ name }) => name,
  )
  const entries = [...own].flatMap(([name, same]) => {
    const [{ cron, time_zone: zone, text, missed, same_conversation: isOne, report_to: reportTo }] = same as [
      ScheduleView,
    ]
    if (same.length > 1) {
      notes.push(`${same.length} schedules of "${workspace}" are called "${name}" and are left out`)
      return []
    }
    const settings = Object.entries({
      cron,
      time_zone: zone === 'UTC' ? undefined : zone,
      text,
      missed: missed === 'skip' ? undefined : missed,
      same_conversation: isOne ? true : undefined,
      report_to: reportTo === '' ? undefined : reportTo,
    })
    return [[name, Object.fromEntries(settings.filter(([, value]) => value !== undefined))]]
  })
  return Object.fromEntries(entries)
}

interface ExportedWorkspace {
  readonly workspace: WorkspaceSummary
  readonly prompts: Readonly<Record<string, string>>
  readonly schedules: Readonly<Record<string, unknown>>
}

function settingsOf(
  { workspace, prompts, schedules }: ExportedWorkspace,
  all: readonly WorkspaceSummary[],
): Record<string, unknown> {
  const { id, role, runtime, model, permission, working_dir: folder } = workspace
  const { max_concurrent_tasks: slots, max_attempts: attempts, runtime_config: config = {} } = workspace
  const shown = Object.entries(config).filter(([key, value]) => !OWN_KEYS.includes(key) && !holdsHidden(value))
  const options = shown.filter(([key]) => !isBudgetKey(key))
  const budgets = shown.flatMap(([key, value]) => (isBudgetKey(key) ? [[key, amountOf(value)]] : []))
  const parent = all.find((other) => other.id === workspace.parent_id)
  const isOwnFolder = folder === undefined || folder.endsWith(`/workspaces/${id.replace('ws_', 'ws-')}/work`)
  const entries = Object.entries({
    role: role === '' ? undefined : role,
    runtime,
    model,
    permission,
    parent: parent === undefined ? undefined : parentName(parent, all),
    max_concurrent_tasks: slots === DEFAULT_SLOTS ? undefined : slots,
    max_attempts: attempts === DEFAULT_ATTEMPTS ? undefined : attempts,
    working_dir: isOwnFolder ? undefined : folder,
    runtime_config: options.length === 0 ? undefined : Object.fromEntries(options),
    budgets: budgets.length === 0 ? undefined : Object.fromEntries(budgets),
    prompts: Object.keys(prompts).length === 0 ? undefined : prompts,
    schedules: Object.keys(schedules).length === 0 ? undefined : schedules,
  })
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

/** The name, or the id where another workspace has the same name. */
const parentName = ({ id, name }: WorkspaceSummary, all: readonly WorkspaceSummary[]): string =>
  all.filter((other) => other.name === name).length === 1 ? name : id

function toDocument(value: ExportedTeam, chosen: readonly WorkspaceSummary[]): Document {
  const document = new Document(value)
  visit(document, {
    Scalar(key, node) {
      if (key !== 'key' && typeof node.value === 'string') node.value = escapeVariable(node.value)
    },
  })
  for (const { name, runtime_config: config = {} } of chosen) {
    const secrets = Object.keys(config).filter((key) => holdsHidden(config[key]))
    const settings = document.getIn(['workspaces', name])
    if (secrets.length === 0 || !isMap(settings)) continue
    settings.comment = ` not written, because it may be secret: ${secrets.map((key) => `runtime_config.${key}`).join(', ')}`
  }
  return document
}
