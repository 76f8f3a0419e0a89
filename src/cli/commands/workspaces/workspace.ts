/** `molecule workspace`: list, create, inspect, set, rename, connect-command, delete, restart, pause, resume, delegate. */
import type { Command } from 'commander'
import type { PlatformClient } from '../../../client/platform-client.ts'
import type { WorkspaceSummary } from '../../../client/views.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'
import { withoutControls } from '../../../printable.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import { askLine } from '../../terminal/ask-line.ts'
import { type Column, renderFields } from '../../terminal/output.ts'
import { readUsd } from '../../terminal/read-usd.ts'
import { workspaceSentence, workspaceStatusText } from '../../terminal/task-text.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { defineConnectCommand } from './workspace-connect.ts'
import { defineCreate } from './workspace-create.ts'
import { defineRename, defineSet } from './workspace-set.ts'

const WORKSPACE_ARGUMENT = 'id or name'

export const define: DefineCommand = (command, openContext) => {
  command
    .command('list')
    .description('list the workspaces')
    .action(async () => list(await openContext()))
  defineCreate(command.command('create'), openContext)
  command
    .command('inspect')
    .description('show all properties of a workspace')
    .argument('<workspace>', WORKSPACE_ARGUMENT)
    .action(async (workspace: string) => inspect(await openContext(), workspace))
  defineSet(command.command('set'), openContext)
  defineRename(command.command('rename'), openContext)
  defineConnectCommand(command.command('connect-command'), openContext)
  command
    .command('delete')
    .description('delete a workspace; its open messages fail, its files are kept for 7 days')
    .argument('<workspace>', WORKSPACE_ARGUMENT)
    .option('--yes', 'do not ask for confirmation')
    .option('--cascade', 'also delete its child workspaces')
    .action(async (workspace: string, options: DeleteOptions) => remove(await openContext(), workspace, options))
  defineStateCommands(command, openContext)
  command
    .command('delegate')
    .description('give a workspace a task and print its answer')
    .argument('<workspace>', WORKSPACE_ARGUMENT)
    .argument('<task>', 'what to do; - reads it from stdin')
    .option('--async', 'do not wait; print the id of the task')
    .option('--max-cost <usd>', 'what the task and all it leads to may cost, in US dollars', readUsd)
    .action(async (workspace: string, task: string, options: { async?: boolean; maxCost?: number }) => {
      const { send } = await import('../messages/agent-send.ts')
      const { async: isAsync, maxCost: maxCostUsd } = options
      await send(await openContext(), { workspace, text: task, wait: isAsync !== true, maxCostUsd })
    })
}

function defineStateCommands(command: Command, openContext: () => Promise<CommandContext>): void {
  command
    .command('restart')
    .description('rebuild the backend for the next turn, and check whether it can run')
    .argument('<workspace>', WORKSPACE_ARGUMENT)
    .action(async (workspace: string) =>
      changeState(await openContext(), workspace, (client, id) => client.call('POST /workspaces/{id}/restart', { id })),
    )
  command
    .command('pause')
    .description('keep the queue and start no turn')
    .argument('<workspace>', WORKSPACE_ARGUMENT)
    .option('--now', 'also stop the running turns; their messages run again later')
    .action(async (workspace: string, { now }: { now?: boolean }) =>
      changeState(await openContext(), workspace, (client, id) =>
        client.call('POST /workspaces/{id}/pause', { id, now }),
      ),
    )
  command
    .command('resume')
    .description('start turns again after a pause')
    .argument('<workspace>', WORKSPACE_ARGUMENT)
    .action(async (workspace: string) =>
      changeState(await openContext(), workspace, (client, id) => client.call('POST /workspaces/{id}/resume', { id })),
    )
}

const COLUMNS: readonly Column<WorkspaceSummary>[] = [
  { title: 'name', of: ({ name }) => name },
  { title: 'id', of: ({ id }) => id, isWhole: true },
  { title: 'runtime', of: ({ runtime }) => runtime },
  {
    title: 'status',
    of: ({ status, status_reason: reason }) =>
      reason ? `${workspaceStatusText(status)} (${reason})` : workspaceStatusText(status),
  },
  { title: 'waiting', of: ({ queue_depth: depth }) => depth },
  { title: 'role', of: ({ role }) => role },
]

async function list({ platform, show, table }: CommandContext): Promise<void> {
  const workspaces = await listWorkspaces(platform())
  await show(workspaces, () =>
    table(workspaces, COLUMNS, 'There are no workspaces yet; create one with "molecule init".'),
  )
}

async function inspect({ platform, show }: CommandContext, idOrName: string): Promise<void> {
  const client = platform()
  const id = await resolveWorkspaceId(client, idOrName)
  const workspace = await client.call('GET /workspaces/{id}', { id })
  await show(workspace, () =>
    renderFields(
      Object.entries({ ...workspace, status: workspaceStatusText(workspace.status) }).map(
        ([key, value]: [string, unknown]) => [key, fieldText(value)],
      ),
    ),
  )
}

function fieldText(value: unknown): string | number | null {
  // Sentences for the owner, such as `limits`.
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'string')) return value.join('; ')
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as string | number | null)
}

interface DeleteOptions {
  readonly yes?: boolean
  readonly cascade?: boolean
}

async function remove(context: CommandContext, idOrName: string, { yes, cascade }: DeleteOptions): Promise<void> {
  const { terminal } = context
  const client = context.platform()
  const id = await resolveWorkspaceId(client, idOrName)
  const { name } = await client.call('GET /workspaces/{id}', { id })
  if (yes !== true) {
    if (terminal.keyboard === undefined || !terminal.interactive) {
      throw new MoleculeError('invalid_request', `deleting "${name}" cannot be undone; add --yes to confirm`)
    }
    if (!(await typeToConfirm(terminal, name))) throw new MoleculeError('canceled', 'nothing was deleted')
  }
  const { deleted } = await client.call('DELETE /workspaces/{id}', { id, confirm: id, cascade })
  await context.show({ deleted }, () => `${deleted.map((gone) => `deleted ${gone}`).join('\n')}\n`)
}

/** True when the user typed the name again. */
async function typeToConfirm(terminal: Terminal, name: string): Promise<boolean> {
  const question = `This deletes the workspace "${withoutControls(name)}" and cannot be undone. Type its name to confirm: `
  return (await askLine(terminal, question)) === name
}

async function changeState(
  { platform, show }: CommandContext,
  idOrName: string,
  change: (client: PlatformClient, id: string) => Promise<WorkspaceSummary>,
): Promise<void> {
  const client = platform()
  const workspace = await change(client, await resolveWorkspaceId(client, idOrName))
  await show(workspace, () => `${withoutControls(workspaceSentence(workspace))}\n`)
}
