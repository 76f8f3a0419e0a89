/**
 * `molecule status`: without a text the overview of all workspaces; with a text it sets the status line of a workspace,
 * from any process that works for it.
 */
import { MoleculeError } from '../../../errors.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('[text]', 'one line for the card of a workspace; an empty text removes it; without it, the overview')
    .option('--workspace <workspace>', 'id or name (MOLECULE_WORKSPACE_ID)')
    .action(async (text: string | undefined, { workspace }: { workspace?: string }) => {
      const context = await openContext()
      if (text !== undefined) return await setStatus(context, text, workspace)
      const { showOverview } = await import('./status-overview.ts')
      await showOverview(context, workspace)
    })
}

async function setStatus(
  { terminal, platform, show }: CommandContext,
  text: string,
  named: string | undefined,
): Promise<void> {
  const workspace = named ?? terminal.env['MOLECULE_WORKSPACE_ID']
  if (!workspace) {
    const message =
      'this process works for no workspace (MOLECULE_WORKSPACE_ID is not set); name one with --workspace, or use "molecule status" without a text for the overview'
    throw new MoleculeError('invalid_request', message)
  }
  const client = platform()
  const id = await resolveWorkspaceId(client, workspace)
  await client.call('PUT /workspaces/{id}/status', { id, body: { text } })
  // Prints nothing: an agent calls this in the middle of its work and would read the output.
  await show({ workspace_id: id, status_text: text }, () => '')
}
