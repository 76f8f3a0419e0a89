/** The difference between a workspace of a team file and the workspace of that name on the platform. */
import { isDeepStrictEqual } from 'node:util'
import type { PlatformClient } from '../../client/platform-client.ts'
import type { WorkspaceSummary } from '../../client/views.ts'
import { readWorkspaceFile } from '../../client/workspaces.ts'
import type { Json } from '../../protocol/a2a.ts'
import { DEFAULT_ATTEMPTS, DEFAULT_SLOTS } from '../../workspaces/config/config-file.ts'
import { hideSecrets, holdsHidden } from '../../workspaces/hide-secrets.ts'
import { HIDDEN_SECRET } from '../../workspaces/workspace.ts'
import { BUDGET_KEYS, OWN_KEYS, PROMPT_FILES, type PromptFile } from './team-file.ts'
import type { JoinedMember, ParentTarget } from './team-tree.ts'

/** One difference, for people. An undefined value means that there is none. */
export interface FieldChange {
  readonly key: string
  readonly before?: Json
  readonly after?: Json
}

export interface PromptChange {
  readonly file: PromptFile
  /** Null removes the file. */
  readonly text: string | null
}

interface WorkspaceComparison {
  readonly fields: readonly FieldChange[]
  readonly body: Readonly<Record<string, unknown>>
  readonly parent?: ParentTarget | null
  readonly prompts: readonly PromptChange[]
}

/** Without the schedules. There are no fields where the platform has the workspace as the file wants it. */
export async function compareWorkspace(
  { wanted, found, parent, existing }: JoinedMember & { readonly existing: readonly WorkspaceSummary[] },
  client: PlatformClient,
  { writeSecrets }: { readonly writeSecrets: boolean },
): Promise<WorkspaceComparison> {
  const settings = compareSettings(wanted, found)
  const config = compareConfig(wanted.runtimeConfig, found?.runtime_config ?? {}, writeSecrets)
  const parents = compareParent({ parent, wantedName: wanted.parent, found, existing })
  const files = await comparePrompts(wanted.prompts, found, client)
  const name = found === undefined ? { name: wanted.name } : {}
  const options = Object.keys(config.body).length === 0 ? {} : { runtime_config: config.body }
  return {
    fields: [...settings.fields, ...parents.fields, ...config.fields, ...files.fields],
    body: { ...name, ...settings.body, ...options },
    ...(parents.fields.length > 0 && { parent: parent ?? null }),
    prompts: files.prompts,
  }
}

interface ComparedBody {
  readonly fields: FieldChange[]
  readonly body: Record<string, unknown>
}

function compareSettings(wanted: JoinedMember['wanted'], found: WorkspaceSummary | undefined): ComparedBody {
  const { role, runtime, model, permission, workingDir } = wanted
  const settings: readonly (readonly [
    key: keyof WorkspaceSummary,
    value: Json | undefined,
    fallback: Json | undefined,
  ])[] = [
    ['runtime', runtime, undefined],
    ['role', role, ''],
    ['model', model, undefined],
    ['permission', permission, undefined],
    ['max_concurrent_tasks', wanted.maxConcurrentTasks, DEFAULT_SLOTS],
    ['max_attempts', wanted.maxAttempts, DEFAULT_ATTEMPTS],
    ['working_dir', workingDir ?? (found?.working_dir as string | undefined), undefined],
  ]
  const fields: FieldChange[] = []
  const body: Record<string, unknown> = {}
  for (const [key, value, fallback] of settings) {
    const before = found === undefined ? fallback : (found[key] as Json | undefined)
    if (value === before) continue
    fields.push({
      key,
      ...given('before', before === '' ? undefined : before),
      ...given('after', value === '' ? undefined : value),
    })
    body[key] = value ?? null
  }
  return { fields, body }
}

/**
 * A key that the file leaves out is removed. A secret is not compared, because the platform never shows it: it stays as it
 * is, unless the owner asks to write those of the file.
 */
function compareConfig(
  wanted: Readonly<Record<string, unknown>>,
  found: Readonly<Record<string, unknown>>,
  writeSecrets: boolean,
): ComparedBody {
  const fields: FieldChange[] = []
  const body: Record<string, unknown> = {}
  const change = (key: string, value: Json | undefined) => {
    const before = found[key] as Json | undefined
    const after = value === undefined ? undefined : hideSecrets(value, key)
    fields.push({
      key: `${isBudgetKey(key) ? 'budgets' : 'runtime_config'}.${key}`,
      ...given('before', before),
      ...given('after', after),
    })
    body[key] = value ?? null
  }
  for (const [key, value] of Object.entries(wanted)) {
    if (!isSameSetting(key, value as Json, found) || (writeSecrets && holdsHidden(found[key])))
      change(key, value as Json)
  }
  for (const [key, value] of Object.entries(found)) {
    if (key in wanted || OWN_KEYS.includes(key) || holdsHidden(value)) continue
    change(key, undefined)
  }
  return { fields, body }
}

export const isBudgetKey = (key: string): boolean => BUDGET_KEYS.some((budget) => budget === key)

/** A form writes an amount as text. */
export const amountOf = (value: unknown): unknown => (typeof value === 'string' ? Number(value) : value)

/** A secret inside a text is compared by what the platform shows of it. */
const isSameSetting = (key: string, wanted: Json, found: Readonly<Record<string, unknown>>): boolean =>
  isBudgetKey(key)
    ? matches(wanted, amountOf(found[key]))
    : matches(wanted, found[key]) || isDeepStrictEqual(hideSecrets(wanted, key), found[key])

/** True where the values are equal, apart from what the platform hides. */
function matches(wanted: unknown, shown: unknown): boolean {
  if (shown === HIDDEN_SECRET) return true
  if (!isObject(wanted) || !isObject(shown) || Array.isArray(wanted) !== Array.isArray(shown)) {
    return isDeepStrictEqual(wanted, shown)
  }
  const keys = new Set([...Object.keys(wanted), ...Object.keys(shown)])
  return [...keys].every((key) => matches(wanted[key], shown[key]))
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

interface ParentInput extends Pick<JoinedMember, 'parent' | 'found'> {
  readonly wantedName: string | undefined
  readonly existing: readonly WorkspaceSummary[]
}

function compareParent({ parent, wantedName, found, existing }: ParentInput): { readonly fields: FieldChange[] } {
  const beforeId = found?.parent_id ?? undefined
  const before = existing.find(({ id }) => id === beforeId)
  const isSame = parent === undefined ? beforeId === undefined : 'id' in parent && parent.id === beforeId
  if (isSame) return { fields: [] }
  return { fields: [{ key: 'parent', ...given('before', before?.name ?? beforeId), ...given('after', wantedName) }] }
}

async function comparePrompts(
  wanted: JoinedMember['wanted']['prompts'],
  found: WorkspaceSummary | undefined,
  client: PlatformClient,
): Promise<{ readonly fields: FieldChange[]; readonly prompts: PromptChange[] }> {
  const fields: FieldChange[] = []
  const prompts: PromptChange[] = []
  for (const file of PROMPT_FILES) {
    const text = wanted[file]
    if (text === undefined) continue
    const before = found === undefined ? undefined : await readWorkspaceFile(client, found.id, file)
    if ((before ?? null) === text) continue
    fields.push({ key: file, ...given('before', before), ...given('after', text ?? undefined) })
    prompts.push({ file, text })
  }
  return { fields, prompts }
}

const given = <K extends string>(key: K, value: Json | undefined) =>
  (value === undefined ? {} : { [key]: value }) as { readonly [key in K]?: Json }
