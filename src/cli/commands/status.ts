/** `molecule status`: what a workspace says it is doing, from any process that works for it. */
import { MoleculeError } from '../../errors.ts'
import type { CommandContext, DefineCommand } from '../command-context.ts'
import { resolveWorkspaceId } from '../platform/platform-access.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('<text>', 'one line; an empty one takes it away')
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
    const message = 'this runs in no workspace (MOLECULE_WORKSPACE_ID is not set); say which with --workspace'
    throw new MoleculeError('bad_config', message)
  }
  const client = platform()
  const id = await resolveWorkspaceId(client, workspace)
  await client.setStatus(id, text)
  // An agent calls this in the middle of its work: nothing to read is the best answer.
  await show({ workspace_id: id, status_text: text }, () => '')
}
