/** `molecule stop`: stops the running turns of one workspace or of all, and starts none until `workspace resume`. */
import { MoleculeError } from '../../errors.ts'
import type { CommandContext, DefineCommand } from '../command-context.ts'
import { resolveWorkspaceId } from '../platform/platform-access.ts'
import { withoutControls } from '../terminal/output.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('[workspace]', 'id or name')
    .option('--all', 'every workspace')
    .action(async (workspace: string | undefined, { all }: { all?: boolean }) => {
      if ((workspace === undefined) !== (all === true)) {
        throw new MoleculeError('invalid_request', 'name one workspace, or use --all')
      }
      await stop(await openContext(), workspace)
    })
}

async function stop({ platform, show }: CommandContext, workspace: string | undefined): Promise<void> {
  const client = platform()
  const ids =
    workspace === undefined
      ? (await client.listWorkspaces()).map(({ id }) => id)
      : [await resolveWorkspaceId(client, workspace)]
  const stopped: { name: string; status: string }[] = []
  for (const id of ids) {
    const { name, status } = await client.runWorkspaceAction(id, 'pause?now=true')
    stopped.push({ name, status })
  }
  const lines = stopped.map(({ name, status }) => withoutControls(`${name} is ${status}; its messages wait\n`))
  await show(stopped, () => lines.join('') || 'There are no workspaces.\n')
}
