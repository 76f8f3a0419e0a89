/** `molecule status`: sets the status line of a workspace, from any process that works for it. */
import { MoleculeError } from '../../errors.ts'
import type { CommandContext, DefineCommand } from '../command-context.ts'
import { resolveWorkspaceId } from '../platform/platform-access.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('<text>', 'one line; an empty text removes it')
    .option('--workspace <workspace>', 'id or name (MOLECULE_WORKSPACE_ID)')
    .action(async (text: string, { workspace }: { workspace?: string }) =>
      setStatus(await openContext(), text, workspace),
    )
}

async function setStatus(
  { terminal, platform, show }: CommandContext,
  text: string,
  named: string | undefined,
): Promise<void> {
  const workspace = named ?? terminal.env['MOLECULE_WORKSPACE_ID']
  if (!workspace) {
    const message = 'this process works for no workspace (MOLECULE_WORKSPACE_ID is not set); name one with --workspace'
    throw new MoleculeError('bad_config', message)
  }
  const client = platform()
  const id = await resolveWorkspaceId(client, workspace)
  await client.setStatus(id, text)
  // Prints nothing: an agent calls this in the middle of its work and would read the output.
  await show({ workspace_id: id, status_text: text }, () => '')
}
