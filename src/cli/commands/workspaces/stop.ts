/**
 * `molecule stop`, `pause` and `resume`, for one workspace or for all. A stop cancels what runs and pauses; a pause cancels
 * nothing; a resume starts turns again. With --all, a workspace that fails does not keep the others from their turn.
 */
import type { Command } from 'commander'
import type { PlatformClient } from '../../../client/platform-client.ts'
import type { WorkspaceSummary } from '../../../client/views.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { withoutControls } from '../../../printable.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import { shellQuoted } from '../../terminal/own-command.ts'
import { workspaceSentence } from '../../terminal/task-text.ts'

/** What was done to one workspace; `canceled` are ids of tasks. */
interface ChangedWorkspace extends Pick<WorkspaceSummary, 'id' | 'name' | 'status' | 'status_reason' | 'queue_depth'> {
  readonly canceled?: readonly string[]
}

interface WorkspaceChangeKind {
  readonly change: (client: PlatformClient, id: string) => Promise<ChangedWorkspace>
  /** One call for all workspaces; default: `change` for each of them. */
  readonly changeAll?: (client: PlatformClient) => Promise<ChangeResult>
}

interface ChangeResult {
  readonly changed: readonly ChangedWorkspace[]
  readonly failures: readonly MoleculeError[]
}

export const define: DefineCommand = (command, openContext) => {
  command.option('--pause', 'cancel nothing: the stopped messages run again after "molecule resume"')
  defineForWorkspaces(
    command,
    openContext,
    ({ pause }: { pause?: boolean }): WorkspaceChangeKind =>
      pause === true
        ? { change: (client, id) => client.call('POST /workspaces/{id}/pause', { id, now: true }) }
        : { change: (client, id) => client.call('POST /workspaces/{id}/stop', { id }), changeAll: stopAll },
  )
}

export const definePause: DefineCommand = (command, openContext) => {
  command.option('--now', 'also stop the running turns; their messages run again later')
  defineForWorkspaces(
    command,
    openContext,
    ({ now }: { now?: boolean }): WorkspaceChangeKind => ({
      change: (client, id) => client.call('POST /workspaces/{id}/pause', { id, now }),
    }),
  )
}

export const defineResume: DefineCommand = (command, openContext) => {
  defineForWorkspaces(command, openContext, () => ({
    change: (client, id) => client.call('POST /workspaces/{id}/resume', { id }),
  }))
}

function defineForWorkspaces<Options>(
  command: Command,
  openContext: () => Promise<CommandContext>,
  kindOf: (options: Options) => WorkspaceChangeKind,
): void {
  command
    .argument('[workspace]', 'id or name')
    .option('--all', 'every workspace')
    .action(async (workspace: string | undefined, options: Options & { all?: boolean }) => {
      if ((workspace === undefined) !== (options.all === true)) {
        throw new MoleculeError('invalid_request', 'name one workspace, or use --all')
      }
      await changeWorkspaces(await openContext(), workspace, kindOf(options))
    })
}

async function changeWorkspaces(
  { platform, show, command }: CommandContext,
  workspace: string | undefined,
  { change, changeAll }: WorkspaceChangeKind,
): Promise<void> {
  const client = platform()
  const all =
    changeAll ??
    (async () =>
      changeEach(
        client,
        (await listWorkspaces(client)).map(({ id }) => id),
        change,
      ))
  const { changed, failures } =
    workspace === undefined
      ? await all(client)
      : { changed: [await change(client, await resolveWorkspaceId(client, workspace))], failures: [] }
  const [failure] = failures
  if (changed.length > 0 || failure === undefined) {
    const shown = changed.map(({ id, name, status, status_reason: reason, queue_depth: waiting, canceled }) => ({
      id,
      name,
      status,
      waiting: waiting ?? 0,
      // Of a paused one it only says what a pause is.
      ...(reason !== undefined && status !== 'paused' && { status_reason: reason }),
      canceled,
    }))
    await show(shown, () => shown.map((one) => lineOf(one, command)).join('') || 'There are no workspaces.\n')
  }
  if (failure !== undefined) throw failure
}

async function changeEach(
  client: PlatformClient,
  ids: readonly string[],
  change: WorkspaceChangeKind['change'],
): Promise<ChangeResult> {
  const changed: ChangedWorkspace[] = []
  const failures: MoleculeError[] = []
  for (const id of ids) {
    try {
      changed.push(await change(client, id))
    } catch (thrown) {
      // A workspace that was deleted meanwhile needs nothing any more.
      const error = toMoleculeError(thrown)
      if (error.code !== 'not_found') failures.push(error)
    }
  }
  return { changed, failures }
}

async function stopAll(client: PlatformClient): Promise<ChangeResult> {
  const { stopped, failed } = await client.call('POST /stop')
  return {
    changed: stopped.map((one) => ({ ...one, status: 'paused' })),
    failures: failed.map(({ name, message }) => new MoleculeError('internal', `${name} was not stopped: ${message}`)),
  }
}

interface ShownWorkspace {
  readonly name: string
  readonly status: string
  readonly status_reason?: string
  readonly waiting: number
  readonly canceled?: readonly string[]
}

/** `ana is paused: canceled 1 message (01M...); 2 messages wait for "molecule resume ana"`. */
function lineOf({ name, status, status_reason: why, waiting, canceled = [] }: ShownWorkspace, command: string): string {
  const wait = waiting === 1 ? '1 message waits' : `${waiting} messages wait`
  const facts = [
    ...(why === undefined ? [] : [why]),
    ...(canceled.length > 0 ? [`canceled ${count(canceled.length)} (${canceled.join(', ')})`] : []),
    ...(status === 'paused'
      ? [`${waiting > 0 ? `${wait} for` : 'new messages wait for'} "${command} resume ${shellQuoted(name)}"`]
      : []),
    ...(status !== 'paused' && waiting > 0 ? [wait] : []),
  ]
  return withoutControls(`${workspaceSentence({ name, status, status_reason: facts.join('; ') })}\n`)
}

const count = (messages: number): string => (messages === 1 ? '1 message' : `${messages} messages`)
