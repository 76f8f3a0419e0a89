/** `molecule export`: writes workspaces as a team file. `molecule apply` of that file changes nothing. */
import { listWorkspaces } from '../../../client/workspaces.ts'
import { withoutControls } from '../../../printable.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import { exportTeam } from '../../team/export-team.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('[workspace...]', 'ids or names; all workspaces where none is given')
    .action(async (workspaces: string[]) => writeTeam(await openContext(), workspaces))
}

async function writeTeam({ platform, show, terminal }: CommandContext, named: readonly string[]): Promise<void> {
  const client = platform()
  const ids = new Set<string>()
  for (const idOrName of named) ids.add(await resolveWorkspaceId(client, idOrName))
  const all = await listWorkspaces(client)
  const chosen = named.length === 0 ? all : all.filter(({ id }) => ids.has(id))
  const { value, text, notes } = await exportTeam(chosen, all, client)
  for (const note of notes) terminal.err(`note: ${withoutControls(note)}\n`)
  await show(value, () => text)
}
