/**
 * `molecule workspace set` and `rename`: changes settings of a workspace. The keys are the fields of
 * `PATCH /workspaces/{id}`; the platform checks their values. An empty value removes a setting.
 */
import type { Command } from 'commander'
import type { WorkspaceSummary } from '../../../client/views.ts'
import { changeWorkspace, checkWorkspaceChange } from '../../../client/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'
import { withoutControls } from '../../../printable.ts'
import type { CommandContext } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import { didYouMean } from '../../terminal/near-misses.ts'
import { renderFields } from '../../terminal/output.ts'
import { workspaceSentence } from '../../terminal/task-text.ts'
import { parsePair, printWarnings, toFolder, toRuntime } from './workspace-create.ts'

/** Keys that are typed. `url` is a key of `runtime_config`, and a folder on another machine has its own rule. */
const SETTING_KEYS = [
  ...['name', 'role', 'runtime', 'model', 'parent', 'permission', 'working_dir'],
  ...['max_concurrent_tasks', 'max_attempts', 'tier'],
] as const

const CONFIG_PREFIX = 'runtime_config.'
/** Keys whose empty value removes the setting; an empty role is an empty text. */
const REMOVABLE: ReadonlySet<string> = new Set(['model', 'parent', 'permission'])
const NUMBERS: ReadonlySet<string> = new Set(['max_concurrent_tasks', 'max_attempts', 'tier'])
/** Where `workspace create` has a shorter flag. */
const FLAG_NAMES: Readonly<Record<string, string>> = {
  dir: 'working_dir',
  concurrency: 'max_concurrent_tasks',
  parent_id: 'parent',
}

const ALLOW_DUPLICATE = ['--allow-duplicate', 'also take a name that another workspace has'] as const

export function defineSet(command: Command, openContext: () => Promise<CommandContext>): void {
  command
    .description(`change settings: ${SETTING_KEYS.join(', ')}, or ${CONFIG_PREFIX}KEY for an option of the backend`)
    .argument('<workspace>', 'id or name')
    .argument('<setting...>', 'key=value; an empty value removes the setting')
    .option(...ALLOW_DUPLICATE)
    .action(async (workspace: string, settings: string[], { allowDuplicate }: SetFlags) => {
      const context = await openContext()
      const pairs = settings.map((text) => parsePair(text, 'a setting'))
      await change(context, workspace, {
        ...(await toChange(context, pairs)),
        allow_duplicate: allowDuplicate === true,
      })
    })
}

export function defineRename(command: Command, openContext: () => Promise<CommandContext>): void {
  command
    .description('give a workspace another name; its id, its files and its conversations stay')
    .argument('<workspace>', 'id or name')
    .argument('<name>', 'the new name')
    .option(...ALLOW_DUPLICATE)
    .action(async (workspace: string, name: string, { allowDuplicate }: SetFlags) =>
      change(await openContext(), workspace, { name, allow_duplicate: allowDuplicate === true }),
    )
}

interface SetFlags {
  readonly allowDuplicate?: true
}

type ChangeBody = Readonly<Record<string, unknown>>

async function change(context: CommandContext, idOrName: string, body: ChangeBody): Promise<void> {
  const client = context.platform()
  const id = await resolveWorkspaceId(client, idOrName)
  const before = await client.call('GET /workspaces/{id}', { id })
  printWarnings(context.terminal, { warnings: (await checkWorkspaceChange(client, id, body)).warnings })
  const after = await changeWorkspace(client, id, body)
  await context.show(after, () => renderChange(before, after))
}

/** Each changed field with its value before, then how the workspace stands now. */
function renderChange(before: WorkspaceSummary, after: WorkspaceSummary): string {
  const [old, next] = [fieldsOf(before), fieldsOf(after)]
  const changed = [...new Set([...old.keys(), ...next.keys()])].filter((key) => old.get(key) !== next.get(key))
  const shown = (value: string | undefined) => (value === undefined || value === '' ? 'none' : value)
  const lines = changed.map((key): [string, string] => [key, `${shown(old.get(key))} -> ${shown(next.get(key))}`])
  const table = lines.length === 0 ? 'nothing changed\n' : renderFields(lines)
  return `${table}${withoutControls(workspaceSentence(after))}\n`
}

/** The settings of a workspace as text, without what its work changes. */
function fieldsOf(workspace: WorkspaceSummary): Map<string, string> {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
  const { name, role, runtime, model, parent_id: parent, permission, working_dir: folder } = workspace
  const { max_concurrent_tasks, max_attempts, tier, runtime_config: config = {} } = workspace
  const settings = { name, role, runtime, model, parent, permission, working_dir: folder }
  const numbers = { max_concurrent_tasks, max_attempts, tier }
  const options = Object.entries(config)
    .filter(([key]) => !(SETTING_KEYS as readonly string[]).includes(key))
    .map(([key, value]) => [`${CONFIG_PREFIX}${key}`, value] as const)
  const known = [...Object.entries({ ...settings, ...numbers }), ...options]
  return new Map(known.flatMap(([key, value]) => (value === undefined || value === null ? [] : [[key, text(value)]])))
}

/** The body of the `PATCH`. */
async function toChange(context: CommandContext, pairs: readonly (readonly [string, string])[]): Promise<ChangeBody> {
  const body: Record<string, unknown> = {}
  const config: Record<string, unknown> = {}
  for (const [typed, value] of pairs) {
    const key = typed.startsWith(CONFIG_PREFIX) ? typed : knownKey(typed)
    if (key.startsWith(CONFIG_PREFIX)) config[key.slice(CONFIG_PREFIX.length)] = toOption(value)
    else body[key === 'parent' ? 'parent_id' : key] = await toField(context, key, value)
  }
  return Object.keys(config).length === 0 ? body : { ...body, runtime_config: config }
}

function knownKey(typed: string): string {
  const key = FLAG_NAMES[typed] ?? typed
  if ((SETTING_KEYS as readonly string[]).includes(key)) return key
  const near = didYouMean(key, [...SETTING_KEYS])
  const keys = near || `; the settings are ${SETTING_KEYS.join(', ')}.`
  const message = `there is no setting "${typed}"${keys} An option of the backend is written ${CONFIG_PREFIX}${typed}=VALUE`
  throw new MoleculeError('invalid_request', message)
}

async function toField(context: CommandContext, key: string, value: string): Promise<unknown> {
  if (value === '' && REMOVABLE.has(key)) return null
  if (value === '' && key !== 'role') {
    const removable = [...REMOVABLE].join(', ')
    throw new MoleculeError(
      'invalid_request',
      `${key} cannot be empty; an empty value removes ${removable} or an option`,
    )
  }
  if (NUMBERS.has(key)) return toNumber(key, value)
  if (key === 'parent') return await resolveWorkspaceId(context.platform(), value)
  if (key === 'runtime') return await toRuntime(value)
  return key === 'working_dir' ? toFolder(value, context) : value
}

function toNumber(key: string, value: string): number {
  if (/^\d{1,9}$/.test(value)) return Number(value)
  throw new MoleculeError('invalid_request', `${key} takes a whole number, not ${JSON.stringify(value)}`)
}

/** A list or an object as JSON; everything else is a text, as in `--set` of `workspace create`. Empty removes the key. */
function toOption(value: string): unknown {
  if (value === '') return null
  if (!/^\s*[[{]/.test(value)) return value
  try {
    return JSON.parse(value) as unknown
  } catch {
    return value
  }
}

/** For shell completion: the keys, each with its `=`. */
export const completeSetting = (): string[] => [...SETTING_KEYS.map((key) => `${key}=`), CONFIG_PREFIX]
