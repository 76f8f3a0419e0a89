/** `molecule agent`: lists agents and peers, and sends one message. `molecule chat` holds a conversation. */
import type { WorkspaceSummary } from '../../client/platform-client.ts'
import type { CommandContext, DefineCommand } from '../command-context.ts'
import { resolveWorkspaceId } from '../platform/platform-access.ts'
import { type Column, renderTable } from '../terminal/output.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .command('list')
    .description('list the agents and what they are doing')
    .action(async () => list(await openContext()))
  command
    .command('send')
    .description('send an agent a message and print its answer')
    .argument('<workspace>', 'id or name')
    .argument('<message>', 'the text; - reads it from stdin')
    .option('--async', 'do not wait; print the id of the task')
    .option('--context <id>', 'the conversation to continue')
    .action(async (workspace: string, text: string, options: { async?: boolean; context?: string }) => {
      const { send } = await import('./agent-send.ts')
      await send(await openContext(), { workspace, text, wait: options.async !== true, contextId: options.context })
    })
  command
    .command('peers')
    .description('list the workspaces that an agent may talk to')
    .argument('<workspace>', 'id or name')
    .action(async (workspace: string) => peers(await openContext(), workspace))
}

const COLUMNS: readonly Column<WorkspaceSummary>[] = [
  { title: 'name', of: ({ name }) => name },
  { title: 'status', of: ({ status }) => status },
  { title: 'running', of: ({ running }) => running },
  { title: 'waiting', of: ({ queue_depth: depth }) => depth },
  { title: 'doing', of: ({ status_text: text, current_task: task }) => text ?? task },
  { title: 'id', of: ({ id }) => id },
]

async function list({ platform, show }: CommandContext): Promise<void> {
  const agents = await platform().listWorkspaces()
  await show(agents, () => renderTable(agents, COLUMNS, 'There are no agents yet; create one with "molecule init".'))
}

const PEER_COLUMNS: readonly Column<WorkspaceSummary>[] = [
  { title: 'name', of: ({ name }) => name },
  { title: 'id', of: ({ id }) => id },
  { title: 'status', of: ({ status, status_reason: reason }) => (reason ? `${status} (${reason})` : status) },
  { title: 'role', of: ({ role }) => role },
]

async function peers({ platform, show }: CommandContext, idOrName: string): Promise<void> {
  const client = platform()
  const others = await client.peersOf(await resolveWorkspaceId(client, idOrName))
  await show(others, () => renderTable(others, PEER_COLUMNS, `${idOrName} has no peers.`))
}
