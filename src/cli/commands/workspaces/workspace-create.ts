/** `molecule workspace create`: turns flags into the body of `POST /workspaces`. */
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { createWorkspace, type WorkspaceBody } from '../../../client/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'
import { withoutControls } from '../../../printable.ts'
import type { CommandContext } from '../../command-context.ts'
import { readRunningPlatform } from '../../data-folder/data-folder.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import { isAtUrl, LOOPBACK_HOSTS } from '../../platform/recorded-platform.ts'
import { renderFields } from '../../terminal/output.ts'
import { ownProgram } from '../../terminal/own-command.ts'
import { workspaceStatusText } from '../../terminal/task-text.ts'
import type { Terminal } from '../../terminal/terminal.ts'

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
    .option('--set <key=value>', 'an option of the backend, as cmd=cat; may be repeated', collectValues)
    .option('--allow-duplicate', 'also take a name that another workspace has')
    .action(async (name: string, options: CreateWorkspaceOptions) => create(await openContext(), name, options))
}

export interface CreateWorkspaceOptions {
  readonly runtime?: string
  readonly role?: string
  readonly model?: string
  readonly parent?: string
  readonly dir?: string
  readonly template?: string
  /** As it was typed: the platform refuses other words. */
  readonly permission?: NonNullable<WorkspaceBody['permission']>
  readonly concurrency?: string
  readonly set?: readonly string[]
  readonly allowDuplicate?: true
}

/** Of an option that may be repeated. Without a default: help would print it as `(default: [])`. */
export const collectValues = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]

async function create(context: CommandContext, name: string, options: CreateWorkspaceOptions): Promise<void> {
  const workspace = await createWorkspace(context.platform(), await toCreateBody(context, name, options))
  printWarnings(context.terminal, workspace)
  const { id, status, status_reason: reason, runtime, auth_token: token, connect } = workspace
  const program = ownProgram(context.terminal.env)
  await context.show(workspace, () =>
    renderFields([
      ['name', name],
      ['id', id],
      ['runtime', runtime],
      ['status', reason ? `${workspaceStatusText(status)} (${reason})` : workspaceStatusText(status)],
      ['token', token],
      ['connect', connect?.replace(/^molecule(?= )/, () => program)],
    ]),
  )
}

/** Settings of a new workspace that have no effect, and a name that is taken: on stderr, one line each. */
export function printWarnings({ err }: Pick<Terminal, 'err'>, { warnings }: Readonly<Record<string, unknown>>): void {
  for (const warning of Array.isArray(warnings) ? warnings : []) err(`warning: ${withoutControls(String(warning))}\n`)
}

/** The body of `POST /workspaces`. */
export async function toCreateBody(
  context: CommandContext,
  name: string,
  options: CreateWorkspaceOptions,
): Promise<WorkspaceBody> {
  const { runtime, role, model, parent, dir, template, permission, concurrency, set = [], allowDuplicate } = options
  const parentId = parent === undefined ? undefined : await resolveWorkspaceId(context.platform(), parent)
  return {
    name,
    role,
    model,
    template,
    permission,
    runtime: runtime === undefined ? undefined : await toRuntime(runtime),
    parent_id: parentId,
    working_dir: dir === undefined ? undefined : toFolder(dir, context),
    max_concurrent_tasks: concurrency === undefined ? undefined : parseConcurrency(concurrency),
    runtime_config: set.length === 0 ? undefined : Object.fromEntries(set.map((text) => parsePair(text))),
    allow_duplicate: allowDuplicate === true,
  }
}

/** `claude` means `claude-code`, as for `connect`. The backends are loaded only here: other commands start without them. */
export async function toRuntime(name: string): Promise<string> {
  const { longBackendName } = await import('../../../backends/backends.ts')
  return longBackendName(name)
}

/** The absolute path of a folder on the machine of the platform; a relative one begins in the current folder. */
export function toFolder(typed: string, context: Pick<CommandContext, 'apiUrl' | 'dataDir'>): string {
  const path = typed === '~' || typed.startsWith('~/') ? join(homedir(), typed.slice(1)) : typed
  if (isAbsolute(path) || isOnThisMachine(context)) return resolve(path)
  const message = `the platform at ${context.apiUrl} runs on another machine; give the whole path of the folder there`
  throw new MoleculeError('invalid_request', message)
}

/** True where the platform sees the same folders as this command. */
export function isOnThisMachine({ apiUrl, dataDir }: Pick<CommandContext, 'apiUrl' | 'dataDir'>): boolean {
  const running = readRunningPlatform(dataDir)
  if (running !== undefined && URL.canParse(apiUrl) && isAtUrl(running, apiUrl)) return true
  return URL.canParse(apiUrl) && LOOPBACK_HOSTS.has(new URL(apiUrl).hostname)
}

export function parsePair(text: string, what = '--set'): [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw new MoleculeError('invalid_request', `${what} takes key=value, not ${JSON.stringify(text)}`)
}

function parseConcurrency(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text)
  throw new MoleculeError('invalid_request', `--concurrency takes a number from 1 to 9999, not ${JSON.stringify(text)}`)
}
