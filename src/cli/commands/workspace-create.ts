/** `molecule workspace create`: turns flags into the body of `POST /workspaces`. */
import type { Command } from 'commander'
import type { PlatformClient } from '../../client/platform-client.ts'
import { MoleculeError } from '../../errors.ts'
import type { CommandContext } from '../command-context.ts'
import { resolveWorkspaceId } from '../platform/platform-access.ts'
import { renderFields } from '../terminal/output.ts'

export function defineCreate(command: Command, openContext: () => Promise<CommandContext>): void {
  command
    .description('create a workspace')
    .argument('<name>', 'name of the workspace')
    .option('--runtime <name>', 'the backend, or external for a workspace that "molecule connect" runs')
    .option('--role <text>', 'what the workspace is for; its peers read it')
    .option('--model <name>', 'the model that the agent uses')
    .option('--parent <workspace>', 'the parent workspace')
    .option('--dir <folder>', 'folder the agent works in')
    .option('--template <name>', 'a folder in templates/ of the data folder to copy')
    .option('--permission <mode>', 'ask, allowed_tools or bypass')
    .option('--concurrency <number>', 'how many turns may run at once')
    .option('--set <key=value>', 'an option of the backend, as cmd=cat; may be repeated', collectValues, [])
    .action(async (name: string, options: CreateWorkspaceOptions) => create(await openContext(), name, options))
}

export interface CreateWorkspaceOptions {
  readonly runtime?: string
  readonly role?: string
  readonly model?: string
  readonly parent?: string
  readonly dir?: string
  readonly template?: string
  readonly permission?: string
  readonly concurrency?: string
  readonly set?: readonly string[]
}

export const collectValues = (value: string, before: readonly string[]): readonly string[] => [...before, value]

async function create(
  { platform, show }: CommandContext,
  name: string,
  options: CreateWorkspaceOptions,
): Promise<void> {
  const client = platform()
  const workspace = await client.createWorkspace(await toCreateBody(client, name, options))
  const { id, status, status_reason: reason, runtime, auth_token: token, connect } = workspace
  await show(workspace, () =>
    renderFields([
      ['name', name],
      ['id', id],
      ['runtime', runtime],
      ['status', reason ? `${status} (${reason})` : status],
      ['token', token as string | undefined],
      ['connect', connect as string | undefined],
    ]),
  )
}

/** The body of `POST /workspaces`, without the keys that were not given. */
export async function toCreateBody(
  client: PlatformClient,
  name: string,
  options: CreateWorkspaceOptions,
): Promise<Record<string, unknown>> {
  const { runtime, role, model, parent, dir, template, permission, concurrency, set = [] } = options
  const parentId = parent === undefined ? undefined : await resolveWorkspaceId(client, parent)
  const entries = Object.entries({
    ...{ name, runtime, role, model, template, permission },
    parent_id: parentId,
    working_dir: dir,
    max_concurrent_tasks: concurrency === undefined ? undefined : parseConcurrency(concurrency),
    runtime_config: set.length === 0 ? undefined : Object.fromEntries(set.map(parsePair)),
  })
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

function parsePair(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw new MoleculeError('invalid_request', `--set takes key=value, not ${JSON.stringify(text)}`)
}

function parseConcurrency(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text)
  throw new MoleculeError('invalid_request', `--concurrency takes a number from 1 to 9999, not ${JSON.stringify(text)}`)
}
